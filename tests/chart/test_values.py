"""The values: each explained, each known to the schema, none of them dead, and nothing else let in."""

import copy
import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from assay.settings import Settings
from assay_operator.settings import Settings as OperatorSettings

OWN_SETTINGS = {
    "MODEL_URI", "MODEL_DIGEST", "MODEL_PRECISION", "VARIANT", "BASE_MODEL_URI", "BASE_MODEL_DIGEST",
    "CPU_LIMIT_MILLICORES", "MEMORY_LIMIT_BYTES", "CACHE_DIR", "DRAIN_DELAY_S", "DRAIN_TIMEOUT_S",
    "DRAIN_STORE_TIMEOUT_S", "DRAIN_TRACES_TIMEOUT_S", "HOST", "PORT",
}  # fmt: skip


OF_THE_IMAGE = {"BUILTIN_DIR", "TERMINATION_LOG"}  # where things lie in the image and the pod
BOUNDS = ("type", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum")


@pytest.fixture(scope="module")
def schema(folder) -> dict[str, Any]:
    return json.loads((folder / "values.schema.json").read_text())


@pytest.fixture(scope="module")
def values(folder) -> dict[str, Any]:
    return yaml.safe_load((folder / "values.yaml").read_text())


@pytest.fixture(scope="module")
def generate(root) -> dict[str, Any]:
    return runpy.run_path(str(root / "charts" / "generate.py"))


def groups(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the mappings with entries, the root first."""
    yield path
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from groups(value, (*path, key))


def resolve(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    return schema["definitions"][part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part


def part_of(schema: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    part = schema
    for key in path:
        part = resolve(schema, part["properties"][key])
    return part


def merged(below: Any, above: Any) -> Any:
    """As Helm lays one set of values over another."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {key: merged(below.get(key), value) for key, value in above.items()}
    return above


def at(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    for key in path:
        values = values[key]
    return values


def test_the_schema_itself_is_valid(schema):
    jsonschema.Draft7Validator.check_schema(schema)


def test_defaults_and_every_set_of_ci_values_fit_the_schema(schema, values, folder):
    jsonschema.validate(values, schema)
    files = sorted((folder / "ci").glob("*-values.yaml"))
    assert files
    for file in files:
        jsonschema.validate(merged(values, yaml.safe_load(file.read_text())), schema)


def test_schema_names_exactly_the_values_there_are(schema, values):
    for path in groups(values):
        assert set(part_of(schema, path)["properties"]) - {"global"} == set(at(values, path)), path


def test_an_unknown_value_is_refused_in_every_group(schema, values):
    for path in groups(values):
        changed = copy.deepcopy(values)
        at(changed, path)["unheardOf"] = True
        with pytest.raises(jsonschema.ValidationError, match="unheardOf"):
            jsonschema.validate(changed, schema)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("image.digest", "sha256:abc"),
        ("image.tag", "a tag"),
        ("image.pullPolicy", "Sometimes"),
        ("baseModel.uri", "efficientnet"),
        ("replicas", -1),
        ("replicas", "two"),
        ("resources.limits.cpu", "2 cores"),
        ("resources.limits.memory", "2GiB"),
        ("settings", {"DEADLINE": 500}),
        ("settings", {"MODEL_URI": "builtin:other"}),
        ("extraEnv", [{"nam": "A", "value": "b"}]),
        ("drain.timeoutSeconds", -1),
        ("podLabels", {"assay.dev/target": "false"}),
        ("podLabels", {"app.kubernetes.io/component": "check"}),
        ("podAnnotations", {"assay.dev/model-uri": "builtin:other"}),
        ("podDisruptionBudget.maxUnavailable", 0),
        ("service.port", 0),
        ("service.type", "ExternalName"),
        ("podMonitor.create", True),
        ("operator.scope", "everything"),
        ("crd.install", "maybe"),
        ("serviceAccount.name", "Upper_Case"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused(schema, values, path, wrong):
    changed = copy.deepcopy(values)
    *group, key = path.split(".")
    at(changed, tuple(group))[key] = wrong
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, schema)


def test_every_value_is_explained(generate, folder):
    for path, _, sentence in generate["values"]((folder / "values.yaml").read_text()):
        assert sentence[-1] in ".`", f"{path}: {sentence!r} is no whole sentence"


def test_a_value_without_a_sentence_is_reported(generate):
    with pytest.raises(generate["MissingSentenceError"], match=r"b\.d"):
        list(generate["values"]("# explained\na: 1\nb:\n  # explained\n  c: 1\n  d: 2\n"))


def test_no_value_is_dead(generate, folder):
    templates = "".join(file.read_text() for file in (folder / "templates").rglob("*") if file.is_file())
    for path, _, _ in generate["values"]((folder / "values.yaml").read_text()):
        keys = path.split(".")
        whole = [".".join(keys[: i + 1]) for i in range(len(keys))]  # used itself, or rendered within its group
        assert any(re.search(rf"\.Values\.{re.escape(name)}(?![\w.])", templates) for name in whole), path


def test_the_table_in_the_readme_is_fresh(generate, folder):
    readme = (folder / "README.md").read_text()
    assert readme == generate["readme"](readme, (folder / "values.yaml").read_text()), "run `make manifests`"


@pytest.mark.parametrize(
    ("path", "program", "own"),
    [
        (("settings",), Settings, OWN_SETTINGS | OF_THE_IMAGE),
        (("operator", "settings"), OperatorSettings, {"NAMESPACES", "PORT"}),
    ],
)
def test_settings_are_those_of_the_program_within_the_same_bounds(schema, path, program, own):
    fields = {name.upper(): field for name, field in program.model_json_schema(by_alias=False)["properties"].items()}
    assert set(fields) > own
    parts = part_of(schema, path)["properties"]
    assert set(parts) == set(fields) - own
    for name, part in parts.items():
        assert part == {key: fields[name][key] for key in BOUNDS if key in fields[name]}, name


def test_drain_has_the_bounds_of_the_service(schema):
    fields = Settings.model_json_schema()["properties"]
    for value, setting in {
        "delaySeconds": "drain_delay_s",
        "timeoutSeconds": "drain_timeout_s",
        "storeTimeoutSeconds": "drain_store_timeout_s",
        "tracesTimeoutSeconds": "drain_traces_timeout_s",
    }.items():
        part = part_of(schema, ("drain", value))
        assert [part["minimum"], part["maximum"]] == [fields[setting]["minimum"], fields[setting]["maximum"]]
