"""Scaling of the features of a label tree: TF-IDF, unit length, or one factor for all."""

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from hstree._arrays import Float64, Int64, Integer, segment_ids
from hstree.interop.sklearn.features import check_not_too_large, largest_magnitude
from hstree.layers.arithmetic import touched_rows

#: Number from which on float32 has whole numbers alone, so that they need not be counts.
LEAST_UNCOUNTED = 1 << 24


class FeatureScale(NamedTuple):
    """Factors of features; almost all of a wide X have the same one, that of an unseen feature."""

    features: Int64  #: (K,) features with a factor of their own, ascending
    factor: Float64  #: (K,)
    other: float  #: factor of the other features
    has_unit_length: bool  #: whether each sample is scaled to length one afterwards

    @classmethod
    def fit(cls, X: Any, scaling: str) -> Self:
        """Return the scale for a training X, a canonical CSR array.

        `scaling` is "auto", "tfidf", "unit" or "none"; see `ProbabilisticLabelTreeClassifier`.
        """
        if scaling == "auto":
            is_count = (X.data == np.rint(X.data)).all() and largest_magnitude(X) < LEAST_UNCOUNTED
            is_positive = (X.data > 0).all()
            scaling = "none" if not is_positive else "tfidf" if is_count else "unit"

        n = X.shape[0]
        if scaling == "tfidf":
            features, index = touched_rows(X.indices, X.shape[1])
            n_samples = np.bincount(index)
            factor = np.log((1 + n) / (1 + n_samples)) + 1
            return cls(features, factor, float(np.log(1 + n) + 1), has_unit_length=True)
        if scaling == "unit":
            return cls(np.empty(0, np.int64), np.empty(0), 1.0, has_unit_length=True)

        # Divide by the root mean squared length. A power of two is divided out before, so that
        # squares neither overflow nor vanish.
        exponent = np.frexp(largest_magnitude(X))[1]
        data = np.ldexp(X.data.astype(np.float64), -exponent)
        with np.errstate(over="ignore"):  # the largest number is near enough
            length = float(np.ldexp(np.sqrt(np.vdot(data, data) / n) or 1, exponent))
        length = min(length, np.finfo(float).max)
        return cls(np.empty(0, np.int64), np.empty(0), 1 / length, has_unit_length=False)

    @classmethod
    def from_array(cls, scale: Float64, *, has_unit_length: bool) -> Self:
        """Return the scale with these factors of all features (n_features,)."""
        other = float(scale.max(initial=0))
        features = np.flatnonzero(scale != other)
        return cls(features, scale[features], other, has_unit_length)

    def to_array(self, n_features: int) -> Float64:
        """Return the factors of all features (n_features,)."""
        scale = np.full(n_features, self.other)
        scale[self.features] = self.factor
        return scale

    def factors(self, feature: Integer) -> Float64 | float:
        """Return the factors of features that may repeat."""
        if not len(self.features):
            return self.other
        position = np.searchsorted(self.features, feature)
        position = np.minimum(position, len(self.features) - 1)
        is_known = self.features[position] == feature
        return np.where(is_known, self.factor[position], self.other)

    def apply(self, X: Any) -> Any:
        """Return the samples of a canonical CSR array as the model takes them.

        Raises InputError where they are too large for sums in float32.
        """
        data = X.data.astype(np.float64)
        sample = segment_ids(X.indptr)
        if self.has_unit_length:
            # Powers of two are divided out, so that squares neither overflow nor vanish
            exponent = np.frexp(abs(X).max(axis=1).toarray().ravel())[1]
            data = np.ldexp(data, -exponent[sample])
        data *= self.factors(X.indices)
        if self.has_unit_length:
            data /= np.sqrt(np.bincount(sample, data**2, minlength=X.shape[0]))[sample]
        with np.errstate(over="ignore"):  # refused as too large
            data = data.astype(X.dtype)
        scaled = scipy.sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
        check_not_too_large(scaled)
        return scaled
