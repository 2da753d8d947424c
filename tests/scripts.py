"""Run scripts of pages and examples by this Python, with the hstree under test."""

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
    entries = []
    heading = ""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        heading = heading if match[1] is None else match[1]
        if match[2]:
            entries.append((heading, match[2], match[3]))
    return entries


def scripts_of(page, language="python"):
    return [code for _, name, code in blocks(f"docs/{page}") if name == language]


def run_python(arguments, folder, *, timeout=600, **environment):
    """Run Python with arguments in a folder, and return its output."""
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
