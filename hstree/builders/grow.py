"""Trees that grow: leaves for new labels beside what they are like, and old weight rows carried on.

A leaf beside which a label is put becomes a node of two children. So old nodes keep their children,
old labels their ids, and the first rows of the grown tree are those of the old one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hstree import progress
from hstree._arrays import Array, Float64, Floating, Int64, offsets, ranges
from hstree._text import quoted
from hstree.builders.shared.builder import BuilderInput
from hstree.builders.shared.divisive import divide
from hstree.builders.shared.join import covered_part
from hstree.builders.shared.nodes import scale_of
from hstree.builders.shared.prune import pruned, remainder
from hstree.data.arrays import as_words, axes_of, index_of
from hstree.data.corpus import Corpus
from hstree.data.vectors import KeyedVectorsLike, WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.content import COLLAPSED
from hstree.tree.hierarchy import collapsed_names

#: Numbers of the table of products of new and old vectors that is held at a time.
PRODUCTS = 1 << 24

Words = WordVectors | KeyedVectorsLike | Vocabulary | Corpus | Mapping[str, int] | Iterable[str]


def grow(tree: Tree, words: Words) -> Tree:
    """Grow a tree by leaves for new labels, beside what they are like.

    Parameters
    ----------
    tree : Tree
        Any tree, of several codes a label too.
    words : WordVectors, DataFrame, Vocabulary, Corpus, dict, Series or iterable of str or int
        The new labels: vectors, counts, or the labels alone. The index of a DataFrame of vectors or
        of a Series of counts supplies the labels. Vectors and counts may be of labels of the tree,
        too: new vectors are compared with theirs, and their counts take the place of the tree's.

    Returns
    -------
    Tree
        The labels of the tree, in their order, then the new ones in theirs. Nodes of the tree keep
        their numbers and the number of their children; new ones follow, with two children each.
        So row r of the tree's weights is row r of the grown tree's (`carried_rows`).

    Raises
    ------
    InputError
        When one of a sequence of labels is in the tree, they are a set, which has no order, numbers
        could be labels or counts, no label of the tree has a vector, or the tree has no counts and
        those of its labels are not among the words'.

    Notes
    -----
    With vectors, a new label gets a leaf beside each leaf of the label with the nearest vector.
    Where several are beside the same leaf, they are split in two halves of about equal counts,
    again and again (Shannon-Fano), the old label among them; without counts the old label stays
    next to the root of this part, and the others are in a balanced tree. O(n V d) for n new labels.

    Without vectors, the mean code length grows least: new labels, the most frequent first, are each
    put beside the leaf whose count, plus the new label's count times the length of the leaf's code,
    is smallest. Counts between two powers of two are taken as their mean. A label without a count
    counts as one; where no label has a count, this is one of the shallowest leaves.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[5, 2, 1])
    >>> grown = grow(tree, {"d": 1})
    >>> grown.labels, grown.child.tolist()  # d is beside c
    (('a', 'b', 'c', 'd'), [-1, 1, -2, 2, -3, -4])
    """
    words = _typed(words)
    id_of = {label: i for i, label in enumerate(tree.labels)}
    if isinstance(words, WordVectors | Vocabulary):
        labels = words.labels if isinstance(words, WordVectors) else words.words
        new_counts, source = words.counts, words.source
    else:
        labels, new_counts = _new_labels(words, id_of), None
        source = dict[str, object](kind="labels")
    for label in labels:
        id_of.setdefault(label, len(id_of))
    ids = np.array([id_of[label] for label in labels])  # (n,) label id of each word
    counts = _counts(tree, len(id_of), ids, new_counts)
    weight = np.ones(len(id_of)) if counts is None else np.maximum(counts, 1)
    if isinstance(words, WordVectors):
        child = _beside_nearest(tree, words, ids, weight, counts is not None)
    else:
        child = _where_cheapest(tree, weight.astype(np.float64))
    start = np.r_[tree.child_start, np.arange(tree.child_start[-1] + 2, len(child) + 1, 2)]
    names = tree.names
    if names is not None:
        names += (None,) * (len(start) - len(tree.child_start))
    meta: dict[str, object] = {"method": "grow"}
    meta["input"] = {**source, "from": tree.meta.get("input")}
    if COLLAPSED in tree.meta:  # names above a leaf go above the node that took its place
        n = tree.n_nodes
        now = dict(zip(tree.child.tolist(), child.tolist(), strict=False))
        if n == 0 and len(start) > 1:
            now = {~0: 0}  # the leaf that was the tree is below a root now
        chains = collapsed_names(tree).items()
        above = [(number if number < n else ~(number - n), chain) for number, chain in chains]
        meta[COLLAPSED] = [[now.get(code, code), *chain] for code, chain in above]
    return Tree(list(id_of), start, child, counts=counts, names=names, meta=meta)


def prune(tree: Tree, labels: Iterable[str]) -> Tree:
    """Remove all labels of a tree but these, and the nodes that then have one child or none.

    The order of `labels`, a set too, has no effect. Labels, nodes and children keep their order,
    and nodes their names; a label that would occur twice under a node remains once. For the weight
    rows, see `carried_rows`. Raises InputError when a label is not in the tree, or there is none.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> prune(tree, ["c", "a"]).child.tolist()
    [-1, -2]
    """
    labels = as_words(list(labels) if isinstance(labels, set | frozenset) else labels)
    if not labels:
        raise InputError("a tree has one label or more; name those that are to stay")
    if unknown := set(labels).difference(tree.labels):
        raise InputError(
            f"{quoted(min(unknown))} is not a label of the tree; name those that are to stay"
        )
    return pruned(tree, labels)


class CarriedRows(NamedTuple):
    """Weight rows that two trees share: k rows of the new one, made of rows of the old one.

    A node that keeps all its children keeps its rows; a wide one keeps those of the children that
    it keeps, whose probabilities are then those given that one of them is taken. If these are two,
    its one row is the difference of theirs.
    """

    new: Int64  #: (k,) rows of the new tree, ascending
    old: Int64  #: (k,) their rows in the old tree
    minus: Int64  #: (k,) row of the old tree that is subtracted, -1 for none

    def carry(self, old: Array, new: Array) -> None:
        """Copy the rows of a parameter (R, ...) of the old tree into that of the new one."""
        new[self.new] = old[self.old]
        is_less = self.minus >= 0
        new[self.new[is_less]] -= old[self.minus[is_less]]


def carried_rows(old: Tree, new: Tree) -> CarriedRows:
    """Return the weight rows that a tree shares with one that was grown or pruned from it.

    Or both, in any order; labels are compared by name. A grown tree begins with all rows of the old
    one. Raises InputError when the trees divide the labels that both have in other ways.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> carried_rows(tree, grow(tree, ["d", "e"])).new.tolist()
    [0, 1]
    >>> carried_rows(tree, prune(tree, ["b", "c"])).old.tolist()
    [1]
    """
    id_of = {label: i for i, label in enumerate(new.labels)}
    there = np.array([id_of.get(label, -1) for label in old.labels])  # (V,) ids in the new tree
    kept = np.isin(np.arange(new.n_labels), there)
    if not kept.any():
        raise InputError("the two trees have no label in common, and so no rows")
    before, after = remainder(old, there >= 0), remainder(new, kept)
    child = np.where(before.child < 0, ~there[~np.minimum(before.child, -1)], before.child)
    same_start = np.array_equal(before.child_start, after.child_start)
    if not (same_start and np.array_equal(child, after.child)):
        raise InputError(
            "the one tree was not made from the other by growing or pruning: they divide the "
            f"{int(kept.sum()):,} labels that both have in other ways; make it by hstree.grow"
        )
    none = np.empty(0, np.int64)
    if new.n_nodes == 0:
        return CarriedRows(none, none, none)
    edge = np.full(len(new.child), -1)  # (E,) edge of the old tree, -1 for those of new nodes
    edge[after.edges] = before.edges
    is_old = np.logical_and.reduceat(edge >= 0, new.child_start[:-1])  # (N,)
    # (R,) edge whose score each row of the new tree gives; binary: the first
    row_edge = np.flatnonzero((new.edge_width > 2) | (new.edge_branch == 0))
    rows = np.flatnonzero(is_old[new.edge_node[row_edge]])
    at = row_edge[rows]
    # (E,) the row of each edge of the old tree, the same for both of a binary node
    row = old.edge_row + np.where(old.edge_width > 2, old.edge_branch, 0)
    is_narrowed = (new.edge_width[at] == 2) & (old.edge_width[edge[at]] > 2)
    minus = np.where(is_narrowed, row[edge[np.minimum(at + 1, len(edge) - 1)]], -1)
    return CarriedRows(rows, row[edge[at]], minus)


def regrown(tree: Tree, words: BuilderInput, vocabulary: Vocabulary | None) -> Tree:
    """Prune and grow a tree to just these words.

    Beside vectors, the words may be those of a vocabulary: those without a vector are placed by
    their counts.
    """
    if isinstance(words, Corpus):
        words = words.counted_vocabulary()
    every = words
    if isinstance(words, WordVectors) and vocabulary is not None:
        every = vocabulary
    labels = every.labels if isinstance(every, WordVectors) else every.words
    wanted = set(labels)
    left = [label for label in tree.labels if label in wanted]
    if not left:
        raise InputError(
            f"none of the tree's labels ({quoted(tree.labels[0])}, ...) is among the "
            f"{len(labels):,} of the input ({quoted(labels[0])}, ...); give a tree of such labels"
        )
    grown = pruned(tree, left)
    if isinstance(words, WordVectors) and vocabulary is not None:
        count = dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True))
        grown = grow(grown, {label: count[label] for label in left})
        grown = grow(grown, covered_part(vocabulary, words)[0])
    return grow(grown, every)


def _typed(words: Any) -> WordVectors | Vocabulary | Sequence[str]:
    """Return vectors, counts or labels in any form as one of three types."""
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
        raise InputError(f"new labels of type {kind}; give vectors, counts or a list of str")
    axes, index = axes_of(words)[0], index_of(words)
    is_named = index is not None and type(index).__name__ != "RangeIndex"
    if axes == 2 or hasattr(words, "columns"):
        if not is_named:
            raise InputError("vectors without labels; give hstree.WordVectors(labels, vectors)")
        return WordVectors.of(words)
    if axes == 1 and index is not None:  # a Series of numbers
        if not is_named:
            raise InputError(
                "a Series of numbers with a default index is either labels or counts; give labels "
                "as a list (`.tolist()`), counts with the labels as the index"
            )
        return Vocabulary.of(words)
    return tuple(as_words(words))


def _new_labels(words: Sequence[str], known: Mapping[str, int]) -> tuple[str, ...]:
    """Return new labels, each once; refuse those of the tree."""
    if already := [word for word in words if word in known]:
        raise InputError(
            f"the label {quoted(already[0])} is in the tree already ({len(already):,} of the "
            f"{len(words):,} labels are); give the new ones alone"
        )
    return tuple(dict.fromkeys(words))


def _counts(tree: Tree, n_labels: int, ids: Int64, counts: Int64 | None) -> Int64 | None:
    """Return the counts (V,) of the grown tree: the words', then the tree's, then zero."""
    if counts is None and tree.counts is None:
        return None
    grown = np.zeros(n_labels, np.int64)
    if tree.counts is not None:
        grown[: tree.n_labels] = tree.counts
    elif lacking := tree.n_labels - int(np.count_nonzero(ids < tree.n_labels)):
        raise InputError(
            f"the tree has no counts, and the counts of {lacking:,} of its labels are not among "
            "those given; give counts of all labels, or of none"
        )
    if counts is not None:
        grown[ids] = counts
    return grown


def _beside_nearest(
    tree: Tree, words: WordVectors, ids: Int64, weight: Array, is_counted: bool
) -> Int64:
    """Return the children of a tree with new words beside the words with the nearest vectors."""
    is_new = ids >= tree.n_labels
    edges = tree.child if tree.n_nodes else np.array([~0])
    if not is_new.any():
        return tree.child
    if is_new.all():
        raise InputError(
            f"none of the tree's {tree.n_labels:,} labels ({quoted(tree.labels[0])}, ...) has a "
            "vector; give the vectors of old and new labels together"
        )
    new_rows, old_rows = (np.flatnonzero(mask) for mask in (is_new, ~is_new))
    nearest = ids[old_rows][_nearest(words.vectors, new_rows, old_rows)]
    # (leaves,) the leaves by their labels; beside each of those of `nearest` is a new one
    leaves = np.flatnonzero(edges < 0)
    leaves = leaves[np.argsort(~edges[leaves], kind="stable")]
    n_leaves = np.bincount(~edges[leaves])
    start = offsets(n_leaves[nearest])
    leaf = leaves[ranges(offsets(n_leaves)[nearest], start)]
    split, size = np.unique(leaf, return_counts=True)
    # (items,) the old label of each leaf that is split, and the new ones, the heaviest first
    leaf = np.r_[split, leaf]
    label = np.r_[~edges[split], np.repeat(ids[is_new], n_leaves[nearest])]
    is_first = label < tree.n_labels
    heaviness = weight[label]
    if not is_counted:
        heaviness[is_first] = len(label)
    order = np.lexsort((~is_first, -heaviness, leaf))
    label, heaviness = label[order], heaviness[order]

    def halves(items: Int64, start: Int64, _: None) -> Int64:
        """Send an item to the second child if more weight is before it than after it."""
        w = heaviness[items]
        before = np.cumsum(w) - w
        before -= np.repeat(before[start[:-1]], np.diff(start))
        after = np.repeat(np.add.reduceat(w, start[:-1]), np.diff(start)) - before - w
        branch: Int64 = (before > after).astype(np.int64)
        return branch

    with progress.task("growing", total=len(label), unit="leaves") as task:
        parts = divide(len(label), halves, roots=offsets(size + 1), task=task)
    new: Int64 = parts.child + tree.n_nodes
    new[parts.child < 0] = ~label[~parts.child[parts.child < 0]]
    child = edges.copy()
    child[split] = tree.n_nodes + np.arange(len(split))
    return np.concatenate([child[: len(tree.child)], new])


def _nearest(vectors: Floating, new: Int64, old: Int64) -> Int64:
    """Return which of the rows `old` (V,) of vectors is nearest to each of the rows `new` (n,)."""
    there, beside = vectors.take(new, axis=0), vectors.take(old, axis=0)
    scale = vectors.dtype.type(min(scale_of(there), scale_of(beside)))
    centre = (beside * scale).mean(axis=0)
    there, beside = there * scale - centre, beside * scale - centre
    half = np.vecdot(beside, beside) / 2
    nearest = np.empty(len(new), np.int64)
    step = max(1, PRODUCTS // len(old))
    for at in range(0, len(new), step):
        some = slice(at, at + step)
        nearest[some] = np.argmax(there[some] @ beside.T - half, axis=1)
    return nearest


def _where_cheapest(tree: Tree, weight: Float64) -> Int64:
    """Return the children of a tree with new labels where weights times lengths grow least."""
    child = tree.child if tree.n_nodes else np.array([~0])
    # (leaves,) edge, label, weight and code length of each leaf
    edge = np.flatnonzero(child < 0)
    label = ~child[edge]
    mass = weight[label] / np.bincount(label)[label]
    length = tree.depth[tree.edge_node[edge]] + 1.0 if tree.n_nodes else np.zeros(1)
    n_nodes = tree.n_nodes
    new = np.arange(tree.n_labels, len(weight))
    order = new[np.argsort(-weight[new], kind="stable")]
    magnitude = np.frexp(weight[order])[1]
    for left in np.split(order, np.flatnonzero(np.diff(magnitude)) + 1):
        w = weight[left].mean() if len(left) else 0.0
        while len(left):
            cost = mass + w * length
            leaf = np.argsort(cost, kind="stable")[: len(left)]
            # the two leaves that a split leaves behind may be cheaper than those that follow
            behind = np.minimum(cost[leaf] + w, w * (length[leaf] + 2))
            is_next = cost[leaf[1:]] <= np.minimum.accumulate(behind)[:-1]
            leaf = leaf[: 1 + np.count_nonzero(np.logical_and.accumulate(is_next))]
            added, left = left[: len(leaf)], left[len(leaf) :]
            child = np.r_[child, np.stack([~label[leaf], ~added], axis=1).ravel()]
            child[edge[leaf]] = n_nodes + np.arange(len(leaf))
            n_nodes += len(leaf)
            edge[leaf] = len(child) - 2 * len(leaf) + 2 * np.arange(len(leaf))
            length[leaf] += 1
            edge, label = np.r_[edge, edge[leaf] + 1], np.r_[label, added]
            mass, length = np.r_[mass, np.full(len(leaf), w)], np.r_[length, length[leaf]]
    of_tree: Int64 = child if tree.n_nodes else child[1:]  # without the leaf that was the tree
    return of_tree
