"""Hierarchical precision, recall and F1: fractions of nodes on the paths to classes.

A class is represented by itself and all nodes above it except the root, as in HiClass: C. N. Silla
& A. A. Freitas, "A survey of hierarchical classification across different application domains",
Data Mining and Knowledge Discovery 22, 2011.
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

#: Kind of average: sums over all samples, or the mean over samples.
Average = Literal["micro", "macro"]
#: Kind of average -> its name in scikit-learn.
AVERAGES = {"micro": "micro", "macro": "samples"}


def hierarchical_precision(
    y_true: Any, y_pred: Any, tree: Tree, *, average: Average = "micro"
) -> float:
    """Return the fraction of predicted nodes that are correct.

    A prediction counts as its node and all ancestors of this node, except the root.

    Parameters
    ----------
    y_true, y_pred : array_like (n,)
        Classes or inner nodes of the tree, as strings or numbers. 10, 10.0 and "10" are the same.
    tree : Tree
        Tree of the taxonomy; nodes with one child count, too. `Tree.from_taxonomy` builds it from
        rows of names, the top level first, which is the input format of HiClass.
    average : {"micro", "macro"}, default "micro"
        "micro" divides sums over all samples; "macro" is the mean of the values of all samples.

    Returns
    -------
    float
        From 0 to 1; 1 if the divisor is 0, for example if only the root is predicted.

    Raises
    ------
    InputError
        When a name is missing or not in the tree, or `y_true` and `y_pred` have different lengths.

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

    "macro" is the mean of the values of all samples.

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
    """Return a metric of scikit-learn for labels that are the items at and above each name."""
    if average not in AVERAGES:
        raise OptionError(f"average is {average!r}; it must be 'micro' or 'macro'")
    true_names = class_names(y_true, "y_true, sample")
    names = class_names(y_pred, "y_pred, sample")
    n = len(true_names)
    if len(names) != n:
        raise InputError(f"{n} true and {len(names)} predicted samples; give one each")
    if n == 0:
        raise InputError("there is no sample; give at least one")
    # The labels of a sample are all items on the path to its name, except the root
    levels = Hierarchy(tree)
    true = _ancestors(levels, true_names)
    predicted = _ancestors(levels, names)
    return float(metric(true, predicted, average=AVERAGES[average], zero_division=1.0))


def _ancestors(levels: Hierarchy, names: list[str]) -> Any:
    """Return an indicator matrix (n, I) of the items at and above each name, without the root."""
    # Go up from all names to the root, a level at a time
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
    # scikit-learn requires two columns or more
    shape = len(names), max(2, len(levels.names))
    return csr_array((np.ones(len(row), np.int8), (row, column)), shape=shape)
