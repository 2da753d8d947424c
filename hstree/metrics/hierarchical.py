"""Hierarchical precision, recall and F: shares of nodes on the ways down to answers.

A true and a predicted class count with all nodes above them, the root left out, as HiClass counts
them: C. N. Silla & A. A. Freitas, "A survey of hierarchical classification across different
application domains", Data Mining and Knowledge Discovery 22, 2011.
"""

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from hstree._arrays import Float64
from hstree.errors import InputError, OptionError
from hstree.tree import Tree
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.names import class_names

#: Sums over all samples, or the mean of the samples' own figures.
Average = Literal["micro", "macro"]


def hierarchical_precision(
    y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro"
) -> float:
    """Return the share of predicted nodes that are right.

    Parameters
    ----------
    y_true, y_pred : array_like (n,)
        Classes or inner nodes of the tree: texts, or numbers, of which 10 and 10.0 are "10".
    tree : Tree
        Tree of the taxonomy; nodes of one child count, too. `Tree.from_taxonomy` makes one of rows
        of names from the top down, as HiClass takes them.
    average : {"micro", "macro"}, default "micro"
        "micro" divides the sums over all samples, "macro" is the mean of the samples' own figures.

    Returns
    -------
    float
        From 0 to 1; 1 where there is nothing to divide by, as when only the root is predicted.

    Raises
    ------
    InputError
        When a name is missing or not in the tree, or `y_true` and `y_pred` are of different
        lengths.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> hierarchical_precision(["cat", "oak"], ["dog", "oak"], tree)
    0.75
    """
    right, _, predicted = _sizes(y_true, y_pred, tree)
    return _average(right, predicted, average)


def hierarchical_recall(
    y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro"
) -> float:
    """Return the share of true nodes that are predicted; see `hierarchical_precision`.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> hierarchical_recall(["cat", "oak"], ["animal", "oak"], tree)
    0.75
    """
    right, true, _ = _sizes(y_true, y_pred, tree)
    return _average(right, true, average)


def hierarchical_f1(y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro") -> float:
    """Return the harmonic mean of precision and recall; see `hierarchical_precision`.

    "macro" is the mean of the samples' own.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> round(hierarchical_f1(["cat", "oak"], ["animal", "oak"], tree), 3)
    0.857
    """
    right, true, predicted = _sizes(y_true, y_pred, tree)
    return _average(2 * right, true + predicted, average)


def _average(part: Float64, whole: Float64, average: str) -> float:
    if average not in ("micro", "macro"):
        raise OptionError(f"average is {average!r}; it is 'micro' or 'macro'")
    if average == "micro":
        part, whole = part.sum(keepdims=True), whole.sum(keepdims=True)
    shares = np.divide(part, whole, out=np.ones(len(part)), where=whole > 0)
    return float(shares.mean())


def _sizes(y_true: Any, y_pred: Any, tree: Tree) -> tuple[Float64, Float64, Float64]:
    """Return how many nodes of each sample (n,) are right, true and predicted."""
    names = class_names(y_true, "y_true, sample")
    n = len(names)
    names += class_names(y_pred, "y_pred, sample")
    if len(names) != 2 * n:
        raise InputError(f"{n} true and {len(names) - n} predicted samples; give one each")
    if n == 0:
        raise InputError("there is no sample; give at least one")
    nodes = _ancestors(names, tree)  # (2 n, I)
    true, predicted = nodes[:n], nodes[n:]
    sums = [rows.sum(axis=1) for rows in (true.multiply(predicted), true, predicted)]
    return sums[0], sums[1], sums[2]


def _ancestors(names: list[str], tree: Tree) -> Any:
    """Return which items of the tree are above or at each name (n, I), without the root."""
    levels = Hierarchy(tree)
    index: dict[str, int] = {}
    number = [index.setdefault(name, len(index)) for name in names]
    item = levels.find(index)
    pairs = []
    sample = np.arange(len(item))
    while len(sample):
        is_below = levels.depth[item] > 0
        sample, item = sample[is_below], item[is_below]
        pairs.append(np.stack([sample, item]))
        item = levels.parent[item]
    row, column = np.concatenate(pairs, axis=1)
    shape = len(index), len(levels.names)
    return csr_array((np.ones(len(row)), (row, column)), shape=shape)[number]
