"""What the operator makes of a check's last words, and that both sides of the contract mean the same."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_operator.models import result as contract
from assay_operator.models.result import CheckResult, parse_result, same_uri
from support.packs import result
from support.world import World


@pytest.fixture(scope="module")
def schema(root) -> dict:
    return json.loads((root / "docs" / "contracts" / "check-result.schema.json").read_text())


@pytest.fixture
def line() -> str:
    world = World()
    world.reconcile()
    return result(world.job())


def test_a_result_is_read(schema, line):
    jsonschema.validate(json.loads(line), schema)
    read = parse_result(line)
    assert isinstance(read, CheckResult)
    assert (read.verdict, read.top3_contained, read.job_uid) == ("Pass", 398, "job-1")


def test_both_sides_know_the_same_fields_and_reasons(schema):
    def fields(model):
        return {field.alias or name for name, field in model.model_fields.items()}

    assert fields(CheckResult) == set(schema["properties"])
    assert fields(contract.MeasuredPack) == set(schema["$defs"]["PackResult"]["properties"])
    assert fields(contract.MeasuredDataset) == set(schema["$defs"]["DatasetResult"]["properties"])
    ours = CheckResult.model_json_schema()
    assert set(ours["properties"]["reason"]["enum"]) == set(schema["properties"]["reason"]["enum"])
    assert set(ours["properties"]["verdict"]["enum"]) == set(schema["properties"]["verdict"]["enum"])
    assert set(ours["required"]) == set(schema["required"])


WRONG = [
    ("verdict", "pass"),
    ("verdict", None),
    ("reason", "Because"),
    ("format", 2),
    ("top3Contained", 397.5),
    ("top3Contained", "398"),
    ("top3Contained", True),
    ("top3Contained", -1),
    ("containmentLowerPermille", 1001),
    ("top1DropUpperPermille", -1001),
    ("dataset", None),
    ("candidate", {"uri": "x", "digest": 1}),
    ("cpuFeatures", "avx2"),
    ("unknown", 1),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_both_sides_refuse_the_same(schema, line, field, value):
    told = {**json.loads(line), field: value}
    assert isinstance(parse_result(json.dumps(told)), str)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told, schema)


def test_garbage_is_quoted_and_nothing_is_said_of_nothing():
    assert "Traceback" in parse_result("Traceback (most recent call last)")
    assert parse_result("") == "the check left no result"
    assert parse_result(" \n") == "the check left no result"
    assert "larger" in parse_result("x" * 4097)


def test_not_a_number_is_no_figure(line):
    for figure in ("NaN", "Infinity", "1e400"):
        assert isinstance(parse_result(line.replace("398", figure)), str)


@given(cut=st.integers(0, 5000))
def test_truncated_result_is_no_result(cut):
    world = World()
    world.reconcile()
    whole = result(world.job())
    if cut < len(whole):
        assert isinstance(parse_result(whole[:cut]), str)


@given(st.text(max_size=200))
def test_whatever_a_container_says_is_answered_with_a_sentence(text):
    assert isinstance(parse_result(text), str)


def test_uri_that_the_check_has_shortened_is_recognised():
    assert same_uri("https://x/" + "a" * 100 + "…", "https://x/" + "a" * 300)
    assert not same_uri("https://y/…", "https://x/aaa")
    assert not same_uri("…", "https://x/aaa")
