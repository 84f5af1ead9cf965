"""The command `assay`: its overview costs no imports, its errors are one line."""

import re
import subprocess
import sys

from assay.cli import COMMANDS

OVERVIEW = """
import sys
import assay.cli
assay.cli.main(["--help"], standalone_mode=False)
print(sorted(module for module in sys.modules if module in ("numpy", "onnxruntime", "fastapi", "PIL")))
"""


def assay(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "assay", *arguments], capture_output=True, text=True, timeout=120,
        env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def test_overview_lists_every_command_without_importing_it():
    shown = subprocess.run(
        [sys.executable, "-c", OVERVIEW], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert shown.endswith("[]\n")
    for name in COMMANDS:
        assert f"\n  {name}" in shown


def test_every_command_has_help_with_an_example():
    commands = [(name,) for name in COMMANDS]
    for command in commands:  # grows by the commands of each group
        shown = assay(*command, "--help")
        assert shown.returncode == 0, shown.stderr
        assert "\\b" not in shown.stdout, command  # click's mark for "keep these lines", spelt so that it is no mark
        _, is_group, listed = shown.stdout.partition("Commands:")
        assert is_group or "Example:\n" in shown.stdout, command
        commands += [(*command, name) for name in re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)]
    assert len(commands) > len(COMMANDS)


def test_error_is_one_line_on_stderr_and_exit_code_2():
    ended = assay("serve", ASSAY_DEADLINE="9")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "assay: error: ASSAY_DEADLINE is not a setting: did you mean ASSAY_DEADLINE_MS?\n"


def test_wrong_use_of_the_check_is_an_error_and_no_verdict():
    assert assay("check", "--no-such-option").returncode == 3
    assert assay("serve", "--no-such-option").returncode == 2


def test_unknown_command_is_told():
    ended = assay("sreve")
    assert ended.returncode == 2
    assert "No such command" in ended.stderr
