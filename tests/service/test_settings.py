"""Settings come from the environment; what is misspelt or out of range is refused with the way out."""

import os
import runpy

import pytest

from assay.errors import SettingsError
from assay.settings import KNOWN, Settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)


def test_variables_are_read(monkeypatch):
    monkeypatch.setenv("ASSAY_DEADLINE_MS", "250")
    monkeypatch.setenv("ASSAY_MODEL_PRECISION", "INT8")
    settings = load_settings()
    assert settings.deadline_ms == 250
    assert settings.model_precision == "INT8"


@pytest.mark.parametrize(
    "endpoint", ["collector:4318", "grpc://c:4317", "http://u:p@c:4318", "http://c/v1/traces?key=k"]
)
def test_endpoint_of_traces_is_an_address_without_credentials(monkeypatch, endpoint):
    monkeypatch.setenv("ASSAY_TRACES_ENDPOINT", endpoint)
    with pytest.raises(SettingsError, match=r"ASSAY_TRACES_ENDPOINT=.*: write http://.* OTEL_EXPORTER_OTLP_HEADERS\."):
        load_settings()


def test_empty_variable_counts_as_absent(monkeypatch):
    monkeypatch.setenv("ASSAY_MODEL_URI", "")
    monkeypatch.setenv("ASSAY_MODEL_PRECISION", "")
    monkeypatch.setenv("ASSAY_CPU_LIMIT_MILLICORES", "")
    assert load_settings() == Settings()


def test_command_line_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("ASSAY_PORT", "9000")
    assert load_settings(port=9001).port == 9001
    assert load_settings(port=None).port == 9000


def test_misspelt_variable_is_refused_with_the_nearest_one(monkeypatch):
    monkeypatch.setenv("ASSAY_DEADLINE", "250")
    with pytest.raises(SettingsError, match="ASSAY_DEADLINE is not a setting: did you mean ASSAY_DEADLINE_MS"):
        load_settings()


@pytest.mark.parametrize(
    "name",
    [
        "ASSAY_SERVICE_HOST",
        "ASSAY_SERVICE_PORT",
        "ASSAY_SERVICE_PORT_HTTP",
        "ASSAY_PORT_80_TCP",
        "ASSAY_PORT_80_TCP_ADDR",
        "ASSAY_OPERATOR_SERVICE_HOST",
        "ASSAY_OPERATOR_PORT_8080_TCP_PROTO",
    ],
)
def test_variable_of_a_kubernetes_service_is_explained(monkeypatch, name):
    monkeypatch.setenv(name, "10.96.0.1")
    with pytest.raises(SettingsError, match="enableServiceLinks: false"):
        load_settings()


def test_port_that_is_a_service_link_is_explained(monkeypatch):
    monkeypatch.setenv("ASSAY_PORT", "tcp://10.96.0.1:80")
    with pytest.raises(SettingsError, match="enableServiceLinks: false"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ASSAY_PORT", "70000"),
        ("ASSAY_DEADLINE_MS", "soon"),
        ("ASSAY_MODEL_PRECISION", "INT4"),
        ("ASSAY_VARIANT", "a\nb"),
    ],
)
def test_value_out_of_range_is_refused_by_its_variable(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name}="):
        load_settings()


def test_every_setting_is_described():
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert f"ASSAY_{name.upper()}" in KNOWN


@pytest.mark.parametrize("name", sorted(KNOWN))
@pytest.mark.parametrize("mistake", ["one letter missing", "two letters swapped", "one letter too many"])
def test_every_setting_is_found_again_from_a_misspelt_name(monkeypatch, name, mistake):
    at = len(name) - 3
    wrong = {
        "one letter missing": name[:at] + name[at + 1 :],
        "two letters swapped": name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        "one letter too many": name + "S",
    }[mistake]
    if wrong in KNOWN:
        return  # two settings, one letter apart
    monkeypatch.setenv(wrong, "1")
    with pytest.raises(SettingsError, match=f"{wrong} is not a setting: did you mean {name}"):
        load_settings()


def test_table_of_settings_is_fresh(root):
    generate = runpy.run_path(str(root / "service" / "generate.py"))
    text = (root / "service" / "README.md").read_text()
    assert text == generate["readme"](text), "run `make docs`"
    for name in KNOWN:
        assert f"| `{name}` |" in text
