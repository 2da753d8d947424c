"""Negative sampling of word2vec, as an output layer with normalised probabilities."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import noise


class NegativeSampling(noise.NoiseLayer):
    """Negative sampling of word2vec: telling each target from k labels of noise, uncorrected.

    ``-log sigmoid(z_t) - sum_j log sigmoid(-z_j)`` over the samples j that are not the target.
    ``s_w = z_w + log(k Q(w))`` with ``z_w = v_w h + c_w`` are the logits of a language model, which
    are normalised for scoring. Apart from hits, that is noise-contrastive estimation (Dyer 2014).
    Without hits, s_w approaches ``log(p_w / (1 - p_w))``, not ``log p_w``: a word of a high
    probability p_w comes out too probable. This layer keeps the biases ``c_w + log(k Q(w))`` of s,
    at the log unigram at the start. word2vec itself has no c_w.

    Training costs k + 1 scores per target, testing V; V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        k, the number of labels drawn.
    shared : bool
        Draw them for the whole batch; word2vec draws for each target.
    alpha : float
        Power of the counts in the distribution that they are drawn from: 0 for the uniform one.

    References
    ----------
    T. Mikolov, I. Sutskever, K. Chen, G. Corrado & J. Dean, "Distributed representations of words
    and phrases and their compositionality", NIPS 2013; C. Dyer, "Notes on noise contrastive
    estimation and negative sampling", arXiv:1410.8251, 2014.
    """

    centre = 0.0

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: noise.Count = 5,
        shared: bool = False,
        alpha: Annotated[float, Meta(ge=0, le=1)] = 0.75,
    ) -> None:
        super().__init__(
            vocabulary,
            dim,
            samples,
            counts=counts,
            dtype=dtype,
            shared=shared,
            unique=False,
            alpha=alpha,
        )

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return the losses of telling targets from the samples that are not the target."""
        samples[hits] = -np.inf
        return noise.binary_objective(target, samples)

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature along each label's row (V,)."""
        return noise.binary_curvature(fraction, expected)
