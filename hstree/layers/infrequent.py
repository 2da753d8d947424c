"""Infrequent normalisation: a self-normalised softmax that computes Z only for few targets."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import arithmetic
from hstree.layers.base import Gradients
from hstree.layers.dense import row_gradients, softmax_loss
from hstree.layers.self_normalised import SelfNormalised

#: Minimum weight of the penalty; float32 biases near ``1 / (2 alpha)`` then have an error of 3e-5.
MIN_ALPHA = 1e-3


class Infrequent(SelfNormalised):
    """Self-normalised softmax that computes Z only for a fraction of the training targets.

    The scores are ``s = W h + b`` and ``Z = sum_w exp(s_w)``. The loss of a batch has the score of
    every target, and a penalty on a random subset S, a fraction f (`fraction`) of the targets:

        ``-sum_i s_i  +  (alpha / f) sum_(i in S) (ln Z_i)^2``

    This loss does not push ln Z towards 0: higher scores lower the first term, and the minimum with
    respect to the mean of ln Z is at ``2 alpha ln Z = 1``. Training therefore centres ln Z at
    ``c = 1 / (2 alpha)``. The layer starts there, too: its biases are log-unigram plus c. Averaged
    over subsets, the loss of one target is, with ``s = ln P + ln Z``,

        ``-ln P(target) + alpha (ln Z - c)^2 - 1 / (4 alpha)``

    This is the loss of `SelfNormalised` with centre c. `loss` leaves out the last term, a constant.
    Unnormalised log-probabilities are ``s - c``, and `log_normaliser` is ``ln Z - c``.

    Training costs f V + 1 scores per target; testing costs the same as `SelfNormalised`. A smaller
    f gives noisier gradients, since fewer targets represent the batch. V (d + 1) parameters.

    Parameters
    ----------
    alpha : float
        Weight of the penalty. Minimum 0.001, since biases near 1 / (2 alpha) lose digits.
    fraction : float
        Fraction of the targets in a batch that have the penalty (at least one target).

    References
    ----------
    J. Andreas & D. Klein, "When and why are log-linear models self-normalizing?", NAACL 2015;
    J. Andreas, M. Rabinovich, M. Jordan & D. Klein, "On the accuracy of self-normalized
    log-linear models", NIPS 2015.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        alpha: Annotated[float, Meta(ge=MIN_ALPHA)] = 0.1,
        fraction: Annotated[float, Meta(gt=0, le=1)] = 0.1,
    ) -> None:
        super().__init__(vocabulary, dim, counts=counts, dtype=dtype, alpha=alpha)
        self.fraction = fraction
        self.centre = 1 / (2 * alpha)
        self.bias += self.bias.dtype.type(self.centre)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return negative scores plus the penalty of a subset, and the gradients of their sum."""
        n = len(targets)
        n_chosen = min(n, max(1, round(self.fraction * n)))
        # Targets that have the penalty, and its weight, scaled to represent the whole batch
        chosen = np.sort(rng.choice(n, n_chosen, replace=False, shuffle=False))
        others = np.setdiff1d(np.arange(n), chosen)
        weight = self.alpha * n / max(1, n_chosen)

        # Losses with the penalty: -s + weight (ln Z)^2
        log_z, logit, (grad_chosen, grad_weight, grad_bias) = softmax_loss(
            hidden[chosen],
            self.weight,
            self.bias,
            targets[chosen],
            slope=lambda log_z: 2 * weight * log_z,
        )
        losses = np.empty(n)
        losses[chosen] = weight * log_z**2 - logit
        grad_hidden = np.empty_like(hidden)
        grad_hidden[chosen] = grad_chosen

        # Losses of the other targets: -s
        losses[others] = -self.target_logits(hidden[others], targets[others])
        grad_others, rows, weight_part, bias_part = arithmetic.gather_dot_backward(
            self.weight,
            hidden[others],
            np.arange(len(others)),
            targets[others].astype(np.int64),
            np.full(len(others), -1, self.weight.dtype),
        )
        grad_hidden[others] = grad_others
        grad_weight[rows] += weight_part
        grad_bias[rows] += bias_part

        # Leave out the constant -1 / (4 alpha)
        losses += self.centre / 2
        gradients = row_gradients(slice(0, self.n_labels), grad_hidden, grad_weight, grad_bias)
        return losses, gradients
