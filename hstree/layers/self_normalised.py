"""Self-normalised softmax: trained so that its scores can be used without normalisation."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers.base import Gradients
from hstree.layers.dense import DenseLayer, row_gradients, softmax_loss


class SelfNormalised(DenseLayer):
    """Softmax over all labels, trained with a penalty that keeps Z near 1.

    The scores are ``s = W h + b`` and ``Z = sum_w exp(s_w)``. Training minimises

        ``-ln P(target) + alpha (ln Z)^2``

    The scores are then approximately log-probabilities. In testing, the score of a target costs d
    multiplications instead of V d. A larger `alpha` moves ln Z closer to 0, but raises the
    perplexity. Training costs V scores per target, as in the flat softmax; V (d + 1) parameters.

    Parameters
    ----------
    alpha : float
        Weight of the penalty.

    References
    ----------
    J. Devlin, R. Zbib, Z. Huang, T. Lamar, R. Schwartz & J. Makhoul, "Fast and robust neural
    network joint models for statistical machine translation", ACL 2014.
    """

    centre: float = 0.0

    is_likelihood = False  # losses include a penalty

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        alpha: Annotated[float, Meta(gt=0)] = 0.1,
    ) -> None:
        super().__init__(vocabulary, dim, counts=counts, dtype=dtype)
        self.alpha = alpha

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return negative log-likelihoods plus the penalty, and the gradients of their sum."""
        alpha = self.alpha
        log_z, logit, gradients = softmax_loss(
            hidden, self.weight, self.bias, targets, slope=lambda log_z: 1 + 2 * alpha * log_z
        )
        losses = log_z - logit + alpha * log_z**2
        return losses, row_gradients(slice(0, self.n_labels), *gradients)

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Estimate the mean curvature of the loss along each row, per parameter (V,).

        The penalty adds ``2 alpha p^2`` to ``p (1 - p)`` of the softmax, if ln Z is 0.
        """
        fraction = counts / counts.sum()
        curvature = fraction * (1 - fraction) + 2 * self.alpha * fraction**2
        return {"weight": curvature, "bias": curvature}
