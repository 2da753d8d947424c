"""The pages "Add a ...": their packages are installed, and their commands and Python run."""

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import needs

ROOT = Path(__file__).parents[2]
PLUGINS = {"add-a-builder": "endings"}
pages = pytest.mark.parametrize("page", PLUGINS)


def blocks(page):
    """Return the blocks of code of a page, as {language: [code, ...]}."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found = {}
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        found.setdefault(language, []).append(code)
    return found


@pages
def test_the_page_shows_the_files_of_the_package(page):
    name = PLUGINS[page]
    folder = ROOT / "examples" / "plugins" / name
    shown = blocks(page)
    assert shown["toml"] == [(folder / "pyproject.toml").read_text(encoding="utf-8")]
    assert shown["python"][0] == (folder / f"hstree_{name}.py").read_text(encoding="utf-8")
    assert shown["console"] == [f"pip install ./examples/plugins/{name}\n"]


@pytest.mark.skipif(not (find_spec("hatchling") and find_spec("pip")), reason=needs.HATCHLING)
@pages
def test_the_package_works_once_it_is_installed(page, tmp_path, monkeypatch, hstree):
    site = tmp_path / "site"
    package = ROOT / "examples" / "plugins" / PLUGINS[page]
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", site, package]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    monkeypatch.syspath_prepend(site)
    shown = blocks(page)
    for line in "".join(shown["sh"]).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "hstree"
        ran = hstree(*arguments)
        assert ran.status == 0, ran.err
    exec("".join(shown["python"][1:]), {})
