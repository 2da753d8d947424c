"""Joining trees under a new root, as for the words of a vocabulary without a vector."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from hstree._arrays import Int64, offsets
from hstree.builders.flat import flat_tree
from hstree.builders.huffman import huffman_tree
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.row_numbers import RowNumbers


def join_under_root(
    trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Join trees side by side under a new root.

    Parameters
    ----------
    trees : sequence of Tree
        At least one. A label may be in several of them; it then has codes in each.
    labels : sequence of str, length V
        Labels of the result: the union of the labels of the trees, in any order.
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The children of its root are the roots of the trees, in order; a tree of one label is that
        label, which occurs once. With one child there is no new root. Nodes keep their order and
        names; meta is not kept. O(V + E).

    Raises
    ------
    TreeError
        When a label is in no tree.
    KeyError
        When a tree has a label that is not among `labels`.

    Examples
    --------
    >>> pair = Tree.from_children(["a", "b"], [[~0, ~1]])
    >>> join_under_root([pair, Tree(["c"], [0], [])], ["c", "b", "a"]).child.tolist()
    [1, -1, -3, -2]
    """
    different = {tree.labels[0] if tree.n_nodes == 0 else i: tree for i, tree in enumerate(trees)}
    top = flat_tree(RowNumbers(len(different)))
    return graft(top, list(different.values()), labels, counts=counts)


def graft(
    top: Tree, trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Put tree i in the place of label i of a tree; a tree of one label leaves that.

    The nodes are those of `top`, then those of each tree, with their names. Labels, counts and
    errors are as of `join_under_root`.
    """
    labels = labels if isinstance(labels, RowNumbers) else tuple(labels)
    number: dict[str, int] = {}
    names = list(top.names or [None] * top.n_nodes)
    fan_out, child = [top.fan_out], []
    root = np.empty(len(trees), np.int64)
    for i, tree in enumerate(trees):
        if tree.labels == labels:
            label_number = np.arange(len(labels))
        else:
            number = number or {label: i for i, label in enumerate(labels)}
            label_number = np.array([number[label] for label in tree.labels], np.int64)
        root[i] = len(names) if tree.n_nodes else ~label_number[0]
        fan_out.append(tree.fan_out)
        to_leaf = ~label_number[~np.minimum(tree.child, -1)]  # (E,) right at edges to labels
        child.append(np.where(tree.child < 0, to_leaf, tree.child + len(names)))
        names += tree.names or [None] * tree.n_nodes
    of_top = np.where(top.child < 0, root[~np.minimum(top.child, -1)], top.child)
    start, children = offsets(np.concatenate(fan_out)), np.concatenate([of_top, *child])
    return Tree(labels, start, children, counts=counts, names=names)


def with_name(tree: Tree, name: str) -> Tree:
    """Return a tree whose root alone has a name; one without a node as it is."""
    names = [name] + [None] * (tree.n_nodes - 1) if tree.n_nodes else None
    return Tree(tree.labels, tree.child_start, tree.child, counts=tree.counts, names=names)


def vector_rows(vocabulary: Vocabulary, vectors: WordVectors) -> Int64:
    """Return the row (V,) of each word's vector, or -1; InputError where no word has one."""
    row_of = {label: row for row, label in enumerate(vectors.labels)}
    row = np.array([row_of.get(word, -1) for word in vocabulary.words], np.int64)
    if (row < 0).all():
        raise InputError(
            f"none of the vocabulary's {len(vocabulary)} words ({vocabulary.words[0]!r}, ...) is "
            f"among the {len(vectors)} words with a vector ({vectors.labels[0]!r}, ...); "
            "are both in the same language and case?"
        )
    return row


def covered_part(vocabulary: Vocabulary, vectors: WordVectors) -> tuple[WordVectors, Int64]:
    """Return the vectors and counts of the words that have a vector, and the ids of the others."""
    row = vector_rows(vocabulary, vectors)
    covered = np.flatnonzero(row >= 0)
    words, counts = [vocabulary.words[i] for i in covered.tolist()], vocabulary.counts[covered]
    rows = vectors.vectors[row[covered]]
    return WordVectors(words, rows, counts=counts, source=vectors.source), np.flatnonzero(row < 0)


def over_vocabulary(
    build: Callable[[WordVectors], Tree], vectors: WordVectors, vocabulary: Vocabulary
) -> tuple[Tree, dict[str, object]]:
    """Build a tree over a vocabulary of which some words have no vector, in its order.

    `build` builds the tree of the words with a vector; their counts are the vocabulary's. Words
    without a vector are in a Huffman tree, the second child of a new root; there is none where
    every word has a vector. Returns entries of meta["input"] too; ``tokens_without_vector`` is a
    share of all tokens, None where all counts are zero.
    """
    covered, without = covered_part(vocabulary, vectors)
    tree, words = build(covered), vocabulary.words
    meta = tree.meta
    if without.size:
        alone = [words[i] for i in without.tolist()]
        others = huffman_tree(alone, vocabulary.counts[without])
        tree = join_under_root([tree, others], words, counts=vocabulary.counts)
    tokens = int(vocabulary.counts.sum())
    coverage: dict[str, object] = {
        "vocabulary": vocabulary.source,
        "words_without_vector": without.size,
        "tokens_without_vector": int(vocabulary.counts[without].sum()) / tokens if tokens else None,
        "vectors_left_out": len(vectors) - len(covered),
    }
    return tree.with_meta(meta), coverage
