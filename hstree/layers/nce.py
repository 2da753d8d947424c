"""Noise-contrastive estimation: telling targets from labels drawn from a proposal."""

from typing import Any

import numpy as np

from hstree._arrays import Array, Bool, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import noise


class NoiseContrastive(noise.NoiseLayer):
    """Noise-contrastive estimation (NCE): telling each target from k labels of noise.

    ``-log sigmoid(z_t) - sum_j log sigmoid(-z_j)``, ``z_w = s_w - log E(w)``, over all samples j,
    those that are the target too; E(w) is the expected number of times that w is drawn, ``k Q(w)``
    where labels may repeat. exp(s_w) is taken for the probability itself, as if Z were 1;
    training drives Z there, from 1 at the start, where the biases are the log unigram. With
    ``ranking`` it is ``-log(exp(z_t) / (exp(z_t) + sum_j exp(z_j)))`` instead, whose minimum does
    not depend on Z. Among different labels (`unique`) the target then occurs once, as it would
    count twice otherwise: that is the loss of sampled softmax. Draws that repeat, which are those
    of the paper, keep it.

    Training costs k + 1 scores per target, testing V; V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        k, the number of labels drawn for each batch, which all its targets share.
    unique : bool
        Draw until k labels are different, or take all V where there are no more, as TensorFlow
        does. Then the expected number of times that a label is drawn is ``1 - (1 - Q)^n`` for n
        draws, Q being its probability.
    ranking : bool
        Rank the target among the samples instead of judging each by itself (Ma & Collins 2018).

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
        # Ranking leaves Z free.
        self.centre = None if ranking else 0.0

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return the losses of telling targets from samples."""
        if not self.ranking:
            return noise.binary_objective(target, samples)
        if self.unique:
            samples[hits] = -np.inf
        return noise.softmax_objective(target, samples)

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature along each label's row (V,)."""
        if self.ranking:
            return super().row_curvature(fraction, expected)
        return noise.binary_curvature(fraction, expected)
