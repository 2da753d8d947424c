"""`check`, `stats` and `show` on sound trees."""

import json
from pathlib import Path

import pytest

from hstree.tree import Tree
from tests.strategies import chain


@pytest.fixture
def odd_tree(tmp_path):
    """Names, wide nodes, a label with two codes, labels that are not words."""
    tree = Tree.from_children(
        ["the", "[bold]a\nb", "\x1b[31m", "dog"],
        [[1, ~0, 2], [~1, ~2], [~3, ~1]],
        counts=[5, 3, 2, 1],
        names=["entity.n.01", None, "animal.n.01"],
        meta={"method": "by hand"},
    )
    tree.save(tmp_path / "odd.npz")
    return tree


def test_figures_are_written_as_json(hstree, tree, tmp_path):
    assert str(tree) in "".join(hstree("check", tree).out.split())  # a long line is wrapped
    hstree("stats", tree, "--json", "stats.json")
    figures = json.loads((tmp_path / "stats.json").read_text())["tree"]
    # The corpus has 40 words, <eos> and <unk>; a binary tree has one node less than labels.
    assert (figures["labels"], figures["nodes"]) == (42, 41)
    assert figures["scores_per_target"] == pytest.approx(figures["huffman_length"])


def test_a_tree_without_counts_and_of_one_label(hstree, tmp_path):
    Tree(["only"], [0], []).save(tmp_path / "one.json")
    for command in (["check"], ["stats", "--json", "s.json"], ["show"], ["show", "--word", "only"]):
        hstree(command[0], "one.json", *command[1:])
    assert json.loads((tmp_path / "s.json").read_text())["tree"]["entropy"] is None


def test_show_draws_the_top(hstree, odd_tree):
    ran = hstree("show", "odd.npz")
    # 5 of 11 counts are under "the"; the label with two codes gives half of its 3 to each.
    for line in (
        "node 0 entity",
        "45.45%  the",
        "31.82%  node 1  2 leaves",
        "22.73%  node 2 animal",
    ):
        assert line in ran.out
    # Markup and control characters of labels are shown, not interpreted.
    assert "[bold]a\\nb" in ran.out
    assert "\x1b" not in ran.out
    assert "dog" in hstree("show", "odd.npz", "--depth", "2").out.splitlines()[-2]
    assert len(hstree("show", "odd.npz", "--depth", "1").out.splitlines()) == 4


def test_show_draws_every_code_of_a_word(hstree, odd_tree):
    ran = hstree("show", "odd.npz", "--word", "[bold]a\nb")
    assert "2 codes, counted 3 times" in ran.out
    assert "code 1 of 2: 2 decisions" in ran.out
    assert "code 2 of 2: 2 decisions" in ran.out
    taken = [line.split() for line in ran.out.splitlines() if ">" in line]
    decisions = [row[1] + row[row.index(">") + 1] for row in taken]
    assert decisions == ["00", "10", "02", "21"]


def test_show_counts_what_it_leaves_out(hstree, corpus, tmp_path):
    hstree("build", "-m", "flat", corpus, "-o", "flat.json")
    assert "32 more branches" in hstree("show", "flat.json").out
    assert "39 more branches" in hstree("show", "flat.json", "--word", "w0").out
    chain(100).save(tmp_path / "chain.json")
    ran = hstree("show", "chain.json", "--word", "w99")
    assert "99 decisions" in ran.out
    assert "59 more decisions" in ran.out
    assert ran.out.count(" > ") == 40


def test_stats_name_the_bounds_and_what_the_builder_recorded(hstree, corpus, tmp_path):
    hstree("build", "-m", "flat", corpus, "-o", "flat.json")
    assert "(binary codes, one per label)" in hstree("stats", "flat.json").out
    Tree.from_children(["a", "b"], [[~0, 1], [~0, ~1]]).save(tmp_path / "two.json")
    assert "the code length is their sum" in hstree("stats", "two.json").out
    hstree("build", "-m", "classes n_classes=4", corpus, "-o", "tree.json")
    out = " ".join(hstree("stats", "tree.json").out.split())
    assert "classes by=exchange, number=4, " in out
    assert "options cluster_by=exchange, n_classes=4, " in out


def test_the_tree_in_a_folder_is_named(refused, tree):
    for folder in ("model", "empty"):
        Path(folder).mkdir()
    tree.rename("model/tree.json")
    for command in ("check", "stats", "show"):
        refused(
            command, "model", saying="is a folder, as of a model, and no tree file; name model/"
        )
        refused(command, "empty", saying="no tree file; it has no tree.json")
