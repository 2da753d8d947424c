"""Noise-contrastive estimation: distinguishing targets from labels drawn from a proposal."""

from typing import Any

import numpy as np

from hstree._arrays import Array, Bool, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import noise


class NoiseContrastive(noise.NoiseLayer):
    """Noise-contrastive estimation (NCE): distinguish each target from k noise labels.

    The loss is ``-log sigmoid(z_t) - sum_j log sigmoid(-z_j)``, ``z_w = s_w - log E(w)``. The sum
    includes samples j that are the target. E(w) is the expected number of times that w is drawn,
    ``k Q(w)`` if labels may repeat. The loss treats exp(s_w) as the probability, as if Z were 1.
    Training keeps Z near 1, its initial value, since the initial biases are the log unigram. With
    ``ranking``, the loss is ``-log(exp(z_t) / (exp(z_t) + sum_j exp(z_j)))``, whose minimum does
    not depend on Z. If labels are also distinct (`unique`), samples that are the target are left
    out, since it would count twice: this is the loss of sampled softmax. If draws may repeat, as in
    the paper, such samples stay.

    Training costs k + 1 scores per target, testing V; V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        Number of labels drawn for each batch, k; all targets of the batch share them.
    unique : bool
        Whether to draw until k labels are distinct (all V labels if there are no more), as
        TensorFlow does. The expected number of times that a label is drawn is then
        ``1 - (1 - Q)^n`` for n draws, where Q is its probability.
    ranking : bool
        Whether to rank the target among the samples instead of classifying each label on its own
        (Ma & Collins 2018).

    References
    ----------
    M. Gutmann & A. Hyvarinen, "Noise-contrastive estimation", AISTATS 2010; A. Mnih & Y. W. Teh,
    "A fast and simple algorithm for training neural probabilistic language models", ICML 2012;
    Z. Ma & M. Collins, "Noise contrastive estimation and negative sampling for conditional models:
    consistency and statistical efficiency", EMNLP 2018.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: noise.Count = noise.SAMPLES,
        unique: bool = True,
        ranking: bool = False,
    ) -> None:
        super().__init__(vocabulary, dim, samples, counts=counts, dtype=dtype, unique=unique)
        self.ranking = ranking
        # Ranking does not control Z
        self.centre = None if ranking else 0.0

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return the losses of distinguishing targets from samples, and their derivatives."""
        if not self.ranking:
            return noise.binary_objective(target, samples)
        if self.unique:
            samples[hits] = -np.inf
        return noise.softmax_objective(target, samples)

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature of the loss along each label's row (V,)."""
        if self.ranking:
            return super().row_curvature(fraction, expected)
        return noise.binary_curvature(fraction, expected)
