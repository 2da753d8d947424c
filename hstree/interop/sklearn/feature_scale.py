"""Scaling of the features of a label tree: TF-IDF, unit length, or one factor for all."""

from typing import Any

import numpy as np
import scipy.sparse

from hstree._arrays import Float64, segment_ids
from hstree.interop.sklearn.features import check_not_too_large, largest_magnitude
from hstree.layers.arithmetic import touched_rows

#: A feature in more than this fraction of the samples is taken for a stop word.
FREQUENT = 1 / 4
#: Above this, all float32 numbers are whole, so that whole numbers need not be counts.
LEAST_UNCOUNTED = 1 << 24


def fit_scale(X: Any, scaling: str) -> tuple[Float64, bool]:
    """Return the factors (n_features,) of features, and whether to scale samples to unit length.

    X is a training set, a canonical CSR array. `scaling` is "auto", "tfidf", "unit" or "none"; see
    `ProbabilisticLabelTreeClassifier`.
    """
    n, n_features = X.shape
    if scaling == "auto":
        is_count = (X.data == np.rint(X.data)).all() and largest_magnitude(X) < LEAST_UNCOUNTED
        is_positive = (X.data > 0).all()
        # Without a frequent feature, inverse document frequencies would only raise rare ones
        is_frequent = (
            np.bincount(touched_rows(X.indices, n_features)[1]).max(initial=0) > FREQUENT * n
        )
        if not is_positive:
            scaling = "none"
        elif is_count and is_frequent:
            scaling = "tfidf"
        else:
            scaling = "unit"

    if scaling == "tfidf":
        # Features that do not occur, most of a wide X, have a document frequency of 0
        scale = np.full(n_features, np.log(1 + n) + 1)
        features, index = touched_rows(X.indices, n_features)
        scale[features] = np.log((1 + n) / (1 + np.bincount(index))) + 1
        return scale, True
    if scaling == "unit":
        return np.ones(n_features), True

    # Root mean squared length; numbers are divided by the largest, so that squares do not overflow
    largest = largest_magnitude(X) or 1.0
    data = X.data.astype(np.float64) / largest
    length = largest * np.sqrt(np.vdot(data, data) / n) or 1.0
    return np.full(n_features, 1 / length), False


def scale_samples(X: Any, scale: Float64, has_unit_length: bool) -> Any:
    """Scale the features of a canonical CSR array, and optionally its samples to unit length.

    Raises InputError if they are too large for sums in float32.
    """
    data = X.data.astype(np.float64)
    sample = segment_ids(X.indptr)
    if has_unit_length:
        # Divide by the largest number of each sample, so that squares neither overflow nor vanish
        data /= abs(X).max(axis=1).toarray().ravel()[sample]
    data *= scale[X.indices]
    if has_unit_length:
        data /= np.sqrt(np.bincount(sample, data**2, minlength=X.shape[0]))[sample]
    with np.errstate(over="ignore"):  # infinities are refused below
        data = data.astype(X.dtype)
    scaled = scipy.sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    check_not_too_large(scaled)
    return scaled
