"""`assay classify` gives the same labels here and from a server."""

import json
import subprocess
import sys

import pytest

from support.images import jpeg


@pytest.fixture
def assay(builtin_dir):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "assay", "classify", *map(str, arguments)], capture_output=True, text=True,
            timeout=120, env={"PATH": "/usr/bin:/bin", "ASSAY_BUILTIN_DIR": str(builtin_dir), "COLUMNS": "100"},
        )  # fmt: skip

    return run


@pytest.fixture
def cat(tmp_path):
    file = tmp_path / "cat.jpg"
    file.write_bytes(jpeg())
    return file


def test_labels_are_the_same_here_and_from_a_server(assay, cat, server):
    here = json.loads(assay(cat, "--json").stdout)
    there = json.loads(assay(cat, "--json", "--url", server.url).stdout)
    assert here["predictions"] == there["predictions"]
    assert here["model"] == there["model"]
    assert "infer;dur=" in here["server_timing"]
    assert "queue;dur=" in there["server_timing"]


def test_table_is_for_people(assay, cat):
    shown = assay(cat, "--top-k", "2").stdout
    assert "tiger cat" in shown
    assert "infer" in shown


def test_bad_file_is_told_and_the_others_go_on(assay, cat, tmp_path, server):
    (tmp_path / "text.txt").write_text("no picture")
    for where in ([], ["--url", server.url]):
        ended = assay(tmp_path / "text.txt", cat, "--json", *where)
        assert ended.returncode == 2
        assert "text.txt: " in ended.stderr
        assert "Expected an image" in ended.stderr
        assert json.loads(ended.stdout)["file"] == str(cat)


def test_server_that_is_not_there_is_told(assay, cat):
    ended = assay(cat, "--url", "http://127.0.0.1:9")
    assert ended.returncode == 2
    assert "did not answer" in ended.stderr
