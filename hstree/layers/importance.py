"""Importance sampling of the softmax gradient, with a number of samples per target as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.layers import noise
from hstree.layers.base import Gradients, ParameterGradient, sum_rows
from hstree.layers.dense import TABLE_LIMIT


class ImportanceSampling(noise.NoiseLayer):
    """Biased importance sampling of the softmax, with a minimum effective sample size.

    The gradient of ln Z is the mean gradient of the logits s over the model's distribution. It is
    estimated from samples w_1, ..., w_n of a proposal Q. Each sample has the weight
    ``r_j = exp(s_{w_j}) / Q(w_j)``, divided by the sum of all weights. This makes the estimate
    biased, but does not need Z. It is the gradient of the loss ``-s_t + ln((1 / n) sum_j r_j)``.
    The effective sample size is ``(sum r)^2 / sum r^2``. A target gets more samples until this is
    `effective` or more; after `limit` samples, it gets the softmax over all V labels.

    In contrast to the paper, the target's term of Z is exact:
    ``Z = exp(s_t) + (1 / n) sum_{w_j != t} r_j``. The loss therefore has a minimum; otherwise, the
    logit of a target that is not among the samples would grow without bound. The paper draws blocks
    of equal size; here, each block has as many samples as all earlier blocks together.

    Training costs n + 1 scores per target, or V; testing costs V. V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        Initial number of labels drawn; all targets of a batch share them.
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
    Y. Bengio & J.-S. Senecal, "Quick training of probabilistic neural nets by importance
    sampling", AISTATS 2003.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: noise.Count = 200,
        limit: noise.Count = 1600,
        effective: Annotated[float, Meta(ge=1)] = 100.0,
    ) -> None:
        super().__init__(vocabulary, dim, samples, counts=counts, dtype=dtype, unique=False)
        if limit < samples:
            reason = f"is {limit}, below the {samples} samples that are drawn first; give more"
            raise OptionError.about("limit", reason)
        self.limit = limit
        self.effective = effective

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return ``ln Z - s_t`` with Z estimated from the samples, and its derivatives."""
        samples[hits] = -np.inf
        return noise.softmax_objective(target, samples)

    def samples(self, k: int, rng: noise.Rng, items: Int64) -> noise.Samples:
        """Draw k labels with replacement, shared by the batch or for each of these items."""
        return self.noise.sample(k, rng)

    def adapt(self, sample_weight: Array) -> None:
        """Adapt the proposal to the normalised weights (B, k) of a batch's first samples."""

    def loss(self, hidden: Array, targets: Integer, rng: noise.Rng) -> tuple[Float64, Gradients]:
        """Return ``ln Z - s_t``, with Z estimated or computed, and the gradients of the sum."""
        losses = np.empty(len(targets))
        grad_hidden = np.zeros_like(hidden)
        parts: list[Sequence[ParameterGradient]] = []
        waiting = np.arange(len(targets))  # items without an estimate

        # Estimate Z from increasing numbers of samples; keep the estimates that suffice
        drawn: noise.Samples | None = None
        n = 0
        while len(waiting) and n < self.limit:
            size = min(max(self.n_samples, n), self.limit - n)
            more = self.samples(size, rng, waiting)
            if drawn is not None:
                more = noise.Samples(
                    labels=np.hstack([drawn.labels, more.labels]),
                    log_prob=np.hstack([drawn.log_prob, more.log_prob]),
                )
            drawn = more
            n += size
            estimate = self._estimate(hidden[waiting], targets[waiting], drawn)
            if n == self.n_samples:
                self.adapt(estimate.sample_weight)
            losses[waiting] = estimate.losses
            grad_hidden[waiting] += estimate.gradients.hidden
            parts.append(estimate.gradients.parameters)
            waiting = waiting[~estimate.suffices]
            if drawn.labels.ndim == 2:
                still = ~estimate.suffices
                drawn = noise.Samples(drawn.labels[still], drawn.log_prob[still])

        # Compute the softmax over all labels for the other items, in blocks
        step = max(1, TABLE_LIMIT // self.n_labels)
        for a in range(0, len(waiting), step):
            items = waiting[a : a + step]
            estimate = self._estimate(hidden[items], targets[items], None)
            losses[items] = estimate.losses
            grad_hidden[items] += estimate.gradients.hidden
            parts.append(estimate.gradients.parameters)
        if len(parts) == 1:
            return losses, Gradients(grad_hidden, parts[0])
        summed = [sum_rows(same, self.n_labels) for same in zip(*parts, strict=True)]
        return losses, Gradients(grad_hidden, summed)

    def _estimate(self, hidden: Array, targets: Integer, drawn: noise.Samples | None) -> Estimate:
        """Estimate losses and gradients from samples, or compute them from all labels."""
        # (k,) or (b, k) labels, log of the expected count of each, and its number of draws
        times: Array = np.ones(1)
        if drawn is None:
            labels = np.arange(self.n_labels)
            log_expected = np.zeros(1)
        else:
            labels = drawn.labels
            log_expected = drawn.log_prob + np.log(labels.shape[-1])
            if labels.ndim == 1:
                labels, first, times = np.unique(labels, return_index=True, return_counts=True)
                log_expected = log_expected[first] - np.log(times)

        # ln Z - s_t, with Z = exp(s_t) + (1 / n) sum of r_j over the samples other than t
        logits = noise.CandidateLogits(self.weight, self.bias, hidden, targets, labels)
        losses, grad_target, grad_samples = self.objective(
            logits.target,
            logits.samples - log_expected.astype(hidden.dtype),
            labels == targets[:, None],
        )

        # (b, k) normalised weights of the samples; zero if all samples are the target
        total = grad_samples.sum(axis=1, keepdims=True)
        sample_weight = grad_samples / np.maximum(total, np.finfo(total.dtype).tiny)
        suffices = np.ones(len(targets), np.bool_)
        if drawn is not None:
            # Inverse of the effective sample size (sum r)^2 / sum r^2
            inverse = (sample_weight**2 / times).sum(axis=1)
            suffices = (inverse * self.effective <= 1) & (total[:, 0] > 0)
        gradients = logits.backward(grad_target * suffices, grad_samples * suffices[:, None])
        return Estimate(suffices, losses, gradients, sample_weight)


class Estimate(NamedTuple):
    """Estimated losses of some items."""

    suffices: Bool  # (b,) whether the effective sample size is large enough
    losses: Float64  # (b,)
    gradients: Gradients  # zero for items whose samples do not suffice
    sample_weight: Array  # (b, k) normalised weights of the samples
