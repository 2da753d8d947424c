"""A tree from the graph of WordNet: one parent for each synset, and the nodes that remain.

In WordNet, a synset may have several parents. Nodes are as wide as in WordNet.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from hstree._arrays import Int64, offsets
from hstree.builders.prune import GONE, collapse
from hstree.builders.wordnet.taxonomy import POS, Taxonomy
from hstree.tree import Tree
from hstree.tree.order import reorder, sum_to_root

#: Names of the nodes above the roots, in the order of `POS`.
POS_NAMES = ("nouns", "verbs", "adjectives", "adverbs")


class Hierarchy(NamedTuple):
    """One parent for each synset above the words."""

    synset: Int64  #: (n,) ascending
    parent: Int64  #: (n,) index of each parent in `synset`, -1 for a root


def resolve(taxonomy: Taxonomy, word: Int64, synset: Int64, counts: Int64) -> Hierarchy:
    """Choose one parent for each synset above the words, given pairs (P,) of a word and a synset.

    The weight of a synset is the sum of the counts of the words below it in the whole graph, each
    word once. A synset keeps its heaviest parent. Ties are broken in favour of the first in the
    order of the `Taxonomy`: by part of speech and sense key. Byte offsets have no effect, so that
    all builds of a WordNet agree.
    """
    # (S, S) is-a edges of the taxonomy, from child to parent
    n = len(taxonomy)
    ones = np.ones(len(taxonomy.parent), bool)
    up = csr_array((ones, taxonomy.parent, taxonomy.parent_start), shape=(n, n))
    # (V, S) the synsets of each word, and all ancestors of these synsets
    new = csr_array((np.ones(len(word), bool), (word, synset)), shape=(len(counts), n))
    reached = new
    while new.nnz:
        new = (new @ up) > reached
        reached = reached + new
    # (n,) synsets above the words, ascending, and their weights; (n, n) edges between them
    needed = np.unique(reached.indices).astype(np.int64)
    weight = reached[:, needed].T.astype(np.int64) @ counts
    among = up[needed][:, needed]
    among.sum_duplicates()
    child, parent = among.tocoo().coords

    # Sort the parents of each synset, the heaviest first, and keep the first
    order = np.lexsort((parent, -weight[parent], child))
    child = child[order]
    parent = parent[order]
    first = np.flatnonzero(np.diff(child, prepend=-1))
    kept = np.full(len(needed), -1)
    kept[child[first]] = parent[first]
    return Hierarchy(needed, kept)


def wide_tree(
    hierarchy: Hierarchy,
    taxonomy: Taxonomy,
    word: Int64,
    synset: Int64,
    words: Sequence[str],
    counts: Int64,
) -> Tree:
    """Return the tree of the words in WordNet, with nodes as wide as in WordNet.

    The roots of each part of speech are under one node, and these nodes are under the root. A word
    is a child of each of its synsets, beside the narrower synsets. Nodes with one child are left
    out, so that a chain of synsets has the name of the last synset. A word that would then be twice
    a child of the same node remains once. Narrower synsets come first, in their order, then words
    in their order.
    """
    # Nodes: the root, a node for each part of speech, then the synsets
    n_top = 1 + len(POS)
    pos_node = 1 + np.array([POS.index(taxonomy.pos[s]) for s in hierarchy.synset.tolist()])
    synset_parent = np.where(hierarchy.parent >= 0, hierarchy.parent + n_top, pos_node)
    parent = np.concatenate([[-1], np.zeros(len(POS), np.int64), synset_parent])
    n = len(parent)

    # Edges (E,) from a node to a child, which is a node or ~word. Remove nodes with one child
    node = np.concatenate([parent[1:], np.searchsorted(hierarchy.synset, synset) + n_top])
    child = np.concatenate([np.arange(1, n), ~word])
    depth = sum_to_root((parent >= 0).astype(np.int64), parent)[node]
    order = np.argsort(-depth, kind="stable")
    child = collapse(node, child, np.split(order, np.flatnonzero(np.diff(depth[order])) + 1))
    is_left = child != GONE
    node = node[is_left]
    child = child[is_left]

    # Sort the children by node, nodes before words
    order = np.lexsort((np.where(child < 0, n + ~child, child), node))
    start = offsets(np.bincount(node, minlength=n))
    child = child[order]

    # Number the nodes by level
    above = np.full(n, -1)
    above[child[child >= 0]] = node[order][child >= 0]
    nodes = np.unique(node)
    depth = sum_to_root((above >= 0).astype(np.int64), above)
    nodes = nodes[np.lexsort((nodes, depth[nodes]))]
    start, child, _ = reorder(start, child, nodes)
    names = ["WordNet", *POS_NAMES, *(taxonomy.names[s] for s in hierarchy.synset.tolist())]
    node_names = [names[i] for i in nodes.tolist()] or None  # None for a tree of one word
    return Tree(words, start, child, counts=counts, names=node_names)
