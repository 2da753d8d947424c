"""This Python on a page's script or an example, with the hstree under test."""

import os
import re
import subprocess
import sys
from pathlib import Path

import hstree
import hstree_cli

ROOT = Path(__file__).parents[1]


def python_path():
    roots = [ROOT, *(Path(package.__file__).parents[1] for package in (hstree, hstree_cli))]
    return os.pathsep.join(map(str, roots))


def blocks(page):
    """Return the blocks of code of a page, each as its heading, language and code."""
    found, heading, text = [], "", (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        heading = heading if match[1] is None else match[1]
        if match[2]:
            found.append((heading, match[2], match[3]))
    return found


def scripts_of(page, language="python"):
    return [code for _, its_language, code in blocks(f"docs/{page}") if its_language == language]


def run_python(arguments, folder, *, timeout=600, **environment):
    """Run it in a folder, and return what it printed."""
    ran = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": python_path(), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout
