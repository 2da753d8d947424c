"""Proposals: distributions that sampled losses draw labels from, with exact log-probabilities.

A proposal without context (unigram, uniform) gives one sample that all items of a batch share. One
that depends on the item (n-grams, a tree) gives each item a sample of its own. `proposal_of` reads
the option ``proposal`` of the layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import SymmetricWindows, Windows
from hstree.errors import InputError, OptionError
from hstree.layers import kernels
from hstree.layers.base import ParameterGradient
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.ngrams.kneser_ney import KneserNey
from hstree.tree import load
from hstree.tree.files import ENDINGS
from hstree.tree.weight_rows import NARROW

#: Values of the option ``proposal`` that are not files.
NAMES = ("unigram", "uniform", "bigram", "kn")
#: Lengths of the longest n-grams of those that are n-gram models.
ORDERS = {"bigram": 2, "kn": 5}
Rng = np.random.Generator
#: The words before each target of a batch (B, n), label ids, the farthest first; None under models
#: that have none.
Ids = Integer | None
#: Groups of draws: batch item, the node or edge that they are at, their number, and the
#: log-probability of the path to it, all (G,).
Groups = tuple[Int64, Int64, Int64, Float64]
#: Distance of a probability from 1 that its logarithm needs.
EPSILON = float(np.finfo(np.float64).eps)


class Samples(NamedTuple):
    """Labels drawn for a batch, and their log-probabilities under the proposal, of one shape.

    The shape is (k,) where all items of the batch share the labels, else (B, k).
    """

    labels: Int64
    log_prob: Float64


class Proposal(ABC):
    """Distribution over V labels to draw noise from; with or without context.

    Training asks of it, through its layer, what follows the first two methods.
    """

    #: whether it depends on the hidden vectors or contexts; then it draws for each item
    is_conditional = True
    #: whether it depends on the words before each target
    needs_contexts = False

    @abstractmethod
    def sample(
        self, k: int, rng: Rng, hidden: Array, contexts: Ids = None, *, shared: bool = True
    ) -> Samples:
        """Draw k labels with replacement, `shared` by the batch or for each hidden vector (B, d).

        Proposals that depend on the item always draw for each.
        """

    @abstractmethod
    def log_prob(self, labels: Integer, hidden: Array, contexts: Ids = None) -> Float64:
        """Return the log-probabilities of labels (B,) or (B, m), m for each item, in their shape.

        Proposals without context take labels of any shape.
        """

    def check(self) -> None:  # noqa: B027
        """Refuse a file that cannot be used, before a long training; raises HstreeError."""

    def prepare(self, train: Windows) -> None:  # noqa: B027
        """Read the training text before the first batch."""

    def parameters(self) -> dict[str, Array]:
        """Return the arrays that are trained beside the layer; saved models do without them."""
        return {}

    def gradients(self, hidden: Array, targets: Integer) -> Sequence[ParameterGradient]:
        """Return the gradients of its negative log-likelihood of targets; hidden is constant."""
        return ()

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return what `OutputLayer.curvature` does, for `parameters`."""
        return {}


