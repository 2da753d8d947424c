"""Sampled softmax: a softmax over the target and a few labels drawn at random."""

from typing import Any

import numpy as np

from hstree._arrays import Array, Bool, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import noise


class SampledSoftmax(noise.NoiseLayer):
    """Sampled softmax, as in TensorFlow: a softmax over the target and k labels drawn at random.

    The loss is ``-log(exp(z_t) / (exp(z_t) + sum_j exp(z_j)))``, ``z_w = s_w - log E(w)``, over the
    samples j other than the target; E(w) is the expected number of times that w is drawn. The sum
    of exp(z_w) over the draws is on average the sum of exp(s_w). The gradient therefore approaches
    the gradient of the softmax as k grows, and equals it if all labels are drawn. Labels are drawn
    until k are distinct (all V labels if there are no more); E(w) is then ``1 - (1 - Q(w))^n`` for
    n draws.

    Training costs k + 1 scores per target, testing V; V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        Number of labels drawn for each batch, k; all targets of the batch share them.

    References
    ----------
    S. Jean, K. Cho, R. Memisevic & Y. Bengio, "On using very large target vocabulary for neural
    machine translation", ACL 2015; `tf.nn.sampled_softmax_loss` and "Candidate sampling algorithms
    reference" of TensorFlow.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: noise.Count = noise.SAMPLES,
    ) -> None:
        super().__init__(vocabulary, dim, samples, counts=counts, dtype=dtype)

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return the cross entropies of targets among other samples, and their derivatives."""
        samples[hits] = -np.inf
        return noise.softmax_objective(target, samples)
