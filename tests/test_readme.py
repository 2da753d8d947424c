"""Every block of the README and of the pages for new users, run as printed, in order.

But `## Test it`, which .ci/run runs.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
import typer

from hstree_cli.main import app
from tests import needs
from tests.scripts import ROOT, blocks, python_path

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "runs")


def run(command, folder, environment):
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran


@pytest.fixture
def environment(tmp_path):
    """A PATH whose first `hstree` is the one under test, run by this Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, arguments in (("hstree", "-m hstree_cli"), ("python", "")):
        script = folder / name
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH="{python_path()}" exec "{sys.executable}" {arguments} "$@"\n'
        )
        script.chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_first_two_blocks_are_one_line_each():
    first, second, *_ = blocks("README.md")
    assert (first[0], second[0]) == ("Run it", "Test it")
    assert first[2].count("\n") == second[2].count("\n") == 1


@pytest.mark.slow
def test_run_it(tmp_path):
    """In a copy of the project, as in a clone: a virtual environment, an installation, the demo."""
    copy = tmp_path / "hstree"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    [line] = [code for heading, _, code in blocks("README.md") if heading == "Run it"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = run(["sh", "-c", line], copy, clean | {"HSTREE_CACHE": str(tmp_path / "cache")})
    assert "hstree: warning" not in ran.stderr
    for row in ("huffman", "gmm", "classes", "flat", "kn3"):
        assert re.search(rf"^ *{row} ", ran.stdout, re.M)
    assert (copy / "demo" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md", "docs/glove.md"])
def test_every_other_block(page, tmp_path, environment):
    pytest.importorskip("torch", reason=needs.TORCH)
    folder = tmp_path / "work"
    folder.mkdir()
    commands = [entry for entry in blocks(page) if entry[0] not in ("Run it", "Test it")]
    assert {"python", "sh"} >= {language for _, language, _ in commands} >= {"sh"}
    for _, language, code in commands:
        program = ["sh", "-e", "-c", code] if language == "sh" else ["python", "-c", code]
        ran = run(program, folder, environment)
        assert "warning" not in ran.stderr.lower(), f"{code}\n{ran.stderr}"


def test_the_first_page_of_the_site_shows_what_the_readme_runs():
    shown = [code for _, _, code in blocks("docs/index.md")]
    assert shown
    assert set(shown) <= {code for _, _, code in blocks("README.md")}


def test_every_command_has_an_example_that_runs():
    pages = (blocks(page) for page in ("README.md", "docs/command-line.md"))
    code = "".join(code for page in pages for _, language, code in page if language == "sh")
    shown = set(re.findall(r"(?:^|&& )hstree ([a-z]+)", code, re.M))
    assert shown == set(typer.main.get_command(app).commands)