class Unigram(Proposal):
    """Counts to the power alpha: ``Q(w) = c(w)^alpha / sum_v c(v)^alpha``.

    Draws by binary search in the cumulative distribution: O(log V) a sample. Many different labels
    (`sample_unique`) take O(V) in all.

    Parameters
    ----------
    counts : int array (V,)
        A count of 0 is read as 1/2.
    alpha : float, default 1
        1 for the unigram distribution, 0 for the uniform one.
    """

    is_conditional = False

    def __init__(self, counts: Integer, alpha: float = 1.0) -> None:
        mass = np.maximum(counts, 0.5) ** alpha
        self._log_prob: Float64 = np.log(mass / mass.sum())
        self._cumulative: Float64 = np.cumsum(mass) / mass.sum()
        # expected number of different labels among V / 8 drawn ones
        miss = np.log1p(-np.minimum(np.exp(self._log_prob), 1 - EPSILON))
        self.different = float(-np.expm1(len(miss) / 8 * miss).sum())

    def sample(
        self, k: int, rng: Rng, hidden: Array, contexts: Ids = None, *, shared: bool = True
    ) -> Samples:
        """Draw k labels with replacement, for the batch or for each item."""
        labels = self._draw(k if shared else (len(hidden), k), rng)
        return Samples(labels, self._log_prob[labels])

    def sample_unique(self, k: int, rng: np.random.Generator) -> tuple[Samples, float]:
        """Draw until there are k different labels, in the order in which they were first drawn.

        Also returns the number of labels that were drawn for them. Where there are no more than k,
        all V labels are sampled, and the number is infinite.
        """
        if k >= len(self._log_prob):
            return Samples(np.arange(len(self._log_prob)), self._log_prob), np.inf
        if k > self.different:
            # Labels arrive in Poisson processes of the rates Q(w), which is one of rate 1 whose
            # arrivals are draws from Q. The first k labels are those of the k earliest first
            # arrivals; how often they came again before the last of them is Poisson. O(V).
            arrival = rng.standard_exponential(len(self._log_prob)) / np.exp(self._log_prob)
            labels = np.argpartition(arrival, k - 1)[:k]
            labels = labels[np.argsort(arrival[labels])]
            since = arrival[labels[-1]] - arrival[labels]
            again = rng.poisson(np.exp(self._log_prob[labels]) @ since)
            return Samples(labels, self._log_prob[labels]), float(k + again)
        drawn = self._draw(2 * k, rng)
        while len(first := np.unique(drawn, return_index=True)[1]) < k:
            drawn = np.concatenate([drawn, self._draw(len(drawn), rng)])
        first = np.sort(first)[:k]
        labels = drawn[first]
        return Samples(labels, self._log_prob[labels]), float(first[-1] + 1)

    def log_prob(self, labels: Integer, hidden: Array, contexts: Ids = None) -> Float64:
        """Return the log-probabilities of labels of any shape."""
        return self._log_prob[labels]

    def _draw(self, shape: Any, rng: np.random.Generator) -> Int64:
        labels: Int64 = np.searchsorted(self._cumulative, rng.random(shape), "right")
        return np.minimum(labels, len(self._cumulative) - 1)


class NGram(Proposal):
    """Interpolated Kneser-Ney model of the training text, from the words before each target.

    O(order log G) a sample, and as much for a log-probability, for a text of G n-grams. For
    language models only.

    `name` is the value of the option that chose it, for messages; `order` the length of the longest
    n-grams, at most the model's context and the target.
    """

    needs_contexts = True

    def __init__(self, name: str, order: int) -> None:
        self._order = order
        self._model: KneserNey | None = None
        self._refusal = (
            f"is {name!r}, which needs a training text and the words before each target; "
            "train a language model, or choose another proposal"
        )

    def prepare(self, train: Windows) -> None:
        """Count the n-grams of the training text; OptionError where no words come before."""
        if isinstance(train, SymmetricWindows):
            raise OptionError.about("proposal", self._refusal)
        order = min(self._order, train.context + 1)
        self._model = KneserNey(order).fit(train.corpus)

    def sample(
        self, k: int, rng: Rng, hidden: Array, contexts: Ids = None, *, shared: bool = True
    ) -> Samples:
        """Draw k labels for each item, with replacement."""
        model, nearest = self._in(contexts)
        # In the order of the labels, whose n-grams are then found faster.
        labels = np.sort(model.sample(nearest, rng, k), axis=1)
        return Samples(labels, model.log_prob_of(nearest, labels))

    def log_prob(self, labels: Integer, hidden: Array, contexts: Ids = None) -> Float64:
        """Return the log-probabilities of labels (B,) or (B, m), in their shape."""
        model, nearest = self._in(contexts)
        columns = labels.reshape(len(nearest), -1)
        return model.log_prob_of(nearest, columns).reshape(labels.shape)

    def _in(self, contexts: Integer | None) -> tuple[KneserNey, Integer]:
        """Return the model, and the words that it reads of each context, (B, order - 1)."""
        if contexts is None or self._model is None:
            raise OptionError.about("proposal", self._refusal)
        return self._model, contexts[:, contexts.shape[1] - self._model.order + 1 :]


