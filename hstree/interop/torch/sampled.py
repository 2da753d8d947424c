"""Flat softmax trained with a few labels drawn from a proposal: sampled softmax and NCE.

The losses are those of `hstree.layers.sampled` and `hstree.layers.nce`. Labels are drawn as in
`hstree.layers.noise`, or from the layer of a tree.
"""

from abc import abstractmethod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, logsigmoid

from hstree._arrays import Array
from hstree._options import checked_count
from hstree.errors import InputError, OptionError
from hstree.interop.torch.functions import without_autocast
from hstree.interop.torch.head import Head
from hstree.interop.torch.index import (
    at_least_float32,
    is_traced,
    not_compiled,
    refuse_traced,
    split_rows,
)
from hstree.interop.torch.module import TABLE_LIMIT, HierarchicalSoftmax, TopK, largest
from hstree.layers.noise import SAMPLES, Unigram, log_expected_unique

#: Distribution from which labels are drawn: "log-uniform", counts (V,), or the layer of a tree.
Proposal: TypeAlias = "Literal['log-uniform'] | Array | HierarchicalSoftmax"
Reduction: TypeAlias = Literal["mean", "sum", "none"]


class _Noise(NamedTuple):
    """Drawn labels, and the logs of the expected draw counts of these labels and of the targets."""

    labels: Tensor  # int64, (k,) if the batch shares them, else (N, k)
    log_expected: Tensor  # same shape as `labels`
    log_expected_target: Tensor  # (N,)


