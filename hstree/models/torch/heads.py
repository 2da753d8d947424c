"""Output layers of networks, with the names of the layers in `hstree.layers`.

Another package adds one through the entry-point group ``hstree.heads``::

    [project.entry-points."hstree.heads"]
    smoothed = "their_package.heads:SmoothedHead"

The class is a subclass of `TorchHead`. It is the PyTorch form of the layer with that name. If there
is no such layer, it is a candidate of its own, and the keyword-only parameters of its constructor
are its options.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hstree._arrays import Array
from hstree._plugins import Registry, unusable
from hstree.errors import OptionError
from hstree.interop.torch import NCE, HierarchicalSoftmax, SampledSoftmax
from hstree.interop.torch.module import TABLE_LIMIT, largest
from hstree.layers.adaptive import parse_cutoffs
from hstree.layers.dense import log_unigram
from hstree.layers.registry import HEADS_GROUP, LayerSpec

#: Minimum number of logits in a batch for which the flat softmax computes its loss in chunks. For
#: fewer, the cross entropy of all logits is two to three times as fast on a CPU.
CHUNKED_LOGITS = 1 << 29
#: Default cut-offs of the adaptive softmax, of those below the number of labels. They are close
#: to the best that were tried with a GRU and the default factor (docs/results/torch-options.md).
CUTOFFS = (250, 2_000, 16_000)


class TorchHead(nn.Module):
    """Distribution over V labels for hidden vectors of length d, and its training loss.

    Subclasses define `loss` and `log_prob`. They are created as ``Head(spec, dim, counts)``.

    Parameters
    ----------
    spec : LayerSpec
        The output layer with its options.
    dim : int
    counts : int array (V,)
        Training counts. The untrained head should be their unigram distribution.
    """

    options: ClassVar[frozenset[str]] = frozenset()
    """Layer options that the head supports; other options must have their default values."""
    is_likelihood: ClassVar[bool] = True
    """Whether the losses of a head without a layer are negative log-likelihoods."""
    prefix: ClassVar[str] = "head."
    """Beginning of the names of its arrays in a saved model."""
    n_labels: int

    @abstractmethod
    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean training loss of targets (N,) after hidden vectors (N, d)."""

    @abstractmethod
    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the normalised log-probabilities of all labels, (N, V)."""

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the exact negative log-likelihoods (N,) of targets."""
        parts = zip(self._split(hidden), self._split(target), strict=True)
        return torch.cat([-self.log_prob(h).gather(1, t[:, None])[:, 0] for h, t in parts])

    def top_k(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable labels and their log-probabilities, (N, k), ties by label."""
        parts = [largest(self.log_prob(rows), k) for rows in self._split(hidden)]
        labels, log_prob = zip(*parts, strict=True)
        return torch.cat(labels), torch.cat(log_prob)

    def sample(self, hidden: Tensor, generator: torch.Generator) -> Tensor:
        """Draw one label for each hidden vector, (N,)."""
        return torch.multinomial(self.log_prob(hidden).exp(), 1, generator=generator)[:, 0]

    def _split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Divide rows so that the log-probabilities of all labels of a part fit in memory."""
        return torch.split(rows, max(1, TABLE_LIMIT // self.n_labels))


class TreeHead(TorchHead):
    """Hierarchical softmax over a tree."""

    prefix = "node_"

    def __init__(self, spec: LayerSpec, dim: int, counts: Array) -> None:
        super().__init__()
        self.layer = HierarchicalSoftmax(spec.tree, dim, sparse=True, counts=counts)  # type: ignore[arg-type]
        self.n_labels = self.layer.n_classes

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean negative log-likelihood."""
        loss: Tensor = self.layer(hidden, target).loss
        return loss

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all labels."""
        return self.layer.log_prob(hidden)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Compute the negative log-likelihoods from the decisions on the paths to the targets."""
        output: Tensor = self.layer(hidden, target).output
        return -output

    def top_k(self, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Search the tree for the most probable labels."""
        return self.layer.top_k(hidden, k)

    def sample(self, hidden: Tensor, generator: torch.Generator) -> Tensor:
        """Draw labels by descending the tree."""
        return self.layer.sample(hidden, generator)


class FlatHead(TorchHead):
    """Flat softmax, initially the unigram distribution."""

    prefix = ""

    def __init__(self, spec: LayerSpec, dim: int, counts: Array) -> None:
        super().__init__()
        self.n_labels = len(counts)
        self.weight = nn.Parameter(torch.zeros(self.n_labels, dim))
        self.bias = nn.Parameter(torch.from_numpy(log_unigram(counts)).float())

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean cross entropy; many logits are computed in chunks if torch can."""
        in_chunks = getattr(functional, "linear_cross_entropy", None)
        if in_chunks is not None and len(hidden) * self.n_labels >= CHUNKED_LOGITS:
            options = nn.LinearCrossEntropyOptions()
            loss: Tensor = in_chunks(
                hidden, self.weight, target, linear_bias=self.bias, options=options
            )
            return loss
        return functional.cross_entropy(functional.linear(hidden, self.weight, self.bias), target)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all labels."""
        return functional.linear(hidden, self.weight, self.bias).log_softmax(1)


class SampledHead(TorchHead):
    """Sampled softmax, with noise labels drawn by their counts."""

    prefix = ""
    options = frozenset(["samples"])
    kind: ClassVar[Any] = SampledSoftmax

    def __init__(self, spec: LayerSpec, dim: int, counts: Array) -> None:
        super().__init__()
        self.n_labels = len(counts)
        samples = min(spec.options["samples"], self.n_labels)
        mass = np.maximum(counts, 0.5)
        self.layer = self.kind(self.n_labels, dim, samples=samples, proposal=mass, sparse=True)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss against drawn noise labels."""
        loss: Tensor = self.layer(hidden, target)
        return loss

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of the softmax."""
        log_prob: Tensor = self.layer.log_prob(hidden)
        return log_prob


class NCEHead(SampledHead):
    """Noise-contrastive estimation, with noise labels drawn by their counts."""

    kind = NCE


class AdaptiveHead(TorchHead):
    """``nn.AdaptiveLogSoftmaxWithLoss``, with labels in order of decreasing count."""

    options = frozenset(["cutoffs", "factor"])
    rank: Tensor

    def __init__(self, spec: LayerSpec, dim: int, counts: Array) -> None:
        super().__init__()
        self.n_labels = len(counts)
        # (V,) labels in order of decreasing count, and the rank of each label
        order = np.argsort(-counts, kind="stable")
        rank = np.argsort(order)
        self.register_buffer("rank", torch.from_numpy(rank))

        # The dimension of the vectors falls by a factor from each cluster to the next
        cutoffs = cluster_starts(spec, dim)
        self.layer = nn.AdaptiveLogSoftmaxWithLoss(
            dim, self.n_labels, cutoffs, div_value=spec.options["factor"], head_bias=True
        )
        # The frequent labels and the clusters start at their fraction of the counts
        mass = np.maximum(counts[order], 0.5)
        clusters = [part.sum() for part in np.split(mass, cutoffs)[1:]]
        start = log_unigram(np.concatenate([mass[: cutoffs[0]], clusters]))
        with torch.no_grad():
            self.layer.head.weight.zero_()
            self.layer.head.bias.copy_(torch.from_numpy(start))

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean negative log-likelihood."""
        loss: Tensor = self.layer(hidden, self.rank[target]).loss
        return loss

    def log_prob(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of all labels."""
        return self.layer.log_prob(hidden)[:, self.rank]

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Compute the negative log-likelihoods from the cluster of each target."""
        output: Tensor = self.layer(hidden, self.rank[target]).output
        return -output


def cluster_starts(spec: LayerSpec, dim: int) -> list[int]:
    """Return the ranks at which the clusters of an adaptive softmax start; [] for no clusters."""
    factor = spec.options["factor"]
    if spec.options["cutoffs"] == "auto":
        # Cluster i has vectors of length dim / factor^i, at least 1
        return [
            start
            for i, start in enumerate(CUTOFFS, 1)
            if start < len(spec.labels) and dim >= factor**i
        ]
    cutoffs = parse_cutoffs(spec.vocabulary.counts, dim, spec.options["cutoffs"], factor)
    if dim < factor ** len(cutoffs):
        reason = f"are too many for {dim} dimensions and the factor {factor:g}"
        raise OptionError.about("cutoffs", reason)
    return cutoffs


def checked_class(name: str, head: Any, package: str) -> type[TorchHead]:
    """Return a registered class; raise PluginError if it is not a class of heads."""
    if not (isinstance(head, type) and issubclass(head, TorchHead)):
        raise unusable("head", name, package, "it is not a subclass of TorchHead")
    return head


HEADS = Registry(
    "head",
    HEADS_GROUP,
    {
        "tree": "hstree.models.torch.heads:TreeHead",
        "flat": "hstree.models.torch.heads:FlatHead",
        "adaptive": "hstree.models.torch.heads:AdaptiveHead",
        "sampled": "hstree.models.torch.heads:SampledHead",
        "nce": "hstree.models.torch.heads:NCEHead",
    },
    checked_class,
)


def new_head(spec: LayerSpec, dim: int, counts: Array | None = None) -> TorchHead:
    """Return an untrained head, the unigram distribution of counts (V,) (default: the spec's)."""
    counts = spec.vocabulary.counts if counts is None else counts
    make: Any = check_head(spec, dim)
    return cast(TorchHead, make(spec, dim, counts, **(spec.options if spec.kind.is_head else {})))


def check_head(spec: LayerSpec, dim: int) -> type[TorchHead]:
    """Return the head class of an output layer; raise OptionError if it has no torch form."""
    name = spec.kind.name
    if name not in HEADS:
        raise OptionError(
            f"the output layer {name!r} has no PyTorch form; {', '.join(HEADS.names())} have one "
            "(tree: any tree alone)"
        )
    head = HEADS.get(name)
    for option in () if spec.kind.is_head else spec.kind.options:
        if option.name not in head.options and spec.options[option.name] != option.default:
            value = option.spelled(spec.options[option.name])
            raise OptionError(
                f"{name}: {option.name}={value} has no PyTorch form; leave it out (it has "
                f"{', '.join(sorted(head.options)) or 'no options'})"
            )
    # A tree of one node, or no clusters: every label is in one softmax
    is_flat = spec.tree is not None and spec.tree.n_nodes <= 1
    if issubclass(head, AdaptiveHead):
        is_flat = not cluster_starts(spec, dim)
    return FlatHead if is_flat else head
