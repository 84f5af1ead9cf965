"""``assay model quantize``, as a user types it: its table, its warnings, its exit codes, and what it leaves behind."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from assay.packs.archive import read_pack
from support.networks import excited
from support.small_packs import COLOURS, colour_dataset, colour_jpeg, colour_model, colour_pack


class Workbench:
    """A folder with datasets, where the command runs with a folder for temporary files of its own."""

    def __init__(self, folder):
        self.folder, self.temporary, self.cache = folder, folder / "tmp", folder / "cache"
        self.temporary.mkdir()
        colour_dataset(folder / "calibrate.tar", 12, groups=12)
        photos = folder / "judge"
        photos.mkdir()
        for name, colour in COLOURS.items():
            (photos / f"{name}.jpg").write_bytes(colour_jpeg(colour, 50))
        from assay.building.folder import pack_folder

        pack_folder(photos, None, "judge", folder / "judge.tar")

    def start(self, *argv, judge="judge.tar", **options):
        """Start the command on `fp32.tar`."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        environment |= {"ASSAY_CACHE_DIR": str(self.cache), "TMPDIR": str(self.temporary)}
        environment |= {"ASSAY_BUILTIN_DIR": str(self.folder / "none")}
        command = [sys.executable, "-m", "assay", "model", "quantize", "fp32.tar", "--judge", judge, *map(str, argv)]
        if "--calibration" not in argv:
            command += ["--calibration", "calibrate.tar"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=environment, cwd=self.folder, **pipes, **options)

    def run(self, *argv, **options):
        """Run it to its end; return exit code, stdout and stderr."""
        process = self.start(*argv, **options)
        out, error = process.communicate(timeout=120)
        assert "Traceback" not in error
        return process.returncode, out, error

    def left(self):
        """Temporary and half-written files; not the note of its session that ONNX Runtime keeps for its telemetry."""
        found = [*self.temporary.iterdir(), *self.folder.glob(".*"), *self.cache.glob("**/.*")]
        return [path for path in found if path.name != ".ses"]


@pytest.fixture
def bench(tmp_path):
    return Workbench(tmp_path)


def test_every_recipe_tried_is_shown_and_the_pack_says_how_it_was_made(bench):
    colour_pack(bench.folder / "fp32.tar", model=excited())
    code, out, error = bench.run("--out", "made/int8.tar", "--json", "--min-agreement", "0", "--min-containment", "0")
    assert code == 0, error
    shown = json.loads(out)
    pack = read_pack(bench.folder / "made" / "int8.tar", shown["digest"])
    assert pack.manifest.precision == "INT8"
    assert pack.manifest.quantization.recipe == shown["kept"]
    assert [tried["recipe"] for tried in shown["tried"]][-1] == "static-reduce-range-percentile"
    for tried in shown["tried"]:
        assert tried["recipe"] in error
        assert 0 < tried["cost_ratio_lower"] <= tried["cost_ratio"] <= tried["cost_ratio_upper"]
        assert (tried["images"], tried["model_bytes"] > 0) == (4, True)
    assert shown["reason"] in error
    assert "note: calibrated on 12 images: colours has no more, and 128 were asked for" in error
    assert "judged on 4 images of 4 photos" in error
    assert bench.left() == []


def test_where_integers_gain_nothing_fp32_is_better_and_whoever_insists_is_told_by_the_exit_code(bench):
    # Measured: convolutions over three channels cost 1.57 to 1.61 times as much in integers, a dense layer alone 1.12.
    colour_pack(bench.folder / "fp32.tar", model=colour_model(work=3))
    code, out, error = bench.run("--out", "int8.tar", "--json", "--min-agreement", "0", "--min-containment", "0")
    shown = json.loads(out)
    assert (code, shown["wins"]) == (0, False)
    assert "warning: FP32 is better here: " in error
    assert "is written all the same" in error
    assert all(tried["cost_ratio"] > 1 for tried in shown["tried"])
    assert read_pack(bench.folder / "int8.tar").manifest.precision == "INT8"
    code, _, error = bench.run("--out", "i.tar", "--quick", "--require-gain")
    assert code == 1
    assert "FP32 is better here" in error
    assert (bench.folder / "i.tar").is_file()


def test_an_agreement_nobody_reaches_is_a_warning_and_with_require_gain_a_failure(bench):
    # Two classes that differ by less than 8 bits can tell.
    import numpy as np

    weight = np.array([[1, 0, 0], [1, 1e-4, 0], [0, -1, 0], [0, 0, -1]], np.float32)
    colour_pack(bench.folder / "fp32.tar", model=colour_model(weight, work=3))
    options = ("--out", "int8.tar", "--recipe", "static-reduce-range", "--min-agreement", "100")
    code, _, error = bench.run(*options)
    assert code == 0
    assert "warning: FP32 is better here: no recipe reaches the goal" in error
    assert bench.run(*options, "--require-gain")[0] == 1


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--out", "/proc/none/x.tar"), "cannot write /proc/none/x.tar"),
        (("--out", "fp32.tar/x.tar"), "cannot write fp32.tar/x.tar"),
        (("--out", "x.tar", "--recipe", "magic"), "there is no recipe called 'magic'"),
        (("--out", "x.tar", "--calibration", "judge.tar"), "calibrated a pack"),
        (("--out", "x.tar", "--calibration", "fp32.tar"), "'dataset.json' is missing"),
        (("--out", "x.tar", "--calibration", "none.tar"), "none.tar"),
        (("--out", "x.tar", "--calibration-images", "0"), "--calibration-images"),
        (("--out", "x.tar", "--min-agreement", "101"), "--min-agreement"),
    ],
)
def test_what_cannot_work_ends_before_the_long_work(bench, argv, told):
    colour_pack(bench.folder / "fp32.tar")
    code, out, error = bench.run(*argv)
    assert (code, out) == (2, "")
    assert told in error
    assert "quantising" not in error
    assert not (bench.folder / "x.tar").exists()
    assert bench.left() == []


def test_a_disk_that_fills_up_while_writing_leaves_no_half_pack(bench):
    colour_pack(bench.folder / "fp32.tar")

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    code, _, error = bench.run("--out", "x.tar", "--recipe", "static-reduce-range", preexec_fn=small_files)
    assert code == 2
    assert "assay: error: cannot write x.tar: File too large" in error
    assert not (bench.folder / "x.tar").exists()
    assert bench.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_in_the_middle_it_leaves_nothing_behind(bench, number):
    colour_pack(bench.folder / "fp32.tar", model=excited())
    # The judging photos are built into the cache first, which takes seconds: a half-written file is there meanwhile.
    process = bench.start("--out", "x.tar", judge="builtin:photos", bufsize=1)
    for line in process.stderr:
        if "building photos" in line:
            break
    while process.poll() is None and not list(bench.cache.glob(".*")):
        pass
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == (1 if number == signal.SIGINT else 128 + number)
    assert "Traceback" not in error
    assert not (bench.folder / "x.tar").exists()
    assert bench.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_while_quantising_it_leaves_nothing_behind(bench, number):
    colour_pack(bench.folder / "fp32.tar", model=excited())
    process = bench.start("--out", "x.tar", bufsize=1)
    for line in process.stderr:
        if "static: quantising" in line or "static-reduce-range: quantising" in line:
            break
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (1 if number == signal.SIGINT else 128 + number)
    assert not (bench.folder / "x.tar").exists()
    assert bench.left() == []
