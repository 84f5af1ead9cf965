"""The settings of the scenarios are those that are written down, and that the chart lets through."""

import json
import re

import yaml

NAMED = re.compile(r"__ENV\.([A-Z0-9_]+)|number\('([A-Z0-9_]+)'|'([A-Z0-9_]{4,})'")
# They are values of their own in the chart, or made by it.
OWN_VALUES = {"URL", "SET", "OUT", "MIX", "RATE", "START_RATE", "SECONDS", "SEED", "P99_MS", "IMAGES", "TESTID"}


def settings(root):
    config = (root / "k6" / "lib" / "config.js").read_text()
    return {name for found in NAMED.findall(config) for name in found if name}


def test_every_setting_is_in_the_readme(root):
    readme = (root / "k6" / "README.md").read_text()
    table = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", readme, re.MULTILINE))
    assert table == settings(root)


def test_chart_lets_every_setting_through(root):
    schema = json.loads((root / "charts" / "assay" / "values.schema.json").read_text())
    allowed = schema["properties"]["loadTest"]["properties"]["settings"]["properties"]
    assert set(allowed) == settings(root) - OWN_VALUES


def test_scenarios_and_mixes_of_the_chart_are_those_there_are(root):
    schema = json.loads((root / "charts" / "assay" / "values.schema.json").read_text())
    properties = schema["properties"]["loadTest"]["properties"]
    scenarios = {file.stem for file in (root / "k6" / "scenarios").glob("*.js")} - {"overload"}
    assert set(properties["scenario"]["enum"]) == scenarios
    mixes = re.findall(r"^  '?(\w+)'?: \{ large:", (root / "k6" / "lib" / "mix.js").read_text(), re.MULTILINE)
    assert set(properties["mix"]["enum"]) == set(mixes)


def test_image_of_the_chart_is_the_version_the_scripts_are_tried_with(root):
    values = yaml.safe_load((root / "charts" / "assay" / "values.yaml").read_text())
    assert f"k6=={values['loadTest']['image']['tag']}\n" in (root / "requirements" / "load.in").read_text()
