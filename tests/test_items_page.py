"""The page on item vectors runs as it stands."""

import pytest

from tests import needs
from tests.scripts import ROOT, run_python, scripts_of


def test_the_page(tmp_path):
    cache = {"HSTREE_CACHE": str(tmp_path / "cache")}
    printed = run_python(["-c", "".join(scripts_of("items.md"))], tmp_path, **cache).splitlines()
    assert printed[0].startswith("Tree(20000 labels, ")
    assert 1 < float(printed[1].split()[0]) < 15  # fewer than log2(20,000) + 1
    assert printed[2].count("'") == 10
    assert printed[-1] in ("take huffman", "take flat")


def test_the_part_on_torch(tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    page = (ROOT / "docs" / "items.md").read_text(encoding="utf-8")
    [script] = page.split("```py\n")[1:]
    run_python(["-c", scripts_of("items.md")[0] + script.partition("```")[0]], tmp_path)
