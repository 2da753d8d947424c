"""The pages "Add a ...": their packages are installed, and their commands and Python run."""

import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests import needs
from tests.scripts import ROOT, blocks

PLUGINS = {"add-a-builder": "endings", "add-an-output-layer": "smoothed", "add-a-model": "recency"}
pages = pytest.mark.parametrize("page", PLUGINS)


def read_code(page, *languages):
    """Return the blocks of code of a page in these languages, as pairs (language, code)."""
    return [block[1:] for block in blocks(f"docs/{page}.md") if block[1] in languages]


@pages
def test_the_page_includes_the_files_of_the_package(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    folder = f"examples/plugins/{PLUGINS[page]}"
    for name in (f"hstree_{PLUGINS[page]}.py", "pyproject.toml"):
        assert f"{{literalinclude}} ../{folder}/{name}\n" in text
        assert (ROOT / folder / name).exists()
    assert read_code(page, "console") == [("console", f"pip install ./{folder}\n")]


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("hatchling") and find_spec("pip")), reason=needs.HATCHLING)
@pages
def test_the_package_works_once_it_is_installed(page, tmp_path, monkeypatch, hstree):
    site = tmp_path / "site"
    package = ROOT / "examples" / "plugins" / PLUGINS[page]
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", site, package]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    monkeypatch.syspath_prepend(site)
    for language, code in read_code(page, "sh", "python"):
        if language == "python":
            exec(code, {})
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "hstree"
            hstree(*arguments)