class TreeProposal(Proposal):
    """Hierarchical softmax over a tree, trained beside the layer by its own likelihood.

    Its hidden vectors are those of the layer, as constants. Exact probabilities, and k samples of
    an item in at most k decisions a level: O(k d log V) for a balanced tree. Saved models do not
    keep its parameters, which training alone needs, and do not read the file.

    The file is read when it is first needed; the tree has to be over the words of the vocabulary,
    in any order. `counts` (V,) are those of the starting biases.

    References
    ----------
    R. Bamler & S. Mandt, "Extreme classification via adversarial softmax approximation", ICLR 2020.
    """

    def __init__(
        self, path: Path, vocabulary: Vocabulary, counts: Integer, dim: int, dtype: Any
    ) -> None:
        self._path, self._vocabulary, self._counts = path, vocabulary, counts
        self._dim, self._dtype = dim, dtype

    @cached_property
    def layer(self) -> HierarchicalSoftmax:
        """The hierarchical softmax, whose labels are those of the tree."""
        tree = load(self._path)
        # (V,) the vocabulary's id of each of the tree's labels, and the inverse
        word_of_label = self._vocabulary.ids(tree.labels).astype(np.int64)
        n_words = len(self._vocabulary)
        if tree.n_labels != n_words or (word_of_label < 0).any():
            known = int((word_of_label >= 0).sum())
            raise InputError(
                f"the proposal {self._path} is a tree over {tree.n_labels:,} words, {known:,} of "
                f"them among the vocabulary's {n_words:,}; build it over the vocabulary's words"
            )
        self._word_of_label, self._label_of_word = word_of_label, np.argsort(word_of_label)
        counts = self._counts[word_of_label]
        return HierarchicalSoftmax(tree, self._dim, counts=counts, dtype=self._dtype)

    def check(self) -> None:
        """Read the tree; raises HstreeError when it cannot be read or is over other words."""
        _ = self.layer

    def sample(
        self, k: int, rng: Rng, hidden: Array, contexts: Ids = None, *, shared: bool = True
    ) -> Samples:
        """Draw k labels for each item, with replacement."""
        labels, log_prob = draw_labels(self.layer, hidden, k, rng)
        words = self._word_of_label[labels]
        has_single_codes = self.layer.tree.has_single_codes
        return Samples(words, log_prob if has_single_codes else self.log_prob(words, hidden))

    def log_prob(self, labels: Integer, hidden: Array, contexts: Ids = None) -> Float64:
        """Return the log-probabilities of labels (B,) or (B, m), in their shape."""
        layer = self.layer
        each = self._label_of_word[labels].ravel()
        hidden = np.repeat(hidden, len(each) // max(1, len(hidden)), axis=0)
        return -layer.nll(hidden, each).reshape(labels.shape)

    def parameters(self) -> dict[str, Array]:
        """Return the node vectors and biases."""
        return {f"proposal_{name}": array for name, array in self.layer.parameters().items()}

    def gradients(self, hidden: Array, targets: Integer) -> Sequence[ParameterGradient]:
        """Return the gradients of the negative log-likelihood of targets."""
        gradients = self.layer.loss(hidden, self._label_of_word[targets])[1]
        return [replace(g, name=f"proposal_{g.name}") for g in gradients.parameters]

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return the mean curvature of the loss along each row."""
        layer = self.layer
        curvature = layer.curvature(counts[self._word_of_label])
        return {f"proposal_{name}": rows for name, rows in curvature.items()}


def draw_labels(
    layer: HierarchicalSoftmax, hidden: Array, k: int, rng: Rng
) -> tuple[Int64, Float64]:
    """Draw k labels with replacement for each hidden vector, in random order (B, k).

    The draws of an item stay together: at each node that some of them reach, their number is split
    over its branches: O(min(k, nodes of a level) d) a level at binary nodes. Also returns the log-
    probabilities (B, k) of the codes drawn: of the labels, where each has one code.
    """
    tree, n_items = layer.tree, len(hidden)
    if tree.n_nodes == 0 or n_items == 0:
        return np.zeros((n_items, k), np.int64), np.zeros((n_items, k))
    # (G,) batch item, current node, number of draws and log-probability of each group of draws
    item, node = np.arange(n_items), np.zeros(n_items, np.int64)
    times, log_prob = np.full(n_items, k), np.zeros(n_items)
    arrived: list[Groups] = []
    while item.size:
        fan_out = tree.fan_out[node]
        taken = []
        for width in np.unique(fan_out):
            some = np.flatnonzero(fan_out == width)
            split = _split_at_binary_nodes if width == 2 else _split_at_wider_nodes
            of_width = item[some], node[some], times[some], log_prob[some]
            taken.append(split(layer, hidden, of_width, rng))
        item, edge, times, log_prob = (np.concatenate(part) for part in zip(*taken, strict=True))
        child = tree.child[edge]
        leaf, inner = child < 0, child >= 0
        arrived.append((item[leaf], ~child[leaf], times[leaf], log_prob[leaf]))
        item, node, times, log_prob = item[inner], child[inner], times[inner], log_prob[inner]
    item, label, times, log_prob = (np.concatenate(part) for part in zip(*arrived, strict=True))
    # (B, k) groups of each item, in random order
    order = np.argsort(item, kind="stable")
    group = rng.permuted(np.repeat(order, times[order]).reshape(n_items, k), axis=1)
    return label[group], log_prob[group]


def _split_at_binary_nodes(
    layer: HierarchicalSoftmax, hidden: Array, groups: Groups, rng: Rng
) -> Groups:
    """Split groups of draws at nodes of two children over these."""
    tree, (item, node, times, log_prob) = layer.tree, groups
    first, row = tree.child_start[node], tree.row_start[node]
    z = kernels.gather_dot(layer.weight, layer.bias, hidden, item, row).astype(np.float64)
    left = rng.binomial(times, expit(z))
    # (2 G,) the first branches, then the second ones
    split = np.concatenate([left, times - left])
    of_branch = np.concatenate([kernels.log_sigmoid(z), kernels.log_sigmoid(-z)])
    of_branch += np.tile(log_prob, 2)
    edge, some = np.concatenate([first, first + 1]), np.flatnonzero(split)
    return np.tile(item, 2)[some], edge[some], split[some], of_branch[some]


def _split_at_wider_nodes(
    layer: HierarchicalSoftmax, hidden: Array, groups: Groups, rng: Rng
) -> Groups:
    """Split groups of draws at nodes of one fan-out above two over its branches."""
    tree, (item, node, times, log_prob) = layer.tree, groups
    row, width = tree.row_start[node], int(tree.fan_out[node[0]])
    # (G, width) logits of the branches of each group's node, then their log-probabilities
    if width <= NARROW:
        items, rows = np.repeat(item, width), (row[:, None] + np.arange(width)).ravel()
        z = kernels.gather_dot(layer.weight, layer.bias, hidden, items, rows)
        logits = z.reshape(-1, width).astype(np.float64)
    else:
        logits, order = np.empty((len(item), width)), np.argsort(node, kind="stable")
        starts = np.flatnonzero(np.diff(node[order], prepend=-1))
        for some in np.split(order, starts[1:]):
            of_node = slice(int(row[some[0]]), int(row[some[0]]) + width)
            logits[some] = hidden[item[some]] @ layer.weight[of_node].T + layer.bias[of_node]
    log_p = log_softmax(logits, axis=1)
    cumulative = np.cumsum(np.exp(log_p), axis=1)
    cumulative /= cumulative[:, -1:]
    # (draws,) group of each draw, and the index of the branch that it takes among all groups'
    group = np.repeat(np.arange(len(item)), times)
    each = (cumulative + np.arange(len(item))[:, None]).ravel()
    index = np.searchsorted(each, group + rng.random(len(group)), "right")
    chosen, split = np.unique(np.minimum(index, group * width + width - 1), return_counts=True)
    group, branch = np.divmod(chosen, width)
    edge = tree.child_start[node][group] + branch
    return item[group], edge, split, log_prob[group] + log_p[group, branch]


def proposal_of(
    name: str,
    vocabulary: Vocabulary,
    counts: Integer | None = None,
    *,
    alpha: float = 1.0,
    dim: int = 1,
    dtype: Any = np.float32,
) -> Proposal:
    """Return the proposal that an option names: one of `NAMES`, or the file of a tree.

    `alpha` is the power of the counts of "unigram"; `dim` and `dtype` are those of a tree's
    parameters. Raises OptionError when there is no such proposal.
    """
    counts = vocabulary.counts if counts is None else counts
    if name in ("unigram", "uniform"):
        return Unigram(counts, alpha if name == "unigram" else 0.0)
    if name in ORDERS:
        return NGram(name, ORDERS[name])
    if name.endswith(ENDINGS):
        return TreeProposal(Path(name), vocabulary, counts, dim, dtype)
    known = ", ".join(map(repr, NAMES))
    reason = f"is {name!r}; it must be one of {known}, or a tree file ({', '.join(ENDINGS)})"
    raise OptionError.about("proposal", reason)
