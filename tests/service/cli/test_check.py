"""``assay check``: exit codes, the result file, and what is printed where."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest

from assay.check.report import CheckResult
from support.small_packs import LABELS, SOME_DIGEST, colour_dataset, colour_pack

LENIENT = ("--max-noise-permille", "10000", "--max-cost-ratio-permille", "100000")
"""For machines that do other things meanwhile; what is tested here is not their speed."""


@pytest.fixture
def check(tmp_path):
    """Run the command on packs a.tar and b.tar and photos.tar; return the finished process."""
    colour_pack(tmp_path / "a.tar", name="a")
    colour_pack(tmp_path / "b.tar", name="b")
    colour_pack(tmp_path / "permuted.tar", labels=(*LABELS[1:], LABELS[0]))
    colour_dataset(tmp_path / "photos.tar", 160, groups=160)

    def run(*argv, settings=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        environment |= {"ASSAY_CACHE_DIR": str(tmp_path / "cache"), **(settings or {})}
        command = [sys.executable, "-m", "assay", "check", *map(str, argv)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    return run


USUAL = ("--compare-with", "b.tar", "--dataset", "photos.tar", *LENIENT)


@pytest.mark.parametrize(
    ("argv", "verdict", "code"),
    [
        (("--candidate", "a.tar", *USUAL), "Pass", 0),
        (("--candidate", "permuted.tar", *USUAL, "--min-top1-agreement-permille", "500"), "Fail", 1),
        (("--candidate", "a.tar", *USUAL, "--max-noise-permille", "1"), "Inconclusive", 2),
        (("--candidate", "none.tar", *USUAL), "Error", 3),
        (("--candidate", "a.tar", "--candidate-digest", SOME_DIGEST, *USUAL), "Error", 3),
        (("--candidate", "a.tar", "--candidate-precision", "INT8", *USUAL), "Error", 3),
        (("--candidate", "a.tar", *USUAL, "--min-top3-containment-permille", "0"), "Error", 3),
        (("--candidate", "a.tar", *USUAL, "--confidence-percent", "50"), "Error", 3),
    ],
)
def test_the_exit_code_is_the_verdict_and_with_a_file_only_errors_are_errors(
    check, tmp_path, root, argv, verdict, code
):
    plain = check(*argv, "--json")
    assert plain.returncode == code, plain.stderr
    assert plain.stdout.count("\n") == 1
    assert json.loads(plain.stdout)["verdict"] == verdict
    schema = json.loads((root / "docs" / "contracts" / "check-result.schema.json").read_text())
    jsonschema.validate(json.loads(plain.stdout), schema)

    filed = check(*argv, "--result-file", "log", "--job-uid", "u-1", "--inputs-hash", "h-1")
    assert filed.returncode == (3 if verdict == "Error" else 0)
    result = CheckResult.model_validate_json((tmp_path / "log").read_bytes())
    assert (result.verdict, result.job_uid, result.inputs_hash) == (verdict, "u-1", "h-1")
    assert verdict in filed.stdout
    assert result.reason in filed.stdout


def test_the_table_tells_what_was_measured(check):
    shown = check("--candidate", "a.tar", *USUAL).stdout
    for part in ("top-1 agreement", "160/160", "top-3 containment", "at least 98.1 %", "160 images of 160 photos"):
        assert part in shown
    for part in ("CPU-ms", "cost ratio", "noise", "verdict", "Pass"):
        assert part in shown
    assert "smoke" not in shown


def test_a_limit_on_the_drop_needs_labels_and_is_shown_with_them(check, tmp_path):
    asked = ("--candidate", "a.tar", *USUAL[:2], *LENIENT, "--max-top1-drop-permille", "30")
    shown = check(*asked, "--dataset", "photos.tar")
    assert shown.returncode == 0, shown.stdout
    assert "at most 2.3 %" in shown.stdout  # 1 - 0.025 ** (1 / 160), up
    colour_dataset(tmp_path / "plain.tar", 8, labelled=False)
    refused = check(*asked, "--dataset", "plain.tar", "--json")
    assert refused.returncode == 3
    result = CheckResult.model_validate_json(refused.stdout)
    assert (result.reason, result.dataset.labelled) == ("DatasetInvalid", False)
    assert "a limit on the top-1 drop needs them on every image" in result.message


def test_progress_goes_to_stderr_and_names_the_steps(check):
    done = check("--candidate", "a.tar", *USUAL, "--json")
    for step in ("fetching the candidate", "fetching the yardstick", "fetching the dataset", "measuring"):
        assert step in done.stderr
        assert step not in done.stdout


def test_few_photos_are_called_a_smoke_set(check, tmp_path):
    colour_dataset(tmp_path / "few.tar", 160, groups=4)
    shown = check("--candidate", "a.tar", *USUAL[:2], "--dataset", "few.tar", *LENIENT)
    assert shown.returncode == 0
    assert "smoke set, 4 groups: not proof" in " ".join(shown.stdout.replace("│", " ").split())


def test_the_yardstick_is_the_base_of_the_settings(check, tmp_path):
    settings = {"ASSAY_BASE_MODEL_URI": "b.tar", "ASSAY_CPU_LIMIT_MILLICORES": "1500"}
    done = check("--candidate", "a.tar", *USUAL[2:], "--json", settings=settings)
    result = CheckResult.model_validate_json(done.stdout)
    assert (result.verdict, result.yardstick.uri) == ("Pass", "b.tar")
    assert result.cpu_limit_millicores <= 1500


def test_a_setting_that_is_wrong_is_an_error_with_a_result(check, tmp_path):
    done = check("--candidate", "a.tar", *USUAL, "--result-file", "log", settings={"ASSAY_CASH_DIR": "x"})
    assert done.returncode == 3
    assert "ASSAY_CACHE_DIR" in CheckResult.model_validate_json((tmp_path / "log").read_bytes()).message


def test_an_existing_result_file_is_replaced_in_place(check, tmp_path):
    log = tmp_path / "log"
    log.write_text("x" * 10_000)
    inode = log.stat().st_ino
    check("--candidate", "a.tar", *USUAL, "--result-file", "log")
    assert log.stat().st_ino == inode  # a termination log is a mounted file
    assert CheckResult.model_validate_json(log.read_bytes()).verdict == "Pass"


@pytest.mark.parametrize("argv", [(), ("--candidate", "a.tar", "--max-images", "0"), ("--no-such-option",)])
def test_wrong_usage_never_looks_like_a_verdict(check, argv):
    assert check(*argv).returncode == 3


def test_a_result_that_cannot_be_written_is_an_error(check):
    assert check("--candidate", "a.tar", *USUAL, "--result-file", "/no/such/folder/log").returncode == 3


def test_an_argument_that_is_no_unicode_is_an_error_with_a_result(check, tmp_path):
    done = check("--candidate", "caf\udce9.tar", *USUAL, "--result-file", "log")
    assert done.returncode == 3
    assert CheckResult.model_validate_json((tmp_path / "log").read_bytes()).reason == "PackUnavailable"


def test_a_crash_is_an_error_and_never_exits_like_a_verdict(check):
    # No result fits with a nonce of kilobytes: rendering it fails, after the measurement.
    done = check("--candidate", "a.tar", *USUAL, "--json", "--inputs-hash", "x" * 5000)
    assert done.returncode == 3
    assert "does not fit" in done.stderr
