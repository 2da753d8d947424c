"""The page on counts, vectors and ids runs as printed."""

import pytest

from tests.scripts import run_python, scripts_of


def test_the_page(tmp_path):
    pytest.importorskip("pandas", reason="pandas is not installed: hstree[notebook]")
    script = "".join(scripts_of("arrays.md"))
    printed = run_python(["-c", script], tmp_path, HSTREE_CACHE=str(tmp_path / "cache"))
    lengths, is_in, code, near, sessions, stream, *models = printed.splitlines()
    weighted, huffman = map(float, lengths.split())
    assert weighted == pytest.approx(huffman)
    assert is_in == "True 2000"
    assert code.startswith("[(0, ")
    assert near.count("item") == 5
    assert sessions == "('0', '1', '2', '3', '4', '5', '6', '7', '<eos>')"
    assert stream == "[4, 1, 7, 9, 0, 9, 7, 2, 9] <eos>"
    assert models[-1] in ("huffman", "random")
