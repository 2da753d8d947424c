"""Importance sampling from a mixture of n-gram models that is fitted to the trained model."""

import copy
from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta
from scipy.special import logsumexp

from hstree._arrays import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches, SymmetricWindows
from hstree.errors import InputError
from hstree.layers.base import Gradients
from hstree.layers.importance import ImportanceSampling
from hstree.layers.noise import Count, Rng, Samples, Unigram
from hstree.ngrams.kneser_ney import KneserNey

#: Orders of the n-gram models in a mixture, in addition to the unigrams.
ORDERS = (2, 3)
#: Minimum weight of the unigrams, which bounds the importance weights of all words.
MIN_UNIGRAM = 0.02
#: Factor that multiplies the sums of the EM algorithm in each batch: old batches count less.
MEMORY = 0.99


class AdaptiveImportanceSampling(ImportanceSampling):
    """Importance sampling from a mixture of n-gram models that adapts during training.

    The layer `importance` with the proposal ``Q(w | h) = sum_i a_i Q_i(w | h)``: Q_1 is the unigram
    distribution, Q_2 and Q_3 are Kneser-Ney models of order 2 and 3. The weights a_i are equal
    initially. During training, they are fitted to minimise the Kullback-Leibler divergence from the
    model's distribution P to Q: a_i becomes the mean of ``sum_j W_j a_i Q_i(w_j) / Q(w_j)``. This
    is a step of the EM algorithm, in which the samples w_j with their normalised importance weights
    W_j represent P. Contexts are grouped by the frequency of the nearest word, in powers of 2, and
    each group has its own weights. In the paper, the n-gram probabilities adapt to P, too; here
    they are fixed.

    Labels are drawn for each target: n (d + 6 log G) operations for n samples and G n-grams in the
    text, or V scores after `limit` samples. Testing costs V scores; V (d + 1) parameters. Only for
    language models. In a direct call of `loss`, without the words before a target, Q is Q_1.

    Parameters
    ----------
    samples : int
        Initial number of labels drawn for each target.
    limit : int
        Maximum number of labels drawn; a target that needs more gets the softmax over all labels.
    effective : float
        Effective sample size at which sampling stops.

    Raises
    ------
    OptionError
        When `limit` is below `samples`.

    References
    ----------
    Y. Bengio & J.-S. Senecal, "Adaptive importance sampling to accelerate training of a neural
    probabilistic language model", IEEE Transactions on Neural Networks 19, 2008.
    """

    needs_contexts = True
    #: (B, n) contexts from the last call of `in_context`
    contexts: Integer | None = None

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: Count = 50,
        limit: Count = 400,
        effective: Annotated[float, Meta(ge=1)] = 20.0,
    ) -> None:
        super().__init__(
            vocabulary,
            dim,
            counts=counts,
            dtype=dtype,
            samples=samples,
            limit=limit,
            effective=effective,
        )
        self.shared = False
        self.mixture = NGramMixture(self.noise, vocabulary.counts if counts is None else counts)

    def prepare(self, train: ContextBatches) -> None:
        """Count the n-grams of the training text. Raises InputError for symmetric windows."""
        if isinstance(train, SymmetricWindows):
            raise InputError(
                "the output layer adaptive-importance needs the words before each target; "
                "train a language model, or use importance"
            )
        orders = [order for order in ORDERS if order <= train.context + 1]
        self.mixture.restart([KneserNey(order).fit(train.corpus) for order in orders])
        self.training_state = {"sums": self.mixture.sums, "mixture": self.mixture.weights}

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer for contexts (B, n), which determine the labels that `loss` draws."""
        layer = copy.copy(self)
        layer.contexts = contexts
        return layer

    def samples(self, k: int, rng: Rng, items: Int64) -> Samples:
        """Draw k labels for the context of each item, or for the whole batch without contexts."""
        if self.contexts is None:
            return super().samples(k, rng, items)
        return self.mixture.sample(k, rng, self.contexts[items])

    def adapt(self, sample_weight: Array) -> None:
        """Update the sums of EM with the normalised weights (B, k) of the labels drawn last."""
        self.mixture.observe(sample_weight)

    def loss(self, hidden: Array, targets: Integer, rng: Rng) -> tuple[Float64, Gradients]:
        """Compute losses and gradients as `ImportanceSampling` does, then fit the mixture."""
        result = super().loss(hidden, targets, rng)
        # All samples of a batch come from the same mixture
        self.mixture.update()
        return result


class NGramMixture:
    """Mixture of unigrams and Kneser-Ney models, with weights per group of contexts."""

    def __init__(self, unigrams: Unigram, counts: Integer) -> None:
        self.unigrams = unigrams
        # (V,) group of the contexts whose nearest word is this word
        self.group: Int64 = np.log2(np.maximum(counts, 1)).astype(np.int64)
        # For the last labels drawn: group (B,) and posterior of components (components, B, k)
        self._last: tuple[Int64, Float64] | None = None
        self.restart([])

    def restart(self, models: Sequence[KneserNey]) -> None:
        """Use these models and the unigrams, with equal weights."""
        self.models = models
        n_components = 1 + len(models)
        # (groups, components) sums of posterior probabilities, with a positive initial value
        self.sums: Float64 = np.full((int(self.group.max()) + 1, n_components), 10.0)
        # (groups, components) weights; rows sum to one
        self.weights: Float64 = np.empty_like(self.sums)
        self.update()

    def sample(self, k: int, rng: Rng, contexts: Integer) -> Samples:
        """Draw k labels for each context, each from a component drawn by the mixture weights."""
        group = self.group[contexts[:, -1]]
        cumulative = np.cumsum(self.weights[group], axis=1)[:, None, :-1]
        # (B, k) component of each draw
        chosen = (rng.random((len(contexts), k, 1)) >= cumulative).sum(axis=2)
        labels = np.empty(chosen.shape, np.int64)
        labels[chosen == 0] = self.unigrams.sample(int((chosen == 0).sum()), rng).labels
        for number, model in enumerate(self.models, 1):
            item, draw = np.nonzero(chosen == number)
            nearest = contexts[item, contexts.shape[1] - model.order + 1 :]
            labels[item, draw] = model.sample(nearest, rng, 1)[:, 0]
        labels.sort(axis=1)  # sorted keys are found faster
        joint = self.joint(labels, contexts)
        log_prob: Float64 = logsumexp(joint, axis=0)
        self._last = group, np.exp(joint - log_prob)
        return Samples(labels, log_prob)

    def joint(self, labels: Integer, contexts: Integer) -> Float64:
        """Return the joint log-probabilities (components, B, k) of components and labels (B, k)."""
        log_weight = np.log(self.weights[self.group[contexts[:, -1]]])
        log_prob = [self.unigrams.log_prob[labels]]
        for model in self.models:
            nearest = contexts[:, contexts.shape[1] - model.order + 1 :]
            log_prob.append(model.log_prob(nearest, labels))
        joint: Float64 = np.array(log_prob) + log_weight.T[:, :, None]
        return joint

    def observe(self, sample_weight: Array) -> None:
        """Update the sums of EM; weights (B, k) of the labels drawn last sum to one, or are 0."""
        if self._last is None:
            return
        group, posterior = self._last
        # (B, c) mean posterior of each component, added to the sums of the item's group
        mean = np.einsum("bk,cbk->bc", sample_weight, posterior, optimize=True)
        present, slot = np.unique(group, return_inverse=True)
        self.sums[present] *= MEMORY
        for number in range(mean.shape[1]):
            self.sums[present, number] += np.bincount(slot, mean[:, number])

    def update(self) -> None:
        """Set the weights from the sums of EM."""
        np.divide(self.sums, self.sums.sum(axis=1, keepdims=True), out=self.weights)
        self.weights *= 1 - MIN_UNIGRAM
        self.weights[:, 0] += MIN_UNIGRAM
        self._last = None
