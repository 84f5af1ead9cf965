"""The result's JSON: one line, at most 4096 bytes, and the schema that both sides test against."""

import json
import subprocess
import sys
from typing import get_args

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from assay.check.report import CheckResult, DatasetResult, PackResult, render, schema
from assay.check.verdict import Reason
from support.small_packs import SOME_DIGEST


def result(**changed):
    given = {
        "verdict": "Pass",
        "reason": "CheckPassed",
        "message": "fine",
        "job_uid": "11111111-2222-3333-4444-555555555555",
        "inputs_hash": "0123456789",
        "candidate": PackResult(uri="builtin:c", digest=SOME_DIGEST, precision="INT8", cost_micros=4500),
        "yardstick": PackResult(uri="builtin:y", digest=SOME_DIGEST, precision="FP32", cost_micros=9500),
        "dataset": DatasetResult(
            uri="builtin:photos", digest=SOME_DIGEST, images=600, groups=4, left_out=0, labelled=False
        ),
        "top3_contained": 600,
        "top1_agreed": 590,
        "containment_lower_permille": 995,
        "containment_upper_permille": 1000,
        "agreement_lower_permille": 971,
        "cost_ratio_permille": 474,
        "cost_ratio_lower_permille": 470,
        "cost_ratio_upper_permille": 478,
        "noise_permille": 20,
        "cpu_model": "AMD EPYC",
        "cpu_features": ("avx2", "vnni"),
        "cpu_limit_millicores": 2000,
        "started_at": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T00:00:30Z",
    }
    return CheckResult(**(given | changed))


def test_the_schema_file_is_fresh(root):
    assert (root / "docs" / "contracts" / "check-result.schema.json").read_text() == schema()


def test_the_schema_is_what_the_module_prints(root):
    printed = subprocess.run([sys.executable, "-m", "assay.check.report"], capture_output=True, check=True, timeout=60)
    assert printed.stdout.decode() == schema()


def test_a_result_is_one_line_of_integers_with_the_agreed_names():
    line = render(result())
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    read = json.loads(line)
    jsonschema.validate(read, json.loads(schema()))
    assert set(read) == {
        "format", "verdict", "reason", "message", "jobUID", "inputsHash", "candidate", "yardstick", "dataset",
        "top3Contained", "top1Agreed", "containmentLowerPermille", "containmentUpperPermille",
        "agreementLowerPermille", "top1DropUpperPermille", "costRatioPermille", "costRatioLowerPermille",
        "costRatioUpperPermille", "noisePermille", "cpuModel", "cpuFeatures", "cpuLimitMillicores", "startedAt",
        "completedAt",
    }  # fmt: skip
    assert set(read["candidate"]) == {"uri", "digest", "precision", "costMicros"}
    assert set(read["dataset"]) == {"uri", "digest", "images", "groups", "leftOut", "labelled"}
    assert "." not in line.decode().replace("builtin:c", "")


@pytest.mark.parametrize("reason", get_args(Reason))
def test_every_reason_is_in_the_schema(reason):
    jsonschema.validate(json.loads(render(result(reason=reason))), json.loads(schema()))


def test_a_result_survives_reading():
    assert CheckResult.model_validate_json(render(result())) == result()


@pytest.mark.parametrize(
    "changed", [{"verdict": "Maybe"}, {"reason": "Because"}, {"format": 2}, {"more": 1}, {"noise_permille": 0.5}]
)
def test_a_result_of_another_shape_is_refused(changed):
    with pytest.raises(ValidationError):
        result(**changed)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6000)


@settings(deadline=None, max_examples=150)
@given(message=TEXT, uris=st.lists(st.text(max_size=3000), min_size=3, max_size=3), cpu=st.text(max_size=500))
def test_a_result_always_fits_and_keeps_its_verdict_and_figures(message, uris, cpu):
    whole = result(
        message=message,
        cpu_model=cpu,
        candidate=PackResult(uri=uris[0], digest=SOME_DIGEST, precision="INT8", cost_micros=1),
        yardstick=PackResult(uri=uris[1], digest=SOME_DIGEST, precision="FP32", cost_micros=2),
        dataset=DatasetResult(uri=uris[2], digest=SOME_DIGEST, images=1, groups=1, left_out=0, labelled=True),
    )
    line = render(whole)
    assert len(line) <= 4096
    read = CheckResult.model_validate_json(line)
    same = (
        "verdict",
        "reason",
        "job_uid",
        "inputs_hash",
        "top3_contained",
        "cost_ratio_upper_permille",
        "noise_permille",
    )
    assert [getattr(read, name) for name in same] == [getattr(whole, name) for name in same]
    assert read.candidate.digest == SOME_DIGEST


def test_a_long_message_is_cut_first_and_marked():
    read = CheckResult.model_validate_json(render(result(message="x" * 9000)))
    assert read.message.endswith("x…")
    assert read.cpu_features == ("avx2", "vnni")
    assert len(render(result(message="x" * 9000))) > 4000


def test_an_absurd_nonce_is_refused_rather_than_cut():
    with pytest.raises(ValueError, match="does not fit"):
        render(result(inputs_hash="x" * 5000))
