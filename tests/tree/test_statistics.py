import json
from html import escape

import numpy as np
import pytest
from hypothesis import given

from hstree.tree import Tree
from tests.strategies import chain, codes_by_walk, trees

KEYS = {
    "method", "nodes", "labels", "codes_per_label", "code_length", "scores_per_target",
    "root_fraction", "entropy", "huffman_length", "depth", "sha256",
}  # fmt: skip


def scores_one_by_one(tree):
    """Count the scores of each label: codes share those of nodes of more than 32 children."""
    width, scores = tree.fan_out, []
    for codes in codes_by_walk(tree):
        visits = [node for code in codes for node, _ in code]
        shared = {node for node in visits if width[node] > 32}
        computed = [*shared, *(node for node in visits if node not in shared)]
        scores.append(sum(1 if width[node] == 2 else int(width[node]) for node in computed))
    return scores


@given(trees(only_codes=True))
def test_figures_are_those_of_the_codes_one_by_one(tree):
    codes = codes_by_walk(tree)
    stats = tree.stats()
    length = [sum(map(len, of)) for of in codes]
    scores = scores_one_by_one(tree)
    every = [len(code) for of in codes for code in of]
    assert (stats.labels, stats.nodes, stats.sha256) == (tree.n_labels, tree.n_nodes, tree.sha256)
    assert stats.codes_per_label == pytest.approx(np.mean([len(c) for c in codes]))
    assert stats.max_codes_per_label == max(len(c) for c in codes)
    assert stats.depth == max(every, default=0)
    assert stats.length_uniform == pytest.approx(np.mean(length))
    counts = None if tree.counts is None else [int(count) for count in tree.counts]
    if counts and any(counts):
        assert stats.length_weighted == pytest.approx(np.average(length, weights=counts))
        assert stats.scores_per_target == pytest.approx(np.average(scores, weights=counts))
        is_at_root = [any(len(code) == 1 for code in of) for of in codes]
        assert stats.root_fraction == pytest.approx(np.average(is_at_root, weights=counts))
    else:
        assert (stats.length_weighted, stats.entropy, stats.huffman_length) == (None, None, None)
        assert stats.root_fraction is None
        assert stats.scores_per_target == pytest.approx(np.mean(scores))


def test_the_codes_of_a_label_share_the_scores_of_wide_nodes():
    k = 34  # children of the root, nodes with two labels each
    nodes = [[~node, ~((node + 1) % k)] for node in range(k)]
    tree = Tree.from_children([str(i) for i in range(k)], [range(1, k + 1), *nodes])
    assert scores_one_by_one(tree) == [k + 2] * k
    assert tree.stats().scores_per_target == k + 2


@given(trees(several_codes=False, wide=False, only_codes=True))
def test_no_binary_tree_with_one_code_a_label_beats_the_huffman_length(tree):
    stats = tree.stats()
    if stats.length_weighted is not None:
        assert stats.entropy <= stats.huffman_length * (1 + 1e-12) + 1e-12
        assert stats.huffman_length <= stats.length_weighted * (1 + 1e-12)


def test_the_flat_tree_costs_a_score_for_every_label():
    stats = Tree(list("abcde"), [0, 5], [~0, ~1, ~2, ~3, ~4], counts=[4, 2, 1, 1, 0]).stats()
    assert (stats.scores_per_target, stats.length_weighted, stats.depth) == (5, 1, 1)
    assert (stats.entropy, stats.huffman_length) == (1.75, 1.875)  # the zero count is placed too


def test_one_label_costs_nothing():
    stats = Tree(["only"], [0], [], counts=[9]).stats()
    assert (stats.codes_per_label, stats.depth, stats.length_weighted) == (0, 0, 0)
    assert (stats.entropy, stats.huffman_length, stats.scores_per_target) == (0, 0, 0)


def test_one_giant_count_overflows_nothing():
    stats = Tree(list("abc"), [0, 3], [~0, ~1, ~2], counts=[2**63 - 1] * 3).stats()
    assert stats.entropy == pytest.approx(np.log2(3))
    assert stats.huffman_length == pytest.approx(5 / 3)


@given(trees(max_labels=6))
def test_the_dictionary_has_the_keys_of_the_command_line_and_is_json(tree):
    figures = tree.stats().as_dict()
    assert figures.keys() == KEYS
    assert figures["code_length"].keys() == {"uniform", "weighted"}
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_the_method_is_the_one_that_the_tree_names():
    tree = Tree(["a", "b"], [0, 2], [~0, ~1], meta={"method": "flat"})
    assert tree.stats().method == "flat"
    assert tree.with_meta({}).stats().method is None


def test_a_chain_of_100_000_labels_has_figures():
    n = 100_000
    stats = chain(n).stats()
    assert stats.depth == n - 1
    assert stats.length_uniform == (n * (n - 1) / 2 + n - 1) / n


def test_a_notebook_shows_the_figures():
    tree = Tree(["<a>", "b"], [0, 2], [~0, ~1], counts=[3, 1], meta={"method": "<flat>"})
    html = tree._repr_html_()
    for name, value in tree.stats().facts():
        assert f">{name}</td><td>{escape(value)}</td>" in html
    assert dict(tree.stats().facts())["code length"] == "1.00 by counts, 1.00 per label"
    assert html.startswith("<p>Tree(2 labels, 1 nodes, method=&#x27;&lt;flat&gt;&#x27;)</p><table>")
    assert "<flat>" not in html
