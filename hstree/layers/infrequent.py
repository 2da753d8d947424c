"""Infrequent normalisation: a self-normalised softmax that sums over all labels for few targets."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import arithmetic
from hstree.layers.base import Gradients
from hstree.layers.dense import row_gradients, softmax_loss
from hstree.layers.self_normalised import SelfNormalised

#: Smallest weight of the penalty: float32 biases near ``1 / (2 alpha)`` have an error of 3e-5 then.
MIN_ALPHA = 1e-3


class Infrequent(SelfNormalised):
    """Self-normalised softmax, trained with the sum over all labels for a fraction of the targets.

    The scores are ``s = W h + b`` and ``Z = sum_w exp(s_w)``. A batch's loss has every target's
    score, and the penalty on a random subset S of the targets, `fraction` f of them:

        ``-sum_i s_i  +  (alpha / f) sum_(i in S) (ln Z_i)^2``

    Nothing pushes ln Z towards 0 here: a higher score lowers the first term, and a batch's mean of
    ln Z no longer changes the loss where ``2 alpha ln Z = 1``. Training therefore centres ln Z on
    ``c = 1 / (2 alpha)``, where the layer starts too: its biases are log-unigram plus c. In the
    mean over subsets the loss of one target is, with ``s = ln P + ln Z``,

        ``-ln P(target) + alpha (ln Z - c)^2 - 1 / (4 alpha)``

    which is the loss of `SelfNormalised` around c. `loss` leaves out the last term, a constant.
    Unnormalised log-probabilities are ``s - c``, and `log_normaliser` is ``ln Z - c``.

    Training costs f V + 1 scores per target; testing is as for `SelfNormalised`. A smaller f makes
    the gradients noisier, as fewer targets stand for all. V (d + 1) parameters.

    Parameters
    ----------
    alpha : float
        Weight of the penalty; at least 0.001, as biases near 1 / (2 alpha) lose digits.
    fraction : float
        Fraction of the targets of a batch that have the penalty, at least one.

    References
    ----------
    J. Andreas & D. Klein, "When and why are log-linear models self-normalizing?", NAACL 2015;
    J. Andreas, M. Rabinovich, M. Jordan & D. Klein, "On the accuracy of self-normalized log-
    linear models", NIPS 2015.
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
        """Return minus the scores with the penalty of a subset, and the gradients of their sum."""
        n = len(targets)
        n_chosen = min(n, max(1, round(self.fraction * n)))
        # Targets that have the penalty, and its weight, which makes up for the others
        chosen = np.sort(rng.choice(n, n_chosen, replace=False, shuffle=False))
        others = np.setdiff1d(np.arange(n), chosen)
        weight = self.alpha * n / max(1, n_chosen)

        # Those with the penalty: -s + weight (ln Z)^2
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

        # The others: -s
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

        # Without the constant 1 / (4 alpha)
        losses += self.centre / 2
        gradients = row_gradients(slice(0, self.n_labels), grad_hidden, grad_weight, grad_bias)
        return losses, gradients
