"""The demo, on less text than it has for people."""

import hstree as library
from hstree.experiments import results
from hstree_cli import start


def test_it_compares_trees_and_leaves_them_behind(hstree, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(start, "DEMO_CORPUS", str(corpus))
    ran = hstree("demo", "-o", "out/demo")
    found = results.load(tmp_path / "out" / "demo")
    assert [candidate.name for candidate in found.candidates] == list(start.DEMO_CANDIDATES)
    for candidate in found.candidates:
        assert f"{candidate.test:,.1f}" in ran.out
        if candidate.tree_file:
            assert library.load(tmp_path / "out" / "demo" / candidate.tree_file).n_labels == 41
    assert ran.out.startswith("Comparing huffman,")
    assert ran.out.index("\n\nRecommended: ") < ran.out.index("\n candidate ")
    assert ran.out.endswith("out/demo/report.html: open it in a browser\n")
    assert len(ran.out.splitlines()) <= 25
