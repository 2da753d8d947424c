"""The page on gensim and its example run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hstree

pytest.importorskip("gensim", reason="gensim is not installed: hstree[gensim]")

ROOT = Path(__file__).parents[2]


def python(arguments, folder):
    roots = os.pathsep.join([str(ROOT), str(Path(hstree.__file__).parents[1])])
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": roots},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_page(tmp_path):
    page = (ROOT / "docs" / "gensim.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) == 4
    assert len(python(["-c", "".join(blocks)], tmp_path).splitlines()) == 4


def test_the_example(tmp_path):
    printed = python([str(ROOT / "examples" / "gensim_tree.py")], tmp_path)
    rows = {line[:16].strip(): line[16:].split() for line in printed.splitlines()[1:]}
    assert set(rows) == {"gensim's own", "huffman", "gmm"}
    length = {name: float(row[0]) for name, row in rows.items()}
    assert length["huffman"] == length["gensim's own"] < length["gmm"]
    assert all(4 < float(row[-1]) < 7 for row in rows.values())
