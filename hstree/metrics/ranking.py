"""Metrics of the first k labels: precision, propensity-scored precision and nDCG.

`y_true` is an indicator (n, V) of the right labels. `y_score` (n, V) has the score of each label,
such as a probability. Both are arrays or sparse; a label without a stored score is not ranked.
Labels with equal scores are ranked by their number. A sample without a right label counts as 0.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from hstree._arrays import Bool, Float64, Int64, canonical_csr, segment_ids
from hstree._options import checked_count
from hstree.data.arrays import as_table
from hstree.errors import InputError


def precision_at_k(y_true: Any, y_score: Any, k: int = 5) -> float:
    """Return the mean fraction of right labels among the first k of each sample.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)
    0.5
    """
    k = checked_count("k", k)
    is_right, _, _ = _ranked(y_true, y_score, k)
    return float(is_right.sum() / (len(is_right) * k))


def ndcg_at_k(y_true: Any, y_score: Any, k: int = 5) -> float:
    """Return the mean of ``DCG@k / max DCG@k``, the gain of rank r being ``1 / log2(r + 1)``.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1]], [[0.9, 0.1, 0.8]], k=2)
    1.0
    """
    is_right, _, Y = _ranked(y_true, y_score, checked_count("k", k))
    n_ranked = is_right.shape[1]
    gain = 1 / np.log2(np.arange(2, n_ranked + 2))
    # (n_ranked + 1,) highest gain of a sample with 0, 1, ... right labels
    best = np.r_[1.0, np.cumsum(gain)][np.minimum(np.diff(Y.indptr), n_ranked)]
    return float(np.mean(is_right @ gain / best))


def propensity_scored_precision_at_k(
    y_true: Any, y_score: Any, inverse_propensity: ArrayLike, k: int = 5
) -> float:
    """Return the propensity-scored precision at k, as a fraction of its highest value.

    The measure of [1]_.

    `inverse_propensity` (V,) is the weight of each label: a right label that is rare counts for
    more, since more of its samples lack it.

    References
    ----------
    .. [1] H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking & other missing label applications", KDD 2016.
    """
    k = checked_count("k", k)
    is_right, first, Y = _ranked(y_true, y_score, k)
    weight = np.asarray(inverse_propensity, np.float64)
    if weight.shape != (Y.shape[1],):
        wrong = f"{weight.shape} inverse propensities for {Y.shape[1]} labels"
        raise InputError(f"{wrong}; give one for each label")
    # (labels,) weights of the right labels, the k highest of each sample first
    label_weight = weight[Y.indices]
    sample = segment_ids(Y.indptr)
    order = np.lexsort((-label_weight, sample))
    is_counted = np.arange(len(order)) - Y.indptr[sample] < k
    highest = label_weight[order][is_counted].sum()
    return float(weight[first[is_right]].sum() / highest) if highest > 0 else 0.0


def inverse_propensity(y_train: Any, A: float = 0.55, B: float = 1.5) -> Float64:
    """Return the inverse propensity (V,) of each label of a training set (n, V).

    The model of [1]_.

    ``1 + C (N_l + B)^-A`` with ``C = (log n - 1) (B + 1)^A`` for a label of ``N_l`` samples.

    References
    ----------
    .. [1] H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking & other missing label applications", KDD 2016.
    """
    Y = _indicator(y_train, "y_train")
    n_samples = np.bincount(Y.indices, minlength=Y.shape[1])
    C = (np.log(Y.shape[0]) - 1) * (B + 1) ** A
    return np.asarray(1 + C * (n_samples + B) ** -A)


def _ranked(y_true: Any, y_score: Any, k: int) -> tuple[Bool, Int64, Any]:
    """Rank the labels of each sample.

    Returns whether each of the first labels is right and its number, both (n, min(k, V)), and
    `y_true` as a CSR array.
    """
    Y = _indicator(y_true, "y_true")
    S = as_table(y_score, "y_score")
    is_sparse = scipy.sparse.issparse(S)
    S = canonical_csr(S, keep_zeros=True) if is_sparse else S
    S = S.astype(np.float64, copy=False)  # unsigned numbers have no negative ones
    if S.shape != Y.shape:
        raise InputError(f"y_score has the shape {S.shape}, y_true {Y.shape}; give one score each")

    # (n, width) labels of each sample by falling score, ties by their number
    n, n_labels = Y.shape
    width = min(k, n_labels)
    first = np.full((n, width), -1)  # -1 where a sample has fewer labels with a score
    if not is_sparse:
        first[:] = np.argsort(-S, axis=1, kind="stable")[:, :width]
    else:
        sample = segment_ids(S.indptr)
        order = np.lexsort((S.indices, -S.data, sample))
        rank = np.arange(len(order)) - S.indptr[sample]
        is_first = rank < width
        first[sample[is_first], rank[is_first]] = S.indices[order][is_first]

    # A pair of a sample and a label is right if it is among the stored ones of `y_true`
    right = segment_ids(Y.indptr) * n_labels + Y.indices
    pairs = np.where(first < 0, -1, np.arange(n)[:, None] * n_labels + first)
    return np.isin(pairs, right), first, Y


def _indicator(y: Any, name: str) -> Any:
    """Return right labels (n, V) as a CSR array that stores nothing else."""
    Y = canonical_csr(as_table(y, name))
    if Y.shape[0] == 0:
        raise InputError(f"{name} has no sample; give at least one")
    return Y
