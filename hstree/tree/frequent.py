"""Most frequent labels below each node of a tree."""

from __future__ import annotations

import numpy as np

from hstree import progress
from hstree._ragged import segment_ids
from hstree._typing import Int64
from hstree.tree.arrays import TreeArrays


def most_frequent(tree: TreeArrays, k: int) -> Int64:
    """Return the k most frequent labels below every node, one pass per level, O(k E log E).

    int64 array (N, k): label ids by descending count, ties by id; -1 where a node has fewer.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 3])
    >>> most_frequent(tree, 2).tolist()
    [[2, 0], [2, 1]]
    """
    n_labels = tree.n_labels
    by_rank = (
        np.arange(n_labels) if tree.counts is None else np.argsort(-tree.counts, kind="stable")
    )
    rank = np.empty(n_labels, np.int64)  # (V,) of each label; n_labels is the rank of none
    rank[by_rank] = np.arange(n_labels)
    best = np.full((tree.n_nodes, k), n_labels)  # ranks of the most frequent labels of each node
    with progress.task("ranking words", total=tree.n_nodes, unit="nodes") as task:
        for nodes, edges, edge_start in reversed(tree.levels):
            child, parent = tree.child[edges], segment_ids(edge_start)  # parent: index into nodes
            is_leaf = child < 0
            # Candidates of all nodes of the level: their own leaves, and the best below them
            parents = np.concatenate([parent[is_leaf], np.repeat(parent[~is_leaf], k)])
            ranks = np.concatenate([rank[~child[is_leaf]], best[child[~is_leaf]].ravel()])
            # Without repeats, by node, then by rank
            pairs = np.unique(parents * (n_labels + 1) + ranks)
            parents, ranks = np.divmod(pairs, n_labels + 1)
            column = np.arange(len(pairs)) - np.searchsorted(parents, parents)
            kept = column < k
            best[nodes[parents[kept]], column[kept]] = ranks[kept]
            task.advance(len(nodes))
    labels: Int64 = np.append(by_rank, -1)[best]
    return labels
