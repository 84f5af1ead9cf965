"""Rules of the repository that no tool of ours checks already."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MAKE_TARGET = re.compile(r"^([a-z][a-z-]*):(.*)$", re.MULTILINE)


def tracked(root: Path, *patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=root, capture_output=True, text=True, check=True)
    return [root / line for line in listed.stdout.splitlines() if (root / line).is_file()]


def test_python_files_stay_under_300_lines(root):
    files = tracked(root, "*.py")
    assert files
    assert not {str(path): lines for path in files if (lines := len(path.read_text().splitlines())) > 300}


def test_requirement_files_name_no_address_and_lock_every_package_by_hash(root):
    for path in tracked(root, "requirements/*.txt"):
        text = path.read_text()
        assert "://" not in text
        blocks = re.split(r"\n(?=[a-z0-9])", text)
        assert all("--hash=sha256:" in block for block in blocks), path


def test_folders_named_like_the_standard_library_do_not_shadow_it(root):
    code = "import operator, http, platform; print(operator.__file__, http.__file__, platform.__file__)"
    printed = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert str(root) not in printed
    assert not (root / "operator" / "__init__.py").exists()


def test_every_make_target_is_explained(root):
    makefile = (root / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    explained = {name for name, rest in MAKE_TARGET.findall(makefile) if "## " in rest}
    assert phony == explained


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_documents_name_only_make_targets_that_exist(root, document):
    targets = {name for name, _ in MAKE_TARGET.findall((root / "Makefile").read_text())}
    # Commands stand in code, either in a block of four spaces or fences, or between backticks.
    named = set()
    for command in re.findall(r"(?:^\s*|`|&& )make ((?:[a-z-]+ ?)+)", (root / document).read_text(), re.MULTILINE):
        named |= set(command.split("   ")[0].split())
    assert named
    assert named <= targets, f"{document} names {sorted(named - targets)}"


def test_links_inside_the_repository_lead_somewhere(root):
    links = [
        (path, target)
        for path in tracked(root, "*.md")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
        if "://" not in target
    ]
    assert links
    assert not [(str(path), target) for path, target in links if not (path.parent / target).exists()]