class _SampledLayer(Head):
    """Base class of the modules: weights, draws and reductions; subclasses define `_objective`."""

    label_smoothing = 0.0
    bias: nn.Parameter | None
    class_weight: Tensor | None
    proposal: HierarchicalSoftmax | None

    def __init__(
        self,
        n_classes: int,
        in_features: int,
        *,
        samples: int = SAMPLES,
        proposal: Proposal = "log-uniform",
        bias: bool = True,
        sparse: bool = False,
        class_weight: Tensor | None = None,
        reduction: Reduction = "mean",
        ignore_index: int = -100,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        n_classes = checked_count("n_classes", n_classes)
        in_features = checked_count("in_features", in_features)
        samples = checked_count("samples", samples)
        if reduction not in ("mean", "sum", "none"):
            raise OptionError(f"reduction is {reduction!r}; it is 'mean', 'sum' or 'none'")
        self.n_classes = n_classes
        self.in_features = in_features
        self.samples = samples
        self.sparse = sparse
        self.reduction = reduction
        self.ignore_index = ignore_index

        # Samples are drawn from a tree's layer, or from frequencies of the labels
        self.proposal = proposal if isinstance(proposal, HierarchicalSoftmax) else None
        mass = _mass(proposal, n_classes)
        if mass.shape != (n_classes,) or (
            class_weight is not None and len(class_weight) != n_classes
        ):
            raise InputError(
                f"proposal and class_weight must have one number for each of {n_classes} labels"
            )
        self._unigram = Unigram(mass)

        # One row per label, as in torch.nn.Linear
        self.rows_are = f"its rows are those of the {n_classes:,} labels"
        self.parameter_shapes = {"weight": (n_classes, in_features)}
        if bias:
            self.parameter_shapes["bias"] = (n_classes,)
        self.register_buffer("class_weight", class_weight)
        self.weight = nn.Parameter(torch.empty(n_classes, in_features, device=device, dtype=dtype))
        label_bias = nn.Parameter(torch.empty(n_classes, device=device, dtype=dtype))
        self.register_parameter("bias", label_bias if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the vectors to zero and the biases to the log-probabilities of the proposal."""
        with torch.no_grad():
            self.weight.zero_()
            if self.bias is not None:
                self.bias.copy_(torch.from_numpy(self._unigram.log_prob))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss with drawn labels in training mode, otherwise the exact cross entropy.

        `input` is a float tensor (..., d). `target`, int64 (...), contains label ids, or
        `ignore_index` for items that are not scored. The loss is (), or (...) without a reduction.
        Raises InputError if the shapes do not match, if a target is not a label id, or if the loss
        in training mode is traced.
        """
        if self.training:
            refuse_traced(f"the loss of a {type(self).__name__}", "call eval() for the exact loss")
        hidden, flat = self._as_items(input, target)
        with without_autocast(input.device):
            # (N,) losses, 0 for ignored targets
            loss = self._exact if is_traced() else self._scored_losses
            losses = loss(hidden, flat)
        if self.reduction == "none":
            return losses.reshape(target.shape)
        if self.reduction == "sum":
            return losses.sum()
        is_scored = flat != self.ignore_index
        if self.class_weight is None:
            return losses.sum() / is_scored.sum()
        weights = self.class_weight[torch.where(is_scored, flat, 0)]
        return losses.sum() / torch.where(is_scored, weights, 0).sum()

    def _scored_losses(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the losses (N,), computed only for targets that are not ignored."""
        scored = (target != self.ignore_index).nonzero()[:, 0]
        labels = target[scored]
        if not ((labels >= 0) & (labels < self.n_classes)).all():
            raise InputError(f"target holds ids that are not labels 0 to {self.n_classes - 1}")
        loss = self._sampled if self.training else self._exact
        losses = loss(hidden[scored], labels)
        return losses.new_zeros(len(target)).index_copy(0, scored, losses)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the differentiable log-probabilities (..., V) of all labels."""
        with without_autocast(input.device):
            log_prob = self._logits(self._as_rows(input)).log_softmax(1)
        return log_prob.reshape(*input.shape[:-1], self.n_classes)

    @torch.no_grad()
    def top_k(self, input: Tensor, k: int) -> TopK:
        """Return the k most probable labels and their log-probabilities, ties by label id.

        Raises OptionError unless k is a whole number, 1 or more.
        """
        k = min(checked_count("k", k), self.n_classes)
        parts = split_rows(self._as_rows(input), TABLE_LIMIT // self.n_classes)
        results = [largest(self.log_prob(rows), k) for rows in parts]
        labels, log_prob = (torch.cat(column) for column in zip(*results, strict=True))
        shape = *input.shape[:-1], k
        return TopK(labels.reshape(shape), log_prob.reshape(shape))

    def extra_repr(self) -> str:
        """Describe the layer in ``print(model)``."""
        return f"{self.n_classes}, {self.in_features}, samples={self.samples}"

    def _logits(self, hidden: Tensor) -> Tensor:
        return at_least_float32(linear(hidden, self.weight, self.bias))

    def _exact(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the cross entropies (N,), times the weights of the classes; 0 where ignored.

        Not by torch's function, which the ONNX exporter on torch.export does not sum up.
        """
        log_prob = self._logits(hidden).log_softmax(1)
        is_scored = target != self.ignore_index
        label = torch.where(is_scored, target, 0)
        weights = log_prob.new_ones(self.n_classes)
        if self.class_weight is not None:
            weights = self.class_weight
        losses = -log_prob.gather(1, label[:, None])[:, 0] * weights[label]
        if self.label_smoothing:
            smooth = -(log_prob @ weights.to(log_prob.dtype)) / self.n_classes
            losses = (1 - self.label_smoothing) * losses + self.label_smoothing * smooth
        return torch.where(is_scored, losses, 0)

    def _sampled(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the losses (N,) against drawn labels, times the weights of classes."""
        noise = self._draw(hidden, target)
        target_logits, sample_logits = self._candidates(hidden, target, noise.labels)
        return self._objective(
            at_least_float32(target_logits) - noise.log_expected_target,
            at_least_float32(sample_logits) - noise.log_expected,
            target,
            noise,
        )

    @abstractmethod
    def _objective(self, target: Tensor, samples: Tensor, wanted: Tensor, noise: _Noise) -> Tensor:
        """Return the losses (N,) from logits less `log_expected`, of targets (N,), samples (N, k).

        `wanted` (N,) are the target labels.
        """

    def _candidates(self, hidden: Tensor, target: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of targets (N,) and of samples (N, k)."""
        n = len(target)
        # One lookup, so that there is one sparse gradient
        rows = torch.cat([target, labels.flatten()])
        vectors = embedding(rows, self.weight, sparse=self.sparse)
        target_logits = torch.linalg.vecdot(hidden, vectors[:n])
        # The same samples for all items (k,), or k for each item (N, k)
        if labels.ndim == 1:
            sample_logits = hidden @ vectors[n:].T
        else:
            sample_vectors = vectors[n:].view(*labels.shape, -1)
            sample_logits = torch.linalg.vecdot(hidden[:, None], sample_vectors)
        if self.bias is not None:
            bias = torch.gather(self.bias, 0, rows, sparse_grad=self.sparse)
            target_logits = target_logits + bias[:n]
            sample_logits = sample_logits + bias[n:].view(labels.shape)
        return target_logits, sample_logits

    @not_compiled
    @torch.no_grad()
    def _draw(self, hidden: Tensor, target: Tensor) -> _Noise:
        """Draw labels with torch's global random generator."""
        k = self.samples
        device = hidden.device
        if self.proposal is not None:
            # k labels for each item, by its hidden vector
            repeated = hidden[:, None].expand(-1, k, -1)
            labels = self.proposal.sample(repeated)
            log_q = self.proposal(repeated, labels).output
            target_log_q = self.proposal(hidden, target).output
            return _Noise(labels, log_q + np.log(k), target_log_q + np.log(k))
        # k distinct labels for all items, in as many tries as that takes
        rng = np.random.default_rng(int(torch.randint(1 << 62, ())))
        drawn, tries = self._unigram.sample_unique(k, rng)
        target_log_q = self._unigram.log_prob[target.cpu().numpy()]
        dtype = torch.promote_types(hidden.dtype, torch.float32)

        def log_expected(log_q: Array) -> Tensor:
            return torch.from_numpy(log_expected_unique(log_q, tries)).to(device, dtype)

        return _Noise(
            labels=torch.from_numpy(drawn.labels).to(device),
            log_expected=log_expected(drawn.log_prob),
            log_expected_target=log_expected(target_log_q),
        )


class SampledSoftmax(_SampledLayer):
    """Flat softmax whose training loss is a softmax over the target and drawn labels.

    Parameters
    ----------
    n_classes : int
        V, the number of labels.
    in_features : int
        d, the length of a hidden vector.
    samples : int, default 100
        k, the number of labels drawn per batch, or per item if a tree proposes them.
    proposal : "log-uniform", float array (V,) or HierarchicalSoftmax, default "log-uniform"
        Distribution of the drawn labels: Zipf's law, for ids in the order of frequency; the unigram
        distribution of counts; or the distribution of a tree's layer given the hidden vector.
    bias : bool, default True
        Whether labels have biases. Initially, they are the log-probabilities of the proposal, or of
        the counts of a proposing tree.
    sparse : bool, default False
        Whether the gradients of weight and bias are sparse in training mode.
    label_smoothing : float, default 0
        Fraction of the probability of the target that is distributed equally over all labels, as in
        ``nn.CrossEntropyLoss``; estimated from the drawn labels.
    class_weight : Tensor (V,), optional
        Weights of the classes, the ``weight`` of ``nn.CrossEntropyLoss``.
    reduction : "mean", "sum" or "none", default "mean"
    ignore_index : int, default -100
        Target of items that are not scored.
    device, dtype : optional
        As in every torch module.

    Attributes
    ----------
    weight : Parameter (V, d)
    bias : Parameter (V,) or None
    proposal : HierarchicalSoftmax or None
        The layer of a tree that proposes labels. The loss of this module has no gradient for it.
        Train it with its own loss, ``layer.proposal(hidden.detach(), target).loss``.

    Notes
    -----
    The loss is ``-log(exp(z_t) / (exp(z_t) + sum_j exp(z_j)))`` with ``z_w = s_w - log E(w)``, the
    logQ correction; E(w) is the expected number of times that w is drawn. Labels for a batch are
    drawn until k are different: E(w) is ``1 - (1 - Q(w))^n`` for n draws, and drawn labels that
    equal the target are excluded. If k is V or more, the loss is the cross entropy. Labels drawn
    from a tree can repeat: E(w) is ``k Q(w | h)``, and none is excluded (the ranking loss of Ma &
    Collins 2018).

    In evaluation mode the loss is the exact cross entropy.

    References
    ----------
    S. Jean, K. Cho, R. Memisevic & Y. Bengio, "On using very large target vocabulary for neural
    machine translation", ACL 2015; Z. Ma & M. Collins, "Noise contrastive estimation and negative
    sampling for conditional models: consistency and statistical efficiency", EMNLP 2018.
    """

    def __init__(
        self, n_classes: int, in_features: int, *, label_smoothing: float = 0.0, **options: Any
    ) -> None:
        super().__init__(n_classes, in_features, **options)
        if not 0 <= label_smoothing <= 1:
            raise OptionError(f"label_smoothing is {label_smoothing}; it is between 0 and 1")
        self.label_smoothing = label_smoothing

    def _objective(self, target: Tensor, samples: Tensor, wanted: Tensor, noise: _Noise) -> Tensor:
        scored = samples
        if noise.labels.ndim == 1:
            scored = samples.masked_fill(noise.labels == wanted[:, None], -torch.inf)
        total = torch.logsumexp(torch.cat([target[:, None], scored], 1), 1)
        weights = self.class_weight
        losses = total - target if weights is None else (total - target) * weights[wanted]
        if not self.label_smoothing:
            return losses
        # (k,) or (N, k) weight of each sample in the mean over all labels
        sample_weight = torch.exp(-noise.log_expected) / self.n_classes
        if weights is not None:
            sample_weight = sample_weight * weights[noise.labels]
        smooth = ((total[:, None] - samples) * sample_weight).sum(1)
        return (1 - self.label_smoothing) * losses + self.label_smoothing * smooth


class NCE(_SampledLayer):
    """Flat softmax trained to distinguish each target from drawn labels, one by one.

    The parameters and attributes are those of `SampledSoftmax`, except `label_smoothing`, which is
    not defined for this loss.

    Notes
    -----
    The loss is ``-log sigmoid(z_t) - sum_j log sigmoid(-z_j)`` over all k drawn labels, with
    ``z_w = s_w - log E(w)`` as in `SampledSoftmax` (Gutmann & Hyvarinen 2010; Mnih & Teh 2012).
    exp(s_w) is used as the probability, as if the normaliser were 1, and training moves the
    normaliser towards 1. Initially it is 1, because of the biases, or without biases because log V
    is subtracted from the scores.

    In evaluation mode the loss is the exact cross entropy.
    """

    def _objective(self, target: Tensor, samples: Tensor, wanted: Tensor, noise: _Noise) -> Tensor:
        log_z = 0.0 if self.bias is not None else np.log(self.n_classes)
        losses = -logsigmoid(target - log_z) - logsigmoid(log_z - samples).sum(1)
        return losses if self.class_weight is None else losses * self.class_weight[wanted]


def _mass(proposal: Proposal, n_classes: int) -> Array:
    """Return numbers proportional to the proposal, or the counts of its tree."""
    if isinstance(proposal, HierarchicalSoftmax):
        counts = proposal.tree.counts
        return np.ones(proposal.n_classes) if counts is None else counts
    if isinstance(proposal, str):
        if proposal != "log-uniform":
            raise OptionError(
                f"proposal is {proposal!r}; it is 'log-uniform', counts or a HierarchicalSoftmax"
            )
        mass = np.log1p(1 / np.arange(1, n_classes + 1))
    else:
        try:
            mass = np.asarray(proposal, np.float64)
        except (TypeError, ValueError) as error:
            raise OptionError(
                f"proposal is a {type(proposal).__name__}; it is 'log-uniform', counts or a "
                "HierarchicalSoftmax"
            ) from error
        if not (np.isfinite(mass).all() and (mass >= 0).all() and mass.any()):
            raise OptionError("proposal has numbers below zero or not finite, or none above zero")
    # Scaled, since the distribution reads counts below 1/2 as 1/2
    scaled: Array = mass / min(1.0, float(mass[mass > 0].min()))
    return scaled
