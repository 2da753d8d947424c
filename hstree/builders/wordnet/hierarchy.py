"""From WordNet's graph to one tree: which parent a synset keeps, and which synsets are nodes.

A synset may have several parents and a graph may hold cycles; a tree has neither. What is here:
the choice, the collapse of chains, and the wide tree that comes of them. Nodes are as wide as
WordNet makes them; `hstree.builders.shared.binarise` splits them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hstree._ragged import offsets, ranges, segment_ids
from hstree._typing import Bool, Int64
from hstree.builders.wordnet.table import POS
from hstree.builders.wordnet.taxonomy import Taxonomy
from hstree.tree import Tree

#: The nodes above the roots, in the order of `POS`.
POS_NAMES = ("nouns", "verbs", "adjectives", "adverbs")


@dataclass(frozen=True)
class Hierarchy:
    """One parent for each synset that the words need.

    Attributes
    ----------
    synset : int64 array (n,)
        The synsets needed, ascending.
    parent : int64 array (n,)
        The place of each one's parent in `synset`, -1 for a root.
    edges, edges_cut : int
        How many is-a edges there are among them, and how many of these are not in the tree.
    in_cycles : int
        How many of the synsets lie on a cycle.
    """

    synset: Int64
    parent: Int64
    edges: int
    edges_cut: int
    in_cycles: int


def resolve(taxonomy: Taxonomy, word: Int64, synset: Int64, counts: Int64) -> Hierarchy:
    """Choose one parent for every synset above some words.

    Parameters
    ----------
    taxonomy : Taxonomy
    word, synset : int64 arrays (P,)
        Word ``word[i]`` hangs under synset ``synset[i]``.
    counts : int64 array (V,)
        How often each word stands in the corpus.

    Notes
    -----
    The rule. A synset weighs what the words below it in the whole graph count, each word once. Of
    its parents it keeps the heaviest; of equally heavy ones the first by part of speech
    and sense key, the order of a `Taxonomy`. On a cycle the synsets choose in that order, too, and
    a parent that already leads back to the one that chooses is passed over; one that has
    no other is a root. No byte offset plays a part, so two builds of a WordNet agree.
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
    """Make the tree of the words in WordNet, as wide as WordNet is.

    Parameters
    ----------
    hierarchy : Hierarchy
        Of these places.
    taxonomy : Taxonomy
    word, synset : int64 arrays (P,)
        At least one; every word of `words` is in it.
    words : sequence of str, length V
    counts : int64 array (V,)

    Returns
    -------
    Tree
        The roots of each part of speech are under one node, and these nodes under the root. A word
        is beside the narrower synsets of its own. What holds one thing only is left
        out, so a chain of synsets goes by the name of its last; a word that would then
        hang twice under one node hangs there once. Narrower synsets come first, in their
        order, then words in theirs.
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
    place = np.searchsorted(hierarchy.synset, synset) + n_top
    items = np.concatenate([np.arange(1, len(parent)), len(parent) + word])
    node, item, root = _collapse(parent, np.concatenate([parent[1:], place]), items)
    names = ["WordNet", *POS_NAMES, *(taxonomy.names[s] for s in hierarchy.synset.tolist())]
    if root >= len(parent):  # one word
        return Tree(words, [0], [], counts=counts)

    above = np.full(len(parent), -1)
    is_node = item < len(parent)
    above[item[is_node]] = node[is_node]
    used = np.unique(node)
    order = used[np.lexsort((used, _depth(above)[used]))]
    number = np.zeros(len(parent), np.int64)
    number[order] = np.arange(len(order))
    by_node = np.lexsort((item, number[node]))
    node, item = number[node[by_node]], item[by_node]
    is_node = is_node[by_node]
    child = np.where(is_node, number[item * is_node], ~(item - len(parent)))
    return Tree(
        words,
        offsets(np.bincount(node, minlength=len(order))),
        child,
        counts=counts,
        names=[names[i] for i in order.tolist()],
    )


def _closure(taxonomy: Taxonomy, synsets: Int64) -> Int64:
    """Return some synsets and all that stand above them, ascending."""
    is_in = np.zeros(len(taxonomy), bool)
    is_in[synsets] = True
    while synsets.size:
        above = np.unique(taxonomy.parent[_parent_edges(taxonomy, synsets)[1]])
        synsets = above[~is_in[above]]
        is_in[synsets] = True
    return np.flatnonzero(is_in)


def _parent_edges(taxonomy: Taxonomy, synsets: Int64) -> tuple[Int64, Int64]:
    """Return for each edge up from some synsets the place of its lower end, and its number."""
    first = taxonomy.parent_start[synsets]
    start = offsets(taxonomy.parent_start[synsets + 1] - first)
    return segment_ids(start), ranges(first, start)


def _edges_among(taxonomy: Taxonomy, needed: Int64) -> tuple[Int64, Int64]:
    """Return the is-a edges as places in `needed`, each once: lower ends and upper ends."""
    child, edge = _parent_edges(taxonomy, needed)
    pairs = np.unique(np.stack([child, np.searchsorted(needed, taxonomy.parent[edge])]), axis=1)
    return pairs[0], pairs[1]


def _reached(
    word: Int64, place: Int64, child: Int64, parent: Int64, n_words: int, needed: Int64
) -> csr_array:
    """Return which synsets are above which words: bool matrix (V, n)."""
    n = len(needed)
    up = csr_array((np.ones(len(child), bool), (child, parent)), shape=(n, n))
    new = csr_array((np.ones(len(word), bool), (word, place)), shape=(n_words, n))
    reached = new
    while new.nnz:
        above = new @ up
        new = above > reached
        reached = reached + new
    return reached


def _on_cycles(child: Int64, parent: Int64, n: int) -> Bool:
    """Tell which synsets lie on a cycle, one that is its own parent among them."""
    graph = csr_array((np.ones(len(child), bool), (child, parent)), shape=(n, n))
    _, component = connected_components(graph, connection="strong")
    cyclic: Bool = np.bincount(component)[component] > 1
    cyclic[child[child == parent]] = True
    return cyclic


def _leads_to(start: int, end: int, parent: Int64) -> bool:
    """Tell whether the way up from `start` comes to `end`."""
    while start >= 0 and start != end:
        start = int(parent[start])
    return start == end


def _depth(parent: Int64) -> Int64:
    """Return how far each node is below a root, by pointer doubling."""
    depth = (parent >= 0).astype(np.int64)
    jump = parent.copy()
    while (alive := np.flatnonzero(jump >= 0)).size:
        above = jump[alive]
        depth[alive] += depth[above]
        jump[alive] = jump[above]
    return depth


def _collapse(parent: Int64, node: Int64, item: Int64) -> tuple[Int64, Int64, int]:
    """Leave out nodes without a choice, from the deepest level up.

    Parameters
    ----------
    parent : int64 array (N,)
        -1 for the root, node 0.
    node, item : int64 arrays (E,)
        The children: numbers below N are nodes, others words. Some nodes may have none.

    Returns
    -------
    node, item : int64 arrays
        The children that are left, each once; only of nodes with two or more.
    root : int
        The node, or the word, that is left at the top.
    """
    depth = _depth(parent)
    # What stands in a node's place: itself, its only child, or nothing.
    stands = np.arange(max(len(parent), int(item.max()) + 1))
    nodes_left, items_left = [], []
    order = np.argsort(-depth[node], kind="stable")
    level_start = np.flatnonzero(np.diff(depth[node[order]], prepend=-1))
    stands[: len(parent)] = -1
    for edges in np.split(order, level_start[1:]):
        held = np.stack([node[edges], stands[item[edges]]])
        held = np.unique(held[:, held[1] >= 0], axis=1)
        head = np.flatnonzero(np.diff(held[0], prepend=-1))
        size = np.diff(head, append=held.shape[1])
        at = held[0, head]
        stands[at] = np.where(size > 1, at, held[1, head])
        wide = np.repeat(size > 1, size)
        nodes_left.append(held[0, wide])
        items_left.append(held[1, wide])
    return np.concatenate(nodes_left), np.concatenate(items_left), int(stands[0])
