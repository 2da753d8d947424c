"""The demo, on less text than it has for people."""

import hstree as library
from hstree.experiments import results
from hstree_cli import start


def test_it_compares_trees_and_leaves_them_behind(hstree, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(start, "DEMO_CORPUS", str(corpus))
    ran = hstree("demo", "-o", "out/demo")
    found = results.load(tmp_path / "out" / "demo")
    assert [row.name for row in found.rows] == list(start.DEMO_ROWS)
    for row in found.rows:
        assert f"{row.test:,.1f}" in ran.out
        if row.tree_file:
            assert library.load(tmp_path / "out" / "demo" / row.tree_file).n_labels == 41
    assert ran.out.startswith("Comparing huffman,")
    assert ran.out.index("\n\nRecommended: ") < ran.out.index("\n row ")
    assert ran.out.endswith("out/demo/report.html: open it in a browser\n")
    assert len(ran.out.splitlines()) <= 25
