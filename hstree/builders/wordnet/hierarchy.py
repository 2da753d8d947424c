"""One tree from WordNet's graph: the parent that each synset keeps, and the nodes that remain.

A synset may have several parents, and the graph may have cycles. Nodes are as wide as in WordNet;
`hstree.builders.shared.binarise` splits them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hstree._ragged import offsets, ranges, segment_ids
from hstree._typing import Bool, Int64
from hstree.builders.shared.prune import GONE, collapse, reorder
from hstree.builders.wordnet.taxonomy import POS, Taxonomy
from hstree.tree import Tree

#: Names of the nodes above the roots, in the order of `POS`.
POS_NAMES = ("nouns", "verbs", "adjectives", "adverbs")


@dataclass(frozen=True)
class Hierarchy:
    """One parent for each synset above the words.

    Attributes
    ----------
    synset : int64 array (n,)
        Synsets, ascending.
    parent : int64 array (n,)
        Index of each parent in `synset`, -1 for a root.
    edges, edges_cut : int
        Number of is-a edges among them, and of those not in the tree.
    in_cycles : int
        Number of synsets on cycles.
    """

    synset: Int64
    parent: Int64
    edges: int
    edges_cut: int
    in_cycles: int


def resolve(taxonomy: Taxonomy, word: Int64, synset: Int64, counts: Int64) -> Hierarchy:
    """Choose one parent for each synset above the words.

    Parameters
    ----------
    taxonomy : Taxonomy
    word, synset : int64 arrays (P,)
        Pairs of a word and its synset.
    counts : int64 array (V,)
        Counts of the words in the corpus.

    Notes
    -----
    The weight of a synset is the sum of the counts of the words below it in the whole graph, each
    word once. A synset keeps its heaviest parent, of equal ones the first by part of speech and
    sense key, the order of a `Taxonomy`. Synsets on a cycle choose in that order too, and skip
    parents whose path up already leads back to them; a synset without another parent is a root.
    Byte offsets play no part, so that all builds of a WordNet agree.
    """
    needed = _closure(taxonomy, np.unique(synset))
    child, parent = _edges_among(taxonomy, needed)
    reached = _reached(word, np.searchsorted(needed, synset), child, parent, len(counts), needed)
    weight = reached.T.astype(np.int64) @ counts

    order = np.lexsort((parent, -weight[parent], child))
    child, parent = child[order], parent[order]
    kept = np.full(len(needed), -1)
    first = np.flatnonzero(np.diff(child, prepend=-1))
    kept[child[first]] = parent[first]

    cyclic = _on_cycles(child, parent, len(needed))
    kept[cyclic] = -1
    start = offsets(np.bincount(child, minlength=len(needed)))
    for at in np.flatnonzero(cyclic).tolist():  # none in WordNet itself
        above = parent[start[at] : start[at + 1]].tolist()
        kept[at] = next((up for up in above if not _leads_to(up, at, kept)), -1)
    return Hierarchy(
        needed,
        kept,
        edges=len(child),
        edges_cut=len(child) - int(np.count_nonzero(kept >= 0)),
        in_cycles=int(cyclic.sum()),
    )


def wide_tree(
    hierarchy: Hierarchy,
    taxonomy: Taxonomy,
    word: Int64,
    synset: Int64,
    words: Sequence[str],
    counts: Int64,
) -> Tree:
    """Return the tree of the words in WordNet, with nodes as wide as in WordNet.

    Parameters
    ----------
    hierarchy : Hierarchy
        Of these synsets.
    taxonomy : Taxonomy
    word, synset : int64 arrays (P,)
        Pairs of a word and its synset; each word has one.
    words : sequence of str, length V
    counts : int64 array (V,)

    Returns
    -------
    Tree
        The roots of each part of speech are under one node, and these nodes under the root. A word
        is a child of its synset, beside the narrower synsets. Nodes with one child are left out, so
        that a chain of synsets has the name of its last; a word that would then occur twice
        under a node occurs once. Narrower synsets come first, in their order, then words in theirs.
    """
    n_top = 1 + len(POS)
    # Nodes: the root, a node for each part of speech, the synsets; then the words.
    pos_node = 1 + np.array([POS.index(taxonomy.pos[s]) for s in hierarchy.synset.tolist()])
    parent = np.concatenate(
        [
            np.where(np.arange(n_top) > 0, 0, -1),
            np.where(hierarchy.parent >= 0, hierarchy.parent + n_top, pos_node),
        ]
    )
    n = len(parent)
    # Edges (E,) from each node to a child, a node or ~word
    node = np.concatenate([parent[1:], np.searchsorted(hierarchy.synset, synset) + n_top])
    child = np.concatenate([np.arange(1, n), ~word])
    depth = _depth(parent)[node]
    order = np.argsort(-depth, kind="stable")
    child = collapse(node, child, np.split(order, np.flatnonzero(np.diff(depth[order])) + 1))
    left = child != GONE
    node, child = node[left], child[left]

    # Children by node, nodes before words; then nodes by level
    order = np.lexsort((np.where(child < 0, n + ~child, child), node))
    start, child = offsets(np.bincount(node, minlength=n)), child[order]
    above = np.full(n, -1)
    above[child[child >= 0]] = node[order][child >= 0]
    nodes = np.unique(node)
    nodes = nodes[np.lexsort((nodes, _depth(above)[nodes]))]
    start, child, _ = reorder(start, child, nodes)
    names = ["WordNet", *POS_NAMES, *(taxonomy.names[s] for s in hierarchy.synset.tolist())]
    node_names = [names[i] for i in nodes.tolist()] or None  # None for one word
    return Tree(words, start, child, counts=counts, names=node_names)


def _closure(taxonomy: Taxonomy, synsets: Int64) -> Int64:
    """Return synsets and all their ancestors, ascending."""
    is_in = np.zeros(len(taxonomy), bool)
    is_in[synsets] = True
    while synsets.size:
        above = np.unique(taxonomy.parent[_parent_edges(taxonomy, synsets)[1]])
        synsets = above[~is_in[above]]
        is_in[synsets] = True
    return np.flatnonzero(is_in)


def _parent_edges(taxonomy: Taxonomy, synsets: Int64) -> tuple[Int64, Int64]:
    """Return the index of the lower end and the number of each edge up from some synsets."""
    first = taxonomy.parent_start[synsets]
    start = offsets(taxonomy.parent_start[synsets + 1] - first)
    return segment_ids(start), ranges(first, start)


def _edges_among(taxonomy: Taxonomy, needed: Int64) -> tuple[Int64, Int64]:
    """Return the distinct is-a edges as indices into `needed`: lower ends and upper ends."""
    child, edge = _parent_edges(taxonomy, needed)
    pairs = np.unique(np.stack([child, np.searchsorted(needed, taxonomy.parent[edge])]), axis=1)
    return pairs[0], pairs[1]


def _reached(
    word: Int64, index: Int64, child: Int64, parent: Int64, n_words: int, needed: Int64
) -> csr_array:
    """Return which synsets are ancestors of which words: bool matrix (V, n)."""
    n = len(needed)
    up = csr_array((np.ones(len(child), bool), (child, parent)), shape=(n, n))
    new = csr_array((np.ones(len(word), bool), (word, index)), shape=(n_words, n))
    reached = new
    while new.nnz:
        above = new @ up
        new = above > reached
        reached = reached + new
    return reached


def _on_cycles(child: Int64, parent: Int64, n: int) -> Bool:
    """Return which synsets are on a cycle, such as that of a synset and itself."""
    graph = csr_array((np.ones(len(child), bool), (child, parent)), shape=(n, n))
    _, component = connected_components(graph, connection="strong")
    cyclic: Bool = np.bincount(component)[component] > 1
    cyclic[child[child == parent]] = True
    return cyclic


def _leads_to(start: int, end: int, parent: Int64) -> bool:
    """Return whether the path up from `start` reaches `end`."""
    while start >= 0 and start != end:
        start = int(parent[start])
    return start == end


def _depth(parent: Int64) -> Int64:
    """Return the depth of each node below its root, by pointer doubling."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    while (alive := np.flatnonzero(jump >= 0)).size:
        above = jump[alive]
        depth[alive] += depth[above]
        jump[alive] = jump[above]
    return depth
