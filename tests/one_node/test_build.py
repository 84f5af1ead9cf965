"""Programs are built anew when their sources change, and only then."""

import os
import shutil

import pytest

from one_node import build
from one_node.commands import ClusterError
from one_node.names import HERE


def test_digest_follows_sources_versions_and_sums_but_not_the_rest(tmp_path):
    module = tmp_path / "tool"
    module.mkdir()
    for name in ("main.go", "go.mod", "go.sum"):
        (module / name).write_text(name)
    program = build.Program("tool")
    digests = [program.sources_digest(tmp_path)]
    (module / "Dockerfile").write_text("FROM scratch")
    assert program.sources_digest(tmp_path) == digests[0]
    for name in ("main.go", "go.mod", "go.sum"):
        (module / name).write_text(f"{name} changed")
        digests.append(program.sources_digest(tmp_path))
    assert len(set(digests)) == 4


def test_program_whose_stamp_fits_is_not_built_again(tmp_path, monkeypatch):
    program = build.Program("pause")
    (tmp_path / "pause").write_text("a build")
    (tmp_path / ".pause.sha256").write_text(program.sources_digest(HERE))
    monkeypatch.setenv("PATH", "/nonexistent")  # no Go to be found: building would fail

    assert build.build_program(program, HERE, tmp_path) is False

    (tmp_path / ".pause.sha256").write_text("of other sources")
    with pytest.raises(ClusterError, match="has no `go` on its PATH: install it"):
        build.build_program(program, HERE, tmp_path)


@pytest.mark.parametrize("told", ["go1.24\n", "go1.26.8\n", "go2.0rc1\n"])
def test_new_enough_go_is_taken(told):
    build.require_go(told)


@pytest.mark.parametrize("told", ["go1.19.8\n", "go1.23.12\n", "devel\n"])
def test_older_go_is_named(told):
    with pytest.raises(ClusterError, match=f"has {told.strip()}: install it from"):
        build.require_go(told)


def test_every_program_has_its_module_here():
    for program in build.PROGRAMS:
        assert (HERE / program.name / "go.mod").exists()


@pytest.mark.system
def test_program_is_built_and_runs(tmp_path):
    program = build.Program("pause")
    assert build.build_program(program, HERE, tmp_path) is True
    assert build.build_program(program, HERE, tmp_path) is False
    assert os.access(tmp_path / "pause", os.X_OK)
    assert shutil.which("pause", path=str(tmp_path))
