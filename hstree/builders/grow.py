"""Growth of trees: new labels get leaves beside similar labels, and all old nodes stay.

If a new label is placed beside a leaf, that leaf becomes a node with two children. Old nodes
therefore keep the number of their children, old labels keep their ids, and the first rows of the
grown tree are the rows of the old tree.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Array, Float64, Floating, Int64, offsets, ranges
from hstree._text import quoted
from hstree.builders.builder import BuilderInput
from hstree.builders.prune import keep_labels
from hstree.builders.shared.coverage import split_by_coverage
from hstree.builders.shared.nodes import power_of_two_scale
from hstree.builders.shared.top_down import build_top_down
from hstree.data.arrays import as_words, count_axes, get_index
from hstree.data.corpus import Corpus
from hstree.data.vectors import KeyedVectorsLike, WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.content import COLLAPSED
from hstree.tree.hierarchy import collapsed_names

#: Maximum number of products of new and old vectors in memory.
MAX_PRODUCTS = 1 << 24

Words = WordVectors | KeyedVectorsLike | Vocabulary | Corpus | Mapping[str, int] | Iterable[str]


def grow(tree: Tree, words: Words) -> Tree:
    """Grow a tree: add leaves for new labels beside similar labels.

    Parameters
    ----------
    tree : Tree
        Any tree; labels may have several codes.
    words : WordVectors, DataFrame, Vocabulary, Corpus, dict, Series or iterable of str or int
        The new labels: vectors, counts, or labels only. The index of a DataFrame of vectors or
        of a Series of counts supplies the labels. Vectors and counts may include labels of the
        tree. New labels are then compared with the vectors of these labels; given counts replace
        those of the tree.

    Returns
    -------
    Tree
        The labels of the tree in their order, then the new labels in their order. Nodes of the tree
        keep their numbers and the number of their children; new nodes follow and have two children
        each. Row r of the weights is therefore the same in the tree and in the grown tree
        (`carried_rows`).

    Raises
    ------
    InputError
        When a sequence contains a label of the tree, the labels are a set (which has no order),
        numbers could be labels or counts, no label of the tree has a vector, or there are counts
        for some labels only.

    Notes
    -----
    With vectors, a new label gets a leaf beside each leaf of the label with the nearest vector.
    Several new labels beside the same leaf, and the old label, are recursively split into two
    halves with about equal counts (Shannon-Fano). Without counts, the old label stays next to the
    root of this part, and the new labels form a balanced tree. O(n V d) for n new labels.

    Without vectors, the increase in mean code length is minimal. New labels are placed one after
    the other, the most frequent first, beside the leaf with the smallest cost: the count of the
    leaf, plus the count of the new label times the length of the leaf's code. Counts between two
    powers of two are replaced by their mean. A label without a count has the count 1; if no label
    has a count, the leaf is one of the shallowest.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[5, 2, 1])
    >>> grown = grow(tree, {"d": 1})
    >>> grown.labels, grown.child.tolist()  # d is beside c
    (('a', 'b', 'c', 'd'), [-1, 1, -2, 2, -3, -4])
    """
    # New labels get the ids after those of the tree
    words = _as_words_or_vectors(words)
    id_by_label = {label: i for i, label in enumerate(tree.labels)}
    if isinstance(words, WordVectors | Vocabulary):
        labels = words.labels if isinstance(words, WordVectors) else words.words
        new_counts = words.counts
        source = words.source
    else:
        labels = tuple(dict.fromkeys(words))
        if duplicates := [label for label in labels if label in id_by_label]:
            raise InputError(
                f"the label {quoted(duplicates[0])} is in the tree already ({len(duplicates):,} of "
                f"the {len(labels):,} labels are); give only new labels"
            )
        new_counts = None
        source = dict[str, object](kind="labels")
    for label in labels:
        id_by_label.setdefault(label, len(id_by_label))
    ids = np.array([id_by_label[label] for label in labels])  # (n,) label id of each word
    counts = _merge_counts(tree, len(id_by_label), ids, new_counts)

    # Nodes of the tree keep their edges; the two edges of each new node follow
    weight = np.ones(len(id_by_label)) if counts is None else np.maximum(counts, 1)
    if isinstance(words, WordVectors):
        child = _place_by_vectors(tree, words, ids, weight, counts is not None)
    else:
        child = _place_by_counts(tree, weight.astype(np.float64))
    start = np.r_[tree.child_start, np.arange(tree.child_start[-1] + 2, len(child) + 1, 2)]
    n_new_nodes = len(start) - len(tree.child_start)
    names = None if tree.names is None else tree.names + (None,) * n_new_nodes

    meta: dict[str, object] = {"method": "grow"}
    meta["input"] = {**source, "from": tree.meta.get("input")}
    if COLLAPSED in tree.meta:
        meta[COLLAPSED] = _moved_chains(tree, child)
    return Tree(list(id_by_label), start, child, counts=counts, names=names, meta=meta)


def grow_to_words(tree: Tree, words: BuilderInput, vocabulary: Vocabulary | None) -> Tree:
    """Prune and grow a tree to exactly these words.

    If `words` are vectors, a vocabulary may supply the words. Words without a vector are then
    placed by their counts.
    """
    # The labels of the result, and the labels of the tree that stay
    if isinstance(words, Corpus):
        words = words.counted_vocabulary()
    wanted: WordVectors | Vocabulary = words
    if isinstance(words, WordVectors) and vocabulary is not None:
        wanted = vocabulary
    labels = wanted.labels if isinstance(wanted, WordVectors) else wanted.words
    known = set(labels)
    kept = [label for label in tree.labels if label in known]
    if not kept:
        raise InputError(
            f"none of the tree's labels ({quoted(tree.labels[0])}, ...) is among the "
            f"{len(labels):,} labels of the input ({quoted(labels[0])}, ...); give a tree that has "
            "some of these labels"
        )
    grown = keep_labels(tree, kept)
    if isinstance(words, WordVectors) and vocabulary is not None:
        # First update the counts of the labels that stay, then add the words with a vector
        count = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
        grown = grow(grown, {label: count[label] for label in kept})
        grown = grow(grown, split_by_coverage(vocabulary, words)[0])
    return grow(grown, wanted)


def _as_words_or_vectors(words: Any) -> WordVectors | Vocabulary | Sequence[str]:
    """Convert vectors, counts or labels in any form to one of three types."""
    if isinstance(words, WordVectors | Vocabulary):
        return words
    if isinstance(words, Corpus):
        return words.counted_vocabulary()
    if isinstance(words, KeyedVectorsLike):
        return WordVectors.from_keyed_vectors(words)
    if isinstance(words, Mapping):
        return Vocabulary.of(words)
    if not hasattr(words, "__iter__") or isinstance(words, str | bytes):
        kind = type(words).__name__
        raise InputError(f"new labels have the type {kind}; give vectors, counts or a list of str")

    # Arrays and tables: only an index can supply the labels
    axes, _ = count_axes(words)
    index = get_index(words)
    is_named = index is not None and type(index).__name__ != "RangeIndex"
    if axes == 2 or hasattr(words, "columns"):
        if not is_named:
            raise InputError("vectors without labels; give hstree.WordVectors(labels, vectors)")
        return WordVectors.of(words)
    if axes == 1 and index is not None:  # a Series of numbers
        if not is_named:
            raise InputError(
                "a Series of numbers with a default index may hold labels or counts; give labels "
                "as a list (`.tolist()`), or counts with the labels as the index"
            )
        return Vocabulary.of(words)
    return tuple(as_words(words))


def _merge_counts(tree: Tree, n_labels: int, ids: Int64, counts: Int64 | None) -> Int64 | None:
    """Return the counts (V,) of the grown tree: from the words, else from the tree, else zero."""
    if counts is None and tree.counts is None:
        return None
    merged = np.zeros(n_labels, np.int64)
    if tree.counts is not None:
        merged[: tree.n_labels] = tree.counts
    elif n_lacking := tree.n_labels - int(np.count_nonzero(ids < tree.n_labels)):
        raise InputError(
            f"the tree has no counts, and {n_lacking:,} of its labels have no count in the input; "
            "give counts for all labels, or for none"
        )
    if counts is not None:
        merged[ids] = counts
    return merged


def _moved_chains(tree: Tree, child: Int64) -> list[list[Any]]:
    """Return the meta entry `COLLAPSED` of a grown tree, given its `child`.

    If a leaf became a node, the names above the leaf are now above that node.
    """
    n = tree.n_nodes
    new_code = dict(zip(tree.child.tolist(), child.tolist(), strict=False))
    if n == 0 and len(child) > 0:
        new_code = {~0: 0}  # the tree was a single leaf, which is now below a root
    chains = []
    for number, chain in collapsed_names(tree).items():
        code = number if number < n else ~(number - n)
        chains.append([new_code.get(code, code), *chain])
    return chains


def _place_by_vectors(
    tree: Tree, words: WordVectors, ids: Int64, weight: Array, has_counts: bool
) -> Int64:
    """Return `child` of the grown tree, with new words beside the words with nearest vectors."""
    is_new = ids >= tree.n_labels
    edges = tree.child if tree.n_nodes else np.array([~0])
    if not is_new.any():
        return tree.child
    if is_new.all():
        raise InputError(
            f"none of the tree's {tree.n_labels:,} labels ({quoted(tree.labels[0])}, ...) has a "
            "vector; give the vectors of old and new labels together"
        )
    new_rows = np.flatnonzero(is_new)
    old_rows = np.flatnonzero(~is_new)
    nearest = ids[old_rows][_nearest_rows(words.vectors, new_rows, old_rows)]  # (n,) label

    # Sort the leaves by label; a new word gets a leaf beside each leaf of its nearest label
    leaves = np.flatnonzero(edges < 0)
    leaves = leaves[np.argsort(~edges[leaves], kind="stable")]
    n_leaves = np.bincount(~edges[leaves])  # (V,)
    start = offsets(n_leaves[nearest])
    new_leaf = leaves[ranges(offsets(n_leaves)[nearest], start)]
    split_leaf, size = np.unique(new_leaf, return_counts=True)

    # (items,) the old label of each split leaf, and its new labels, the heaviest first
    leaf = np.r_[split_leaf, new_leaf]
    label = np.r_[~edges[split_leaf], np.repeat(ids[is_new], n_leaves[nearest])]
    is_old = label < tree.n_labels
    item_weight = weight[label]
    if not has_counts:
        item_weight[is_old] = len(label)  # the old label stays next to the root
    order = np.lexsort((~is_old, -item_weight, leaf))
    label = label[order]
    item_weight = item_weight[order]

    def split_by_weight(items: Int64, start: Int64, _: None) -> Int64:
        """Send an item to the second child if more weight is before it than after it."""
        w = item_weight[items]
        before = np.cumsum(w) - w
        before -= np.repeat(before[start[:-1]], np.diff(start))
        after = np.repeat(np.add.reduceat(w, start[:-1]), np.diff(start)) - before - w
        branch: Int64 = (before > after).astype(np.int64)
        return branch

    with progress.task("growing", total=len(label), unit="leaves") as task:
        grown = build_top_down(len(label), split_by_weight, roots=offsets(size + 1), task=task)

    # Each split leaf is now the root of its items
    new_child: Int64 = grown.child + tree.n_nodes
    is_leaf = grown.child < 0
    new_child[is_leaf] = ~label[~grown.child[is_leaf]]
    child = edges.copy()
    child[split_leaf] = tree.n_nodes + np.arange(len(split_leaf))
    return np.concatenate([child[: len(tree.child)], new_child])


def _nearest_rows(vectors: Floating, new: Int64, old: Int64) -> Int64:
    """Return the index in `old` (V,) of the row nearest to each row in `new` (n,)."""
    new_vectors = vectors.take(new, axis=0)
    old_vectors = vectors.take(old, axis=0)
    scales = power_of_two_scale(new_vectors), power_of_two_scale(old_vectors)
    scale = vectors.dtype.type(min(scales))
    centre = (old_vectors * scale).mean(axis=0)
    new_vectors = new_vectors * scale - centre
    old_vectors = old_vectors * scale - centre

    # The nearest row has the largest dot product minus half its square
    half_square = np.vecdot(old_vectors, old_vectors) / 2
    nearest = np.empty(len(new), np.int64)
    step = max(1, MAX_PRODUCTS // len(old))
    for first in range(0, len(new), step):
        part = slice(first, first + step)
        nearest[part] = np.argmax(new_vectors[part] @ old_vectors.T - half_square, axis=1)
    return nearest


def _place_by_counts(tree: Tree, weight: Float64) -> Int64:
    """Return `child` of the grown tree, with new labels where mean code length increases least."""
    child = tree.child if tree.n_nodes else np.array([~0])
    n_nodes = tree.n_nodes
    # (leaves,) edge, label, weight and code length of each leaf
    edge = np.flatnonzero(child < 0)
    label = ~child[edge]
    mass = weight[label] / np.bincount(label)[label]
    length = tree.depth[tree.edge_node[edge]] + 1.0 if tree.n_nodes else np.zeros(1)

    # Place new labels of about the same weight w together, the heaviest first
    new = np.arange(tree.n_labels, len(weight))
    order = new[np.argsort(-weight[new], kind="stable")]
    magnitude = np.frexp(weight[order])[1]
    for waiting in np.split(order, np.flatnonzero(np.diff(magnitude)) + 1):
        w = weight[waiting].mean() if len(waiting) else 0.0
        while len(waiting):
            # The cheapest leaves, up to the first that costs more than a leaf of an earlier split
            cost = mass + w * length
            leaf = np.argsort(cost, kind="stable")[: len(waiting)]
            split_cost = np.minimum(cost[leaf] + w, w * (length[leaf] + 2))
            is_next = cost[leaf[1:]] <= np.minimum.accumulate(split_cost)[:-1]
            leaf = leaf[: 1 + np.count_nonzero(np.logical_and.accumulate(is_next))]
            added = waiting[: len(leaf)]
            waiting = waiting[len(leaf) :]

            # Each leaf becomes a node above its label and a new label
            child = np.r_[child, np.stack([~label[leaf], ~added], axis=1).ravel()]
            child[edge[leaf]] = n_nodes + np.arange(len(leaf))
            n_nodes += len(leaf)
            edge[leaf] = len(child) - 2 * len(leaf) + 2 * np.arange(len(leaf))
            length[leaf] += 1

            # Add the new leaves to the others
            edge = np.r_[edge, edge[leaf] + 1]
            label = np.r_[label, added]
            mass = np.r_[mass, np.full(len(leaf), w)]
            length = np.r_[length, length[leaf]]
    return child if tree.n_nodes else child[1:]  # remove the edge above a tree of one leaf
