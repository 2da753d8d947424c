"""Importance sampling of the softmax gradient, with as many samples as each target needs."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.layers import noise
from hstree.layers.arithmetic import slot_sums, touched_rows
from hstree.layers.base import Gradients, ParameterGradient
from hstree.layers.dense import TABLE_LIMIT


class ImportanceSampling(noise.NoiseLayer):
    """Biased importance sampling of the softmax, with an effective sample size.

    The gradient of ln Z is the mean gradient of the logits s over the model's distribution. It is
    estimated from samples w_1, ..., w_n of a proposal Q: each has the weight
    ``r_j = exp(s_{w_j}) / Q(w_j)``, divided by the sum of all, which makes the estimate biased but
    needs no Z. That is the gradient of the loss ``-s_t + ln((1 / n) sum_j r_j)``. The weights are
    worth ``(sum r)^2 / sum r^2`` equal ones. A target gets samples until these are `effective` or
    more; after `limit` samples it gets the softmax itself, over all V labels.

    Here, other than in the paper, the target's term of Z is not estimated:
    ``Z = exp(s_t) + (1 / n) sum_{w_j != t} r_j``. So the loss has a minimum; without it, a target
    that is not among the samples is raised and nothing holds it down. The paper draws blocks of
    one size; here each block has as many samples as all before it.

    Training costs n + 1 scores a target, or V; testing costs V. V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        Number of labels drawn at first, which all targets of a batch share.
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
        sampling = noise.Sampling(samples, unique=False)
        super().__init__(vocabulary, dim, sampling, counts=counts, dtype=dtype)
        if limit < samples:
            reason = f"is {limit}, below the {samples} samples that are drawn first; raise it"
            raise OptionError.about("limit", reason)
        self.limit, self.effective = limit, effective

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return ``ln Z - s_t`` with Z estimated from the samples, and its derivatives."""
        samples[hits] = -np.inf
        return noise.softmax_objective(target, samples)

    def samples(self, k: int, rng: noise.Rng, items: Int64) -> noise.Samples:
        """Draw k labels with replacement, for all or for each of these items of the batch."""
        return self.noise.sample(k, rng)

    def adapt(self, share: Array) -> None:
        """Learn from the normalised weights (B, k) of the first samples of a batch."""

    def loss(self, hidden: Array, targets: Integer, rng: noise.Rng) -> tuple[Float64, Gradients]:
        """Return ``ln Z - s_t`` with Z estimated, or computed, and the gradients of the sum."""
        losses, grad_hidden = np.empty(len(targets)), np.zeros_like(hidden)
        parts: list[Sequence[ParameterGradient]] = []
        left = np.arange(len(targets))  # items without an estimate
        drawn: noise.Samples | None = None  # their samples; those of each, or of all
        n = 0
        while len(left):
            is_full = n >= self.limit
            if is_full:
                drawn = None
                items = left[: max(1, TABLE_LIMIT // self.n_labels)]
            else:
                items = left
                size = min(max(self.sampling.samples, n), self.limit - n)
                more = self.samples(size, rng, items)
                if drawn is None:
                    drawn = more
                else:
                    both = zip(drawn, more, strict=True)
                    drawn = noise.Samples(*(np.concatenate(pair, axis=-1) for pair in both))
                n += size
            done, losses[items], gradients, share = self._estimate(
                hidden[items], targets[items], drawn
            )
            if n == self.sampling.samples and not is_full:
                self.adapt(share)
            grad_hidden[items] += gradients.hidden
            parts.append(gradients.parameters)
            left = np.concatenate([items[~done], left[len(items) :]])
            if drawn is not None and drawn.labels.ndim == 2:
                drawn = noise.Samples(drawn.labels[~done], drawn.log_prob[~done])
        return losses, Gradients(grad_hidden, summed(parts, self.n_labels))

    def _estimate(
        self, hidden: Array, targets: Integer, drawn: noise.Samples | None
    ) -> tuple[Bool, Float64, Gradients, Array]:
        """Estimate losses and gradients from samples, or compute them without.

        Returns whether the samples of each item suffice, (b,); losses; gradients, which are zero
        for items whose samples do not; normalised weights of the samples.
        """
        times: Array = np.ones(1)  # number of draws of each label
        if drawn is None:
            labels, log_expected = np.arange(self.n_labels), np.zeros(1)
        else:
            labels, log_expected = drawn
            log_expected = log_expected + np.log(labels.shape[-1])
            if labels.ndim == 1:
                labels, first, times = np.unique(labels, return_index=True, return_counts=True)
                log_expected = log_expected[first] - np.log(times)
        logits = noise.CandidateLogits(self.weight, self.bias, hidden, targets, labels)
        losses, grad_target, grad_samples = self.objective(
            logits.target,
            logits.samples - log_expected.astype(hidden.dtype),
            labels == targets[:, None],
        )
        # (b, 1) share of the samples in Z; 0 where all are the target
        total = grad_samples.sum(axis=1, keepdims=True)
        share = grad_samples / np.maximum(total, np.finfo(total.dtype).tiny)
        # (b,) effective sample size, as its inverse
        inverse = (share**2 / times).sum(axis=1)
        done = np.ones(len(targets), np.bool_)
        if drawn is not None:
            done = (inverse * self.effective <= 1) & (total[:, 0] > 0)
        grad_samples *= done[:, None]
        gradients = logits.backward(grad_target * done, grad_samples)
        return done, losses, gradients, share


def summed(
    parts: Sequence[Sequence[ParameterGradient]], n_rows: int
) -> Sequence[ParameterGradient]:
    """Return the sums of gradients with respect to the same parameters, which have `n_rows`."""
    if len(parts) == 1:
        return parts[0]
    result = []
    for same in zip(*parts, strict=True):
        rows, slot = touched_rows(np.concatenate([g.rows for g in same]), n_rows)
        values = np.concatenate([g.values for g in same])
        total = slot_sums(values.reshape(len(values), -1), slot, len(rows))
        total = total.reshape(-1, *values.shape[1:])
        result.append(ParameterGradient(same[0].name, rows, total))
    return result
