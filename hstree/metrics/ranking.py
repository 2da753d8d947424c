"""Metrics for the first k labels: precision, propensity-scored precision and nDCG.

`y_true` is an indicator matrix (n, V) of the correct labels. `y_score` (n, V) has the score of each
label, such as a probability. Both may be dense or sparse; a label without a stored score is not
ranked. Labels with equal scores are ranked by number. A sample without correct labels counts as 0.
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
    """Return the mean fraction of correct labels among the k labels with the highest scores.

    Examples
    --------
    >>> precision_at_k([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)
    0.5
    """
    k = checked_count("k", k)
    is_right, _, _ = _ranked(y_true, y_score, k)
    return float(is_right.sum() / (len(is_right) * k))


def ndcg_at_k(y_true: Any, y_score: Any, k: int = 5) -> float:
    """Return the mean of ``DCG@k / max DCG@k``, where rank r has the gain ``1 / log2(r + 1)``.

    Examples
    --------
    >>> ndcg_at_k([[1, 0, 1]], [[0.9, 0.1, 0.8]], k=2)
    1.0
    """
    is_right, _, Y = _ranked(y_true, y_score, checked_count("k", k))
    n_ranked = is_right.shape[1]
    gain = 1 / np.log2(np.arange(2, n_ranked + 2))
    # (n,) maximum gain of each sample, from the number of its correct labels
    best = np.r_[1.0, np.cumsum(gain)][np.minimum(np.diff(Y.indptr), n_ranked)]
    return float(np.mean(is_right @ gain / best))


def propensity_scored_precision_at_k(
    y_true: Any, y_score: Any, inverse_propensity: ArrayLike, k: int = 5
) -> float:
    """Return the propensity-scored precision at k, as a fraction of its maximum.

    `inverse_propensity` (V,) is the weight of each label. Rare labels have a higher weight, since
    they are more often missing in the data [1]_.

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
    # (labels,) weights of the correct labels; the k highest weights of each sample count
    label_weight = weight[Y.indices]
    sample = segment_ids(Y.indptr)
    order = np.lexsort((-label_weight, sample))
    is_counted = np.arange(len(order)) - Y.indptr[sample] < k
    highest = label_weight[order][is_counted].sum()
    return float(weight[first[is_right]].sum() / highest) if highest > 0 else 0.0


def inverse_propensity(y_train: Any, A: float = 0.55, B: float = 1.5) -> Float64:
    """Return the inverse propensity (V,) of each label in a training set (n, V).

    In the model of [1]_, it is ``1 + C (N_l + B)^-A`` with ``C = (log n - 1) (B + 1)^A``, for a
    label with ``N_l`` samples.

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

    Returns whether each of the first labels is correct, and its number, both (n, min(k, V)), and
    `y_true` as a CSR array.
    """
    Y = _indicator(y_true, "y_true")
    S = as_table(y_score, "y_score")
    is_sparse = scipy.sparse.issparse(S)
    S = canonical_csr(S, keep_zeros=True) if is_sparse else S
    S = S.astype(np.float64, copy=False)  # unsigned integers cannot be negated
    if S.shape != Y.shape:
        raise InputError(f"y_score has the shape {S.shape}, y_true {Y.shape}; give one score each")

    # (n, width) labels of each sample by descending score, ties by number
    n, n_labels = Y.shape
    width = min(k, n_labels)
    first = np.full((n, width), -1)  # -1 for missing labels in samples with few scores
    if not is_sparse:
        first[:] = np.argsort(-S, axis=1, kind="stable")[:, :width]
    else:
        sample = segment_ids(S.indptr)
        order = np.lexsort((S.indices, -S.data, sample))
        rank = np.arange(len(order)) - S.indptr[sample]
        is_first = rank < width
        first[sample[is_first], rank[is_first]] = S.indices[order][is_first]

    # A pair of a sample and a label is correct if it is stored in `y_true`
    right = segment_ids(Y.indptr) * n_labels + Y.indices
    pairs = np.where(first < 0, -1, np.arange(n)[:, None] * n_labels + first)
    return np.isin(pairs, right), first, Y


def _indicator(y: Any, name: str) -> Any:
    """Return the correct labels (n, V) as a CSR array without stored zeros."""
    Y = canonical_csr(as_table(y, name))
    if Y.shape[0] == 0:
        raise InputError(f"{name} has no sample; give at least one")
    return Y
