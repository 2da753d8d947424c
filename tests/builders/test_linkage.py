from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster import hierarchy
from sklearn.cluster import AgglomerativeClustering

from hstree.builders import linkage as module
from hstree.builders.linkage import Criterion, linkage, tree_from_linkage
from hstree.errors import InputError
from tests.builders.label_sets import child_sets, label_sets
from tests.builders.vectors import normal, words

pytestmark = pytest.mark.filterwarnings("error")


def merged_sets(merges, labels):
    """The labels of every cluster that a linkage makes, merge by merge."""
    clusters = [frozenset([label]) for label in labels]
    for a, b in np.asarray(merges)[:, :2].astype(int):
        clusters.append(clusters[a] | clusters[b])
    return clusters[len(labels) :]


@st.composite
def linkages(draw):
    n = draw(st.integers(1, 20))
    free, merges = list(range(n)), []
    while len(free) > 1:
        a = free.pop(draw(st.integers(0, len(free) - 1)))
        b = free.pop(draw(st.integers(0, len(free) - 1)))
        merges.append([a, b])
        free.append(n + len(merges) - 1)
    return np.array(merges).reshape(-1, 2), [f"w{i}" for i in range(n)]


@given(linkages(), st.sampled_from([np.int32, np.int64, np.float64]))
def test_every_merge_is_a_node_and_the_order_of_children_is_kept(drawn, dtype):
    merges, labels = drawn
    tree = tree_from_linkage(merges.astype(dtype), labels, counts=range(len(labels)))
    expected = merged_sets(merges, labels)
    assert sorted(map(sorted, label_sets(tree))) == sorted(map(sorted, expected))
    assert (np.diff(tree.depth) >= 0).all(), "level by level"
    assert tree.counts.tolist() == list(range(len(labels)))
    if len(labels) > 1:
        every = [frozenset([label]) for label in labels] + expected
        assert child_sets(tree, 0) == [every[c] for c in merges[-1]]


def test_scikit_learn_s_clusterings_become_trees():
    X = normal(60, 3)
    model = AgglomerativeClustering(n_clusters=1, linkage="average").fit(X)
    tree = tree_from_linkage(model.children_, words(X).labels)
    assert set(label_sets(tree)) == set(label_sets(linkage(words(X), criterion="average")))


def test_nodes_of_a_level_are_numbered_from_the_last_merge_back():
    labels = [f"w{i}" for i in range(300)]
    merges = hierarchy.linkage(normal(300, 2), "ward")
    merge_of = {below: i for i, below in enumerate(merged_sets(merges, labels))}
    tree = tree_from_linkage(merges, labels)
    merge = np.array([merge_of[below] for below in label_sets(tree)])
    for depth in range(tree.depth.max() + 1):
        assert (np.diff(merge[tree.depth == depth]) < 0).all()


@pytest.mark.parametrize(
    ("merges", "expected"),
    [
        ([[0, 1]], "1 merges for 3 labels"),
        ([[0, 1], [2, 3], [4, 5]], "3 merges for 3 labels"),
        ([0, 1, 2], "shape"),
        ([[0], [1]], "shape"),
        ([["a", "b"], ["c", "d"]], "matrix of numbers"),
        ([[0, 1], [2, 4]], "row 1 of the linkage merges the cluster 4"),
        ([[0, 3], [1, 2]], "row 0 of the linkage merges the cluster 3"),
        ([[0, -1], [1, 2]], "cluster -1"),
        ([[0, 1.5], [1, 2]], r"cluster 1\.5"),
        ([[0, np.nan], [1, 2]], "cluster nan"),
        ([[0, 1], [1, 3]], "cluster 1 twice"),
        ([[0, 0], [1, 3]], "cluster 0 twice"),
    ],
)
def test_what_is_no_linkage_is_refused(merges, expected):
    with pytest.raises(InputError, match=expected) as error:
        tree_from_linkage(merges, ["a", "b", "c"])
    assert "\n" not in str(error.value)


def test_too_many_words_are_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(module, "MAX_LABELS", 10)
    assert linkage(words(normal(10, 2))).n_nodes == 9
    with pytest.raises(InputError, match="limit is 10 words"):
        linkage(words(normal(11, 2)))


@pytest.mark.parametrize("criterion", get_args(Criterion))
@pytest.mark.parametrize("apart", [0, 100])
def test_the_merges_are_those_of_scipy_here_and_in_another_process(criterion, apart, monkeypatch):
    monkeypatch.setattr(module, "WORTH_PROCESS", apart)
    X = words(normal(40, 4))
    expected = merged_sets(hierarchy.linkage(X.vectors.astype(float), criterion), X.labels)
    assert set(label_sets(linkage(X, criterion=criterion))) == set(expected)
