"""Hierarchical precision, recall and F1: fractions of nodes on the paths to classes.

A true and a predicted class count with all nodes above them except the root, as in HiClass: C. N.
Silla & A. A. Freitas, "A survey of hierarchical classification across different application
domains", Data Mining and Knowledge Discovery 22, 2011.
"""

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from hstree._arrays import Float64
from hstree.errors import InputError, OptionError
from hstree.tree import Tree
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.names import class_names

#: Sums over all samples, or the mean of the samples' own values.
Average = Literal["micro", "macro"]


def hierarchical_precision(
    y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro"
) -> float:
    """Return the fraction of predicted nodes that are right.

    Parameters
    ----------
    y_true, y_pred : array_like (n,)
        Classes or inner nodes of the tree: texts or numbers. The numbers 10 and 10.0 are "10".
    tree : Tree
        Tree of the taxonomy; nodes with one child count, too. `Tree.from_taxonomy` builds it from
        rows of names, the top level first, the input format of HiClass.
    average : {"micro", "macro"}, default "micro"
        "micro" divides the sums over all samples, "macro" is the mean of the samples' own values.

    Returns
    -------
    float
        From 0 to 1; 1 where the divisor is 0, for example when only the root is predicted.

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
    """Return the fraction of true nodes that are predicted; see `hierarchical_precision`.

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

    "macro" is the mean of the samples' own values.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> round(hierarchical_f1(["cat", "oak"], ["animal", "oak"], tree), 3)
    0.857
    """
    right, true, predicted = _sizes(y_true, y_pred, tree)
    return _average(2 * right, true + predicted, average)


def _average(part: Float64, total: Float64, average: str) -> float:
    if average not in ("micro", "macro"):
        raise OptionError(f"average is {average!r}; it is 'micro' or 'macro'")
    if average == "micro":
        part = part.sum(keepdims=True)
        total = total.sum(keepdims=True)
    fractions = np.divide(part, total, out=np.ones(len(part)), where=total > 0)
    return float(fractions.mean())


def _sizes(y_true: Any, y_pred: Any, tree: Tree) -> tuple[Float64, Float64, Float64]:
    """Return the numbers of nodes (n,) of each sample that are right, true and predicted."""
    names = class_names(y_true, "y_true, sample")
    n = len(names)
    names += class_names(y_pred, "y_pred, sample")
    if len(names) != 2 * n:
        raise InputError(f"{n} true and {len(names) - n} predicted samples; give one each")
    if n == 0:
        raise InputError("there is no sample; give at least one")
    nodes = _ancestors(names, tree)  # (2 n, I)
    true = nodes[:n]
    predicted = nodes[n:]
    right = true.multiply(predicted)
    return right.sum(axis=1), true.sum(axis=1), predicted.sum(axis=1)


def _ancestors(names: list[str], tree: Tree) -> Any:
    """Return an indicator (n, I) of the items above or at each name, without the root."""
    levels = Hierarchy(tree)
    index: dict[str, int] = {}
    number = [index.setdefault(name, len(index)) for name in names]
    # Go from the distinct names to the root, all together
    item = levels.find(index)
    sample = np.arange(len(item))
    pairs = []
    while len(sample):
        is_below_root = levels.depth[item] > 0
        sample = sample[is_below_root]
        item = item[is_below_root]
        pairs.append(np.stack([sample, item]))
        item = levels.parent[item]
    row, column = np.concatenate(pairs, axis=1)
    shape = len(index), len(levels.names)
    return csr_array((np.ones(len(row)), (row, column)), shape=shape)[number]
