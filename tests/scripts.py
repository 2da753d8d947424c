"""This Python on a page's script or an example, with the hstree under test."""

import os
import subprocess
import sys
from pathlib import Path

import hstree
import hstree_cli

ROOT = Path(__file__).parents[1]


def python_path():
    """Return the PYTHONPATH of the hstree under test."""
    roots = [ROOT, *(Path(package.__file__).parents[1] for package in (hstree, hstree_cli))]
    return os.pathsep.join(map(str, roots))


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
