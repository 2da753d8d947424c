"""The page on gensim and its example run as printed."""

import pytest

from tests.scripts import ROOT, run_python, scripts_of

pytest.importorskip("gensim", reason="gensim is not installed: hstree[gensim]")


def test_the_page(tmp_path):
    blocks = scripts_of("gensim.md")
    assert len(blocks) == 6
    assert len(run_python(["-c", "".join(blocks)], tmp_path).splitlines()) == 6


@pytest.mark.slow
def test_the_example(tmp_path):
    printed = run_python([str(ROOT / "examples" / "gensim_tree.py")], tmp_path)
    rows = {line[:16].strip(): line[16:].split() for line in printed.splitlines()[1:]}
    assert set(rows) == {"gensim's own", "huffman", "gmm"}
    length = {name: float(row[0]) for name, row in rows.items()}
    assert length["huffman"] == length["gensim's own"] < length["gmm"]
    assert all(4 < float(row[-1]) < 7 for row in rows.values())
