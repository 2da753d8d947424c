"""Every block of the README, run as printed, in order; but `## Test it`, which .ci/run runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hstree
import hstree_cli

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "runs")


def blocks():
    """Return (heading, language, code) of every block of code."""
    heading, found = "", []
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for match in re.finditer(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        if match[1] is not None:
            heading = match[1]
        else:
            found.append((heading, match[2], match[3]))
    return found


def run(command, folder, environment):
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran


@pytest.fixture
def environment(tmp_path):
    """A PATH whose first `hstree` is the one under test, run by this Python."""
    roots = os.pathsep.join(str(Path(m.__file__).parents[1]) for m in (hstree, hstree_cli))
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, arguments in (("hstree", "-m hstree_cli"), ("python", "")):
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH="{roots}" exec "{sys.executable}" {arguments} "$@"\n'
        )
        script.chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_first_two_blocks_are_one_line_each():
    first, second, *_ = blocks()
    assert (first[0], second[0]) == ("Run it", "Test it")
    assert first[2].count("\n") == second[2].count("\n") == 1


@pytest.mark.slow
def test_run_it(tmp_path):
    """In a copy of the project, as in a clone: a virtual environment, an installation, the demo."""
    copy = tmp_path / "hstree"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    [line] = [code for heading, _, code in blocks() if heading == "Run it"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = run(["sh", "-c", line], copy, clean | {"HSTREE_CACHE": str(tmp_path / "cache")})
    assert "hstree: warning" not in ran.stderr
    for row in ("huffman", "gmm", "classes", "flat", "kn3"):
        assert re.search(rf"^ *{row} ", ran.stdout, re.M)
    assert (copy / "demo" / "report.html").exists()


@pytest.mark.slow
def test_every_other_block(tmp_path, environment):
    folder = tmp_path / "work"
    folder.mkdir()
    commands = [entry for entry in blocks() if entry[0] not in ("Run it", "Test it")]
    assert {language for _, language, _ in commands} == {"python", "sh"}
    for _, language, code in commands:
        program = ["sh", "-e", "-c", code] if language == "sh" else ["python", "-c", code]
        ran = run(program, folder, environment)
        assert "warning" not in ran.stderr.lower(), f"{code}\n{ran.stderr}"


def test_every_command_has_an_example_that_runs(hstree_commands):
    code = "".join(code for _, language, code in blocks() if language == "sh")
    shown = set(re.findall(r"(?:^|&& )hstree ([a-z]+)", code, re.M))
    assert shown == hstree_commands


@pytest.fixture
def hstree_commands():
    import typer

    from hstree_cli.main import app

    return set(typer.main.get_command(app).commands)
