"""Hierarchical precision, recall and F1: fractions of nodes on the paths to classes.

A true and a predicted class count with all nodes above them except the root, as in HiClass: C. N.
Silla & A. A. Freitas, "A survey of hierarchical classification across different application
domains", Data Mining and Knowledge Discovery 22, 2011.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import f1_score, precision_score, recall_score

from hstree.errors import InputError, OptionError
from hstree.tree import Tree
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.names import class_names

#: Sums over all samples, or the mean of the samples' own values.
Average = Literal["micro", "macro"]
#: What scikit-learn calls them.
AVERAGES = {"micro": "micro", "macro": "samples"}


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
    return _score(precision_score, y_true, y_pred, tree, average)


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
    return _score(recall_score, y_true, y_pred, tree, average)


def hierarchical_f1(y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro") -> float:
    """Return the harmonic mean of precision and recall; see `hierarchical_precision`.

    "macro" is the mean of the samples' own values.

    Examples
    --------
    >>> tree = Tree.from_taxonomy({"animal": ["cat", "dog"], "plant": ["oak", "elm"]})
    >>> round(hierarchical_f1(["cat", "oak"], ["animal", "oak"], tree), 3)
    0.857
    """
    return _score(f1_score, y_true, y_pred, tree, average)


def _score(
    metric: Callable[..., float], y_true: Any, y_pred: Any, tree: Tree, average: str
) -> float:
    """Return a metric of scikit-learn, with the items above or at each name as labels."""
    if average not in AVERAGES:
        raise OptionError(f"average is {average!r}; it is 'micro' or 'macro'")
    true_names = class_names(y_true, "y_true, sample")
    names = class_names(y_pred, "y_pred, sample")
    n = len(true_names)
    if len(names) != n:
        raise InputError(f"{n} true and {len(names)} predicted samples; give one each")
    if n == 0:
        raise InputError("there is no sample; give at least one")
    # Each sample has the labels of all items on the way to its name, but the root
    levels = Hierarchy(tree)
    true = _ancestors(levels, true_names)
    predicted = _ancestors(levels, names)
    return float(metric(true, predicted, average=AVERAGES[average], zero_division=1.0))


def _ancestors(levels: Hierarchy, names: list[str]) -> Any:
    """Return an indicator (n, I) of the items above or at each name, without the root."""
    # Go from the names to the root, all together
    item = levels.find(names)
    sample = np.arange(len(names))
    pairs = []
    while len(sample):
        is_below_root = levels.depth[item] > 0
        sample = sample[is_below_root]
        item = item[is_below_root]
        pairs.append(np.stack([sample, item]))
        item = levels.parent[item]
    row, column = np.concatenate(pairs, axis=1)
    # scikit-learn accepts two columns or more
    shape = len(names), max(2, len(levels.names))
    return csr_array((np.ones(len(row), np.int8), (row, column)), shape=shape)
