"""Importance sampling whose proposal, a mixture of n-gram models, is fitted to the model."""

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

#: Orders of the n-gram models of a mixture, beside the unigrams.
ORDERS = (2, 3)
#: Least weight of the unigrams, which bounds the importance weights of all words.
MIN_UNIGRAM = 0.02
#: Factor of the sums of the EM algorithm at each batch, so that old batches count less.
MEMORY = 0.99


class AdaptiveImportanceSampling(ImportanceSampling):
    """Importance sampling from n-grams whose mixture follows the model.

    `importance` with the proposal ``Q(w | h) = sum_i a_i Q_i(w | h)``: Q_1 are the unigrams, Q_2
    and Q_3 the Kneser-Ney models of order 2 and 3. The weights a_i start equal. They are fitted
    while the model trains, so as to minimise the Kullback-Leibler divergence from the model's
    distribution P to Q: a_i becomes the mean of ``sum_j W_j a_i Q_i(w_j) / Q(w_j)``. That is a step
    of the EM algorithm on the samples w_j with their normalised importance weights W_j, which
    stand for P. Each group of contexts has weights of its own, by the frequency of the nearest word
    in powers of 2. The paper also moves the probabilities of the n-grams towards P; here they stay.

    Labels are drawn for each target: n (d + 6 log G) operations for n samples, for G n-grams in the
    text; or V scores after `limit` samples. Testing costs V; V (d + 1) parameters. For language
    models; without the words before a target, as in a direct call of `loss`, Q is Q_1.

    Parameters
    ----------
    samples : int
        Number of labels drawn at first for each target.
    limit : int
        Number of labels drawn after which a target gets the softmax over all labels.
    effective : float
        Effective sample size that suffices.

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
    #: contexts (B, n) that `in_context` was called with
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
        """Count the n-grams of the training text; InputError where no words come before."""
        if isinstance(train, SymmetricWindows):
            raise InputError(
                "the output layer adaptive-importance needs the words before each target; "
                "train a language model, or take importance"
            )
        orders = [order for order in ORDERS if order <= train.context + 1]
        self.mixture.restart([KneserNey(order).fit(train.corpus) for order in orders])
        self.training_state = {"sums": self.mixture.sums, "mixture": self.mixture.weights}

    def in_context(self, contexts: Integer) -> Self:
        """Return the layer after contexts (B, n), in which `loss` draws labels."""
        layer = copy.copy(self)
        layer.contexts = contexts
        return layer

    def samples(self, k: int, rng: Rng, items: Int64) -> Samples:
        """Draw k labels for the context of each of these items; for all where there are none."""
        if self.contexts is None:
            return super().samples(k, rng, items)
        return self.mixture.sample(k, rng, self.contexts[items])

    def adapt(self, sample_weight: Array) -> None:
        """Let the mixture see the normalised weights (B, k) of the labels that it drew last."""
        self.mixture.observe(sample_weight)

    def loss(self, hidden: Array, targets: Integer, rng: Rng) -> tuple[Float64, Gradients]:
        """Return what `ImportanceSampling.loss` does, then fit the mixture to the samples."""
        result = super().loss(hidden, targets, rng)
        # All samples of a batch are of the same mixture.
        self.mixture.update()
        return result


class NGramMixture:
    """Mixture of unigrams and Kneser-Ney models, with weights for each frequency of a word."""

    def __init__(self, unigrams: Unigram, counts: Integer) -> None:
        self.unigrams = unigrams
        # (V,) group of the contexts in which each word is the nearest
        self.group: Int64 = np.log2(np.maximum(counts, 1)).astype(np.int64)
        # of the last labels drawn: group (B,), posterior of components (components, B, k)
        self._last: tuple[Int64, Float64] | None = None
        self.restart([])

    def restart(self, models: Sequence[KneserNey]) -> None:
        """Start with equal weights of the unigrams and of these models."""
        self.models = models
        n_components = 1 + len(models)
        # (groups, components) sums of posterior probabilities; at first, some for each component
        self.sums: Float64 = np.full((int(self.group.max()) + 1, n_components), 10.0)
        # (groups, components) rows sum to one
        self.weights: Float64 = np.empty_like(self.sums)
        self.update()

    def sample(self, k: int, rng: Rng, contexts: Integer) -> Samples:
        """Draw k labels for each context, each from a component that is drawn by its weight."""
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
        """Return the log-probabilities of component and label (B, k), (components, B, k)."""
        log_weight = np.log(self.weights[self.group[contexts[:, -1]]])
        log_prob = [self.unigrams.log_prob[labels]]
        for model in self.models:
            nearest = contexts[:, contexts.shape[1] - model.order + 1 :]
            log_prob.append(model.log_prob(nearest, labels))
        joint: Float64 = np.array(log_prob) + log_weight.T[:, :, None]
        return joint

    def observe(self, sample_weight: Array) -> None:
        """Add to the sums of EM the labels drawn last, whose weights (B, k) sum to one or are 0."""
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
