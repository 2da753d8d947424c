"""`convert`: by endings and by name, what is said, and what is refused."""

import numpy as np

from hstree.tree import load


def test_there_and_back(hstree, tree, tmp_path):
    there = hstree("convert", tree, "x.napkinxc")
    assert "(napkinxc)" in there.out
    assert "not kept" in there.out  # a tree file says how its tree was made
    hstree("convert", "x.napkinxc", "back.json")
    assert load(tmp_path / "back.json") == load(tree)


def test_formats_by_name(hstree, tree, tmp_path):
    hstree("convert", tree, "tree.txt", "--to", "dot")
    assert (tmp_path / "tree.txt").read_text().startswith("digraph tree {")
    hstree("convert", tree, "brackets", "--to", "newick")
    hstree("convert", "brackets", "again.json", "--from", "newick")
    assert sorted(load(tmp_path / "again.json").labels) == sorted(load(tree).labels)


def test_a_linkage_with_labels(hstree, tmp_path):
    np.save(tmp_path / "z.npy", [[0, 1, 0.5, 2], [2, 3, 0.7, 3]])
    (tmp_path / "words.txt").write_text("cat\ndog\nthe\n")
    hstree("convert", "z.npy", "tree.json", "--labels", "words.txt")
    assert load(tmp_path / "tree.json").labels == ("cat", "dog", "the")


def test_a_taxonomy(hstree, refused, tmp_path):
    (tmp_path / "x.csv").write_text(
        "parent,child\nthing,animal\nanimal,cat\nanimal,dog\nthing,car\n"
    )
    ran = hstree("convert", "x.csv", "tree.json")
    assert "(taxonomy)" in ran.out
    assert load(tmp_path / "tree.json").names == ("thing", "animal")
    hstree("convert", "tree.json", "x.nwk")
    hstree("convert", "x.nwk", "again.json")
    assert load(tmp_path / "again.json").sha256 == load(tmp_path / "tree.json").sha256
    refused("convert", "tree.json", "y.csv", status=2, saying="taxonomy can only be read")
    (tmp_path / "two.csv").write_text("parent,child\na,cat\nb,dog\n")
    refused("convert", "two.csv", "y.json", saying="two.csv: 'a', 'b' have no parent")


def test_nothing_is_overwritten_unasked(hstree, refused, tree, tmp_path):
    (tmp_path / "x.json").write_text("mine\n")
    refused("convert", tree, "x.json", saying="add --force to replace it")
    (tmp_path / "x.labels.tsv").write_text("mine\n")
    refused("convert", tree, "x.napkinxc", saying="x.labels.tsv exists")
    hstree("convert", tree, "x.napkinxc", "--force")
    assert (tmp_path / "x.labels.tsv").read_text() != "mine\n"
