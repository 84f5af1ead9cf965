"""The benches that start a service, as commands: small real runs, wrong options, and an end by signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from assay.bench.capacity import Capacity
from assay.bench.report import Report
from assay.cli import main
from support.server import wait_until
from support.small_packs import colour_dataset, colour_pack


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colours")
    colour_pack(folder / "pack.tar")
    colour_dataset(folder / "photos.tar")
    return folder


def assay(*arguments, cwd):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    command = [sys.executable, "-m", "assay", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, cwd=cwd)


def bench(name, folder, *options):
    """The report of a small run; a busy machine may make it invalid, which must then be said."""
    ran = assay("bench", name, "pack.tar", "--dataset", "photos.tar", "--photos", 8, "--json", *options, cwd=folder)
    report = Report.model_validate_json(ran.stdout)
    flawed = any(row.get("flaw") for row in report.rows)
    assert ran.returncode == (1 if flawed else 0), ran.stderr
    assert flawed == any(note.startswith("INVALID") for note in report.notes)
    assert "Traceback" not in ran.stderr
    return report


def test_batching_compares_each_window_and_rate_and_a_flood(colours):
    report = bench(
        "batching", colours, "--window-ms", 20, "--batch-max", 4, "--rate", 50, "--seconds", 0.5, "--pairs", 2,
        "--clients", 8, "--rounds", 1,
    )  # fmt: skip
    assert [(row["load"], row["mode"]) for row in report.rows] == [
        (load, mode) for load in ("open loop", "one at a time", "8 at once") for mode in ("one by one", "batched")
    ]
    plain, batched = report.rows[:2]
    assert (plain["rate"], plain["expected_batch"], batched["expected_batch"]) == (50, None, 2)
    assert plain["mean_batch"] is None
    assert all(1 <= row["mean_batch"] <= 4 for row in report.rows[1:2])
    assert report.rows[3]["mean_batch"] == 1  # nothing else is on its way
    assert any("from concurrency alone" in note for note in report.notes)


def test_cache_tells_hits_and_misses_by_size(colours):
    sizes = ("--megapixels", 0.1, "--megapixels", 0.02)
    report = bench("cache", colours, *sizes, "--pairs", 4, "--hits", 4, "--out-json", "report.json")
    assert Report.model_validate_json((colours / "report.json").read_text()) == report
    assert [row["megapixels"] for row in report.rows] == [0.02, 0.1]
    for row in report.rows:
        assert row["pairs"] == 4
        assert min(row["plain_cpu_ms"], row["miss_cpu_ms"], row["hit_cpu_ms"], row["look_up_ms"]) > 0
        assert row["miss_added_low_percent"] <= row["miss_added_percent"] <= row["miss_added_high_percent"]


def test_storage_compares_path_background_and_nothing(colours):
    load = ("--rate", 10, "--seconds", 1, "--rounds", 1)
    report = bench("storage", colours, "--no-folder", "--latency-ms", 30, *load)
    assert [row["mode"] for row in report.rows] == ["nothing", "in the background", "in the path"]
    nothing, background, path = report.rows
    assert nothing["requests"] == background["requests"] == path["requests"] > 0
    assert path["p50_ms"] > 2 * 30
    assert background["dropped"] == 0
    assert nothing["stored"] is path["stored"] is None


def test_capacity_tells_stages_ceiling_and_rate(colours):
    options = ("--dataset", "photos.tar", "--photos", 8, "--rounds", 2, "--cpu-limit", 500, "--p99-ms", 5000)
    ran = assay("capacity", "pack.tar", *options, "--json", cwd=colours)
    assert ran.returncode == 0, ran.stderr
    found = Capacity.model_validate_json(ran.stdout)
    assert found.ceiling == pytest.approx(500 / found.busy_cost_ms)
    assert sum(stage.cpu_ms for stage in found.stages) == pytest.approx(found.busy_cost_ms, abs=1e-6)
    assert sum(found.costs_ms) / len(found.costs_ms) == pytest.approx(found.cost_ms, abs=0.01)
    assert len(found.costs_ms) == 16
    assert found.expected[1].load / found.expected[0].load == pytest.approx(0.7 / 0.5)
    assert max(each.load for each in found.expected) <= 0.85 + 1e-6
    assert [each.p99_ms for each in found.expected] == sorted(each.p99_ms for each in found.expected)
    assert found.recommended is not None
    assert found.recommended.rate <= 0.9 * found.ceiling * 1.001
    assert found.recommended.p99_ms <= 5000


def test_capacity_says_so_where_no_rate_meets_the_target(colours):
    ran = assay(
        "capacity", "pack.tar", "--dataset", "photos.tar", "--photos", 2, "--megapixels", 2, "--rounds", 1,
        "--cpu-limit", 1000, "--p99-ms", 1, cwd=colours,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    shown = " ".join(ran.stdout.split())
    assert "no rate has a p99 of 1 ms" in shown
    assert "what a request costs" in shown
    assert "2.00 MP" in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("bench", "cache", "nothing.tar"), "cannot read nothing.tar"),
        (("bench", "cache", "builtin:nothing"), "there is no built-in 'nothing'"),
        (("bench", "batching", "pack.tar", "--dataset", "photos.tar", "--photos", "1000"), "ask for fewer"),
        (("bench", "storage", "pack.tar", "--dataset", "pack.tar"), "is refused"),
        (("bench", "storage", "pack.tar", "--rate", "0"), "--rate"),
        (("bench", "batching", "--batch-max", "64"), "--batch-max"),
        (("capacity", "--cpu-limit", "5"), "--cpu-limit"),
        (("capacity", "--megapixels", "0"), "--megapixels"),
    ],
)
def test_wrong_use_is_told_in_a_line(colours, arguments, told, monkeypatch):
    monkeypatch.chdir(colours)
    ran = CliRunner().invoke(main, arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert told in ran.stderr
    assert isinstance(ran.exception, SystemExit)


def children(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def running(pid: int) -> bool:
    """Whether a process runs; one that has ended but whom nobody has asked for its exit code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_by_a_signal_leaves_nothing_running(colours, number, code):
    command = [
        sys.executable, "-m", "assay", "capacity", "pack.tar", "--dataset", "photos.tar", "--photos", "40",
        "--rounds", "1000",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=colours, stderr=subprocess.PIPE, text=True) as process:
        # The tracker of its processes, the sender, and the service.
        started = wait_until("the service", lambda: len(found := children(process.pid)) >= 3 and found)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in errors
    wait_until("the end of all", lambda: not any(running(pid) for pid in started))
