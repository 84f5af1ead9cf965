"""What `make load` asks of the chart, and what it makes of the log."""

import io
import json

import jsonschema
import pytest
import yaml

from local_cluster import load
from local_cluster.tools import ToolError


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("90s", 90), ("2m", 120), ("1h", 3600)])
def test_duration_is_in_seconds(text, expected):
    assert load.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "1.5m", "-3", "0s", "ten"])
def test_duration_that_is_none_is_refused(text):
    with pytest.raises(ToolError, match="is no duration"):
        load.seconds(text)


def test_variables_become_values_that_the_chart_takes(root):
    asked = load.values(
        {"SCENARIO": "spike", "RATE": "7.5", "DURATION": "2m", "SPIKE_FACTOR": "3", "P99_MS": "100", "MIX": ""},
        local_image=True,
    )["loadTest"]
    assert (asked["scenario"], asked["rate"], asked["durationSeconds"], asked["p99Ms"]) == ("spike", 7.5, 120, 100)
    assert asked["settings"] == {"SPIKE_FACTOR": 3}
    assert asked["image"] == {"repository": "localhost/k6", "tag": "1.1.0", "digest": ""}
    chart = root / "charts" / "assay"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    jsonschema.validate(
        values | {"loadTest": values["loadTest"] | asked}, json.loads((chart / "values.schema.json").read_text())
    )


def test_foreign_cluster_pulls_the_image_of_the_chart():
    assert "image" not in load.values({}, local_image=False)["loadTest"]


def test_variable_that_is_no_number_is_told():
    with pytest.raises(ToolError, match="RATE=fast is no number"):
        load.values({"RATE": "fast"}, local_image=True)


def test_settings_are_those_of_the_chart(root):
    schema = json.loads((root / "charts" / "assay" / "values.schema.json").read_text())
    settings = schema["properties"]["loadTest"]["properties"]["settings"]["properties"]
    assert set(load.SETTINGS) == set(settings)


def test_report_is_taken_out_of_the_log(tmp_path, capsys):
    lines = ["PASS  load\n", f"{load.BEGIN}\n", "<html>\n", "</html>\n", f"{load.END}\n", "bye\n"]
    load.split(io.StringIO("".join(lines)), tmp_path)
    assert (tmp_path / "report.html").read_text() == "<html>\n</html>\n"
    assert (tmp_path / "log.txt").read_text() == capsys.readouterr().out == "PASS  load\nbye\n"


def test_marks_are_those_that_the_script_prints(root):
    script = (root / "k6" / "run").read_text()
    assert f"'{load.BEGIN}'" in script
    assert f"'{load.END}'" in script


def container(name, **state):
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("initial", "main", "expected"),
    [
        ({"waiting": {"reason": "PodInitializing"}}, {"waiting": {"reason": "PodInitializing"}}, "pending"),
        ({"running": {}}, {"waiting": {"reason": "PodInitializing"}}, "photos are made"),
        ({"terminated": {"exitCode": 0}}, {"running": {}}, "running"),
        ({"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 1}}, "running"),  # its log is still to be read
    ],
)
def test_state_of_a_pod_is_told(initial, main, expected):
    pod = {"metadata": {"name": "p"}, "status": {"phase": "Pending"}}
    pod["status"]["initContainerStatuses"] = [container("images", **initial)]
    pod["status"]["containerStatuses"] = [container("k6", **main)]
    assert load.state(pod).startswith(expected)


@pytest.mark.parametrize(
    ("initial", "main", "message"),
    [
        ({"terminated": {"exitCode": 1}}, {}, "the photos were not made"),
        ({"terminated": {"exitCode": 0}}, {"waiting": {"reason": "ImagePullBackOff"}}, "k6 cannot start"),
    ],
)
def test_pod_that_will_never_run_is_not_waited_for(initial, main, message):
    pod = {"metadata": {"name": "p"}, "status": {"initContainerStatuses": [container("images", **initial)]}}
    pod["status"]["containerStatuses"] = [container("k6", **main)]
    with pytest.raises(ToolError, match=message):
        load.state(pod)
