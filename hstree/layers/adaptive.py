"""Adaptive softmax: a short list of frequent words, clusters of rare ones with short vectors."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Float64, Int64, Integer
from hstree._options import RandomState, checked_count
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.layers.bands import Bands, check_cutoffs
from hstree.layers.base import TIE, Gradients, OutputLayer, first_columns
from hstree.layers.dense import log_sum_exp, log_unigram, softmax_loss

#: Items of the batch for which cut-offs are chosen.
BATCH = 1024
#: Nanoseconds of one multiplication in all matrix products of a training step.
PER_PRODUCT = 0.1
#: Nanoseconds of one score besides its products.
PER_SCORE = 1.5
#: Nanoseconds of the update of one parameter.
PER_NUMBER = 1.5
#: Nanoseconds of the calls for one cluster.
PER_CLUSTER = 50_000
#: Minimum fraction of the tokens in a short list that is chosen.
MIN_FRACTION = 0.75
#: Minimum length of a cluster's vectors.
MIN_WIDTH = 4
#: Maximum number of clusters.
MAX_TAILS = 4
#: Ranks that are tried as cut-offs, per factor of ten.
CANDIDATES = 30
#: Minimum number of labels for which cut-offs are chosen.
MIN_LABELS = 500

#: Softmax of some targets: its name in parameters, batch items, projection of their hidden vectors,
#: weights, biases, and the rows (n,) of the targets.
_Softmax = tuple[str, Int64 | slice, Array | None, Array, Array, Int64]


class AdaptiveSoftmax(OutputLayer):
    """Softmax in two steps: frequent words at once, rare ones by cluster with shorter vectors.

    A softmax over the short list and one entry per cluster gives ``P(w | h)`` of a frequent word;
    a word of cluster i has ``P(w | h) = P(i | h) exp(v_w . P_i h + b_w) / Z_i``, where P_i projects
    h on ``d / factor^i`` numbers. The clusters hold words of falling frequency, so that most
    targets never see the large ones. It is the tree of two levels where the projections are the
    identity.

    A target costs the scores of the short list, and those of its cluster: with the masses p_i of
    the clusters, ``(S + T) d + sum_i p_i (d d_i + V_i d_i)`` multiplications in training and for
    one word's probability. All words' probabilities cost ``sum_i V_i d_i``. Parameters:
    ``(S + T) (d + 1) + sum_i (d d_i + V_i (d_i + 1))``.

    Parameters
    ----------
    random_state : int
        Random seed of the projections.
    cutoffs : str
        Number of words in the short list, and the ranks of words by count at which further clusters
        start: "2000,10000". "auto" chooses them by estimated time, with three quarters of all
        tokens in the short list, or none below 500 words or where vectors would have fewer than 4
        numbers; "none" is the flat softmax.
    factor : float
        Vectors of each cluster are shorter than the one before by this factor.
    projection_rate : float
        Factor on a language model's learning rate for the projections. They move in every batch,
        their words' vectors rarely do: where clusters have d / 4 numbers or more, 0.03 fits the
        training text less and predicts a new one better; narrow projections have to learn.

    Attributes
    ----------
    head_weight, head_bias : float arrays (S + T, d), (S + T,)
        Short list, then clusters.
    tails : list of (projection (d_i, d), weight (V_i, d_i), bias (V_i,))

    References
    ----------
    E. Grave, A. Joulin, M. Cisse, D. Grangier & H. Jegou, "Efficient softmax approximation for
    GPUs", ICML 2017.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        random_state: RandomState = 0,
        cutoffs: str = "auto",
        factor: Annotated[float, Meta(ge=1)] = 4.0,
        projection_rate: Annotated[float, Meta(ge=0, le=1)] = 1.0,
    ) -> None:
        super().__init__(len(vocabulary), dim)
        cuts = _cutoffs(vocabulary.counts, dim, cutoffs, factor)
        self.bands = Bands(vocabulary.counts, cuts)
        # (V,) log-probabilities of labels, those of the short list and of each cluster
        log_frequency = log_unigram(vocabulary.counts if counts is None else counts)
        log_frequency = log_frequency[self.bands.label]
        short_list, *in_tails = np.split(log_frequency, self.bands.start[1:-1])
        log_mass = [log_sum_exp(tail[None]) for tail in in_tails]
        self.head_bias: Array = np.concatenate([short_list, *log_mass]).astype(dtype)
        self.head_weight: Array = np.zeros((len(self.head_bias), dim), dtype)
        self._arrays = {"head_weight": self.head_weight, "head_bias": self.head_bias}
        rng = np.random.default_rng(random_state)
        self.tails: list[tuple[Array, Array, Array]] = []
        for i, (tail, mass) in enumerate(zip(in_tails, log_mass, strict=True)):
            # orthogonal rows that keep the mean squared length of a vector
            width = _width(dim, factor, i)
            orthonormal = np.linalg.qr(rng.standard_normal((dim, width)))[0]
            projection = (orthonormal.T * np.sqrt(dim / width)).astype(dtype)
            weight = np.zeros((len(tail), width), dtype)
            bias = (tail - mass).astype(dtype)
            self.tails.append((projection, weight, bias))
            self._arrays[f"tail{i + 1}_projection"] = projection
            self._arrays[f"tail{i + 1}_weight"] = weight
            self._arrays[f"tail{i + 1}_bias"] = bias
        names = (f"tail{i}_projection" for i in range(1, len(self.tails) + 1))
        self.adagrad = {name: {"rate": projection_rate} for name in names}

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return dict(self._arrays)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator | None = None
    ) -> tuple[Float64, Gradients]:
        """Return the negative log-likelihoods and the gradients of their sum; `rng` is not used."""
        losses = np.zeros(len(targets))
        grad_hidden = np.zeros_like(hidden)
        gradients: dict[str, Array] = {}
        for name, items, projection, weight, bias, chosen in self._softmaxes(targets):
            # A cluster's softmax is over projected vectors, the head's over the hidden vectors
            inputs = hidden[items] if projection is None else hidden[items] @ projection.T
            log_z, logit, gradient = softmax_loss(inputs, weight, bias, chosen)
            losses[items] += log_z - logit
            if projection is None:
                grad_hidden += gradient.inputs
            else:
                gradients[f"{name}_projection"] = gradient.inputs.T @ hidden[items]
                grad_hidden[items] += gradient.inputs @ projection
            gradients[f"{name}_weight"] = gradient.weight
            gradients[f"{name}_bias"] = gradient.bias
        return losses, Gradients.for_all_rows(grad_hidden, gradients)

    def log_prob(self, hidden: Array) -> Float64:
        """Return the log-probabilities of all labels, a float64 array (B, V)."""
        result = np.empty((len(hidden), self.n_labels))
        start = self.bands.start
        # (B, S + T) log-probabilities of the short list and the clusters
        head = _log_softmax(hidden, self.head_weight, self.head_bias)
        result[:, : start[1]] = head[:, : start[1]]
        for i in range(len(self.tails)):
            tail = result[:, start[i + 1] : start[i + 2]]
            tail[...] = self._tail(i, hidden)
            tail += head[:, start[1] + i, None]
        return result if self.bands.is_identity else result.take(self.bands.column, axis=1)

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        nll = np.zeros(len(targets))
        for _, items, projection, weight, bias, chosen in self._softmaxes(targets):
            inputs = hidden[items] if projection is None else hidden[items] @ projection.T
            logits = inputs @ weight.T + bias
            nll[items] += log_sum_exp(logits) - logits[np.arange(len(logits)), chosen]
        return nll

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id.

        No word is more probable than its cluster: those below the k-th best so far are skipped.
        """
        k = min(checked_count("k", k), self.n_labels)
        start = self.bands.start
        n_short = int(start[1])
        head = _log_softmax(hidden, self.head_weight, self.head_bias)
        # (B, k) the best so far; no label, the last, where there are fewer than k
        labels = np.full((len(hidden), k), self.n_labels)
        best = np.full((len(hidden), k), -np.inf)
        for i in range(len(self.tails) + 1):
            items: Any = slice(None)
            if i == 0:
                values = head[:, :n_short]
            else:
                cluster_log_prob = head[:, n_short + i - 1, None]
                items = np.flatnonzero(cluster_log_prob[:, 0] >= best[:, -1] - TIE)
                values = self._tail(i - 1, hidden[items]) + cluster_log_prob[items]
            column, value = first_columns(values, min(k, values.shape[1]))
            # The best of both, in the order of their labels for ties
            both = np.hstack([labels[items], self.bands.label[start[i] + column]])
            value = np.hstack([best[items], value])
            by_label = np.argsort(both, axis=1)
            value = np.take_along_axis(value, by_label, axis=1)
            chosen, best[items] = first_columns(value, k)
            by_label = np.take_along_axis(by_label, chosen, axis=1)
            labels[items] = np.take_along_axis(both, by_label, axis=1)
        return labels, best

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return p (1 - p) for the rows of the head; in a cluster, that times its fraction.

        A projection's row has at most 1/4 of the fraction of its cluster.
        """
        # p of each word, and of each cluster as an entry of the head
        fraction = (counts / counts.sum())[self.bands.label]
        bands = np.split(fraction, self.bands.start[1:-1])
        mass = np.array([tail.sum() for tail in bands[1:]])
        head = np.concatenate([bands[0], mass])
        curvature = {"head_weight": head * (1 - head), "head_bias": head * (1 - head)}
        for i, (tail, m) in enumerate(zip(bands[1:], mass, strict=True), 1):
            # p(w) (1 - p(w | cluster)); a cluster that never occurs has a fraction of 0
            rows = tail * (1 - tail / max(m, np.finfo(float).tiny))
            curvature[f"tail{i}_projection"] = np.full(len(self.tails[i - 1][0]), m / 4)
            curvature |= {f"tail{i}_weight": rows, f"tail{i}_bias": rows}
        return {name: curvature[name] for name in self.parameters()}

    def _softmaxes(self, targets: Integer) -> Iterator[_Softmax]:
        """Yield the softmax of the head, and those of the clusters that have targets."""
        # (B,) the column of each target in the order of frequency, and its cluster, 0 for the head
        column = self.bands.column[targets]
        start = self.bands.start
        tail = np.searchsorted(start[1:-1], column, side="right")

        # In the head a target is its word, or the entry of its cluster after all words
        entry = np.where(tail == 0, column, start[1] + tail - 1)
        yield "head", slice(None), None, self.head_weight, self.head_bias, entry

        # In a cluster the items are those whose target it has
        for i, arrays in enumerate(self.tails, 1):
            items = np.flatnonzero(tail == i)
            if items.size:
                yield f"tail{i}", items, *arrays, column[items] - start[i]

    def _tail(self, i: int, hidden: Array) -> Float64:
        """Return the log-probabilities of a cluster's words in it, (B, V_i)."""
        projection, weight, bias = self.tails[i]
        return _log_softmax(hidden @ projection.T, weight, bias)


def _log_softmax(inputs: Array, weight: Array, bias: Array) -> Float64:
    """Return the log-softmax (B, k) of ``inputs @ weight.T + bias``, a float64 array."""
    logits = inputs @ weight.T + bias
    return logits - log_sum_exp(logits)[:, None]


def _width(dim: int, factor: float, i: int) -> int:
    """Return the length of the vectors in cluster i, counted from 0."""
    try:
        return max(1, int(dim // factor ** (i + 1)))
    except OverflowError:  # a power above the largest float
        return 1


def _cutoffs(counts: Integer, dim: int, text: str, factor: float) -> list[int]:
    """Return the cut-offs of an option; OptionError where they are not legal."""
    if text == "none":
        return []
    if text == "auto":
        return cheapest_cutoffs(counts, dim, factor)
    try:
        cutoffs = [int(number) for number in text.split(",")]
    except ValueError:
        reason = f"is {text!r}; it must be numbers of words such as '2000,10000', 'auto' or 'none'"
        raise OptionError.about("cutoffs", reason) from None
    check_cutoffs(cutoffs, len(counts), "cutoffs", text)
    return cutoffs


def cheapest_cutoffs(counts: Integer, dim: int, factor: float = 4.0) -> list[int]:
    """Choose the cut-offs of least estimated time per training step, by dynamic programming.

    The cost of a softmax of k words with vectors of length w over B items, in nanoseconds, is
    ``c + k (B (a w + e) + u (w + 1))``: matrix products and exponentials for each score, and the
    update of all its rows; the constants are of one core of an Intel Xeon server, rounded.

    Cut-offs are out of `CANDIDATES` ranks per tenfold; none for few labels. So that accuracy does
    not pay for the time, the short list has at least `MIN_FRACTION` of the tokens, each cluster as
    many words as all before it, and vectors of at least `MIN_WIDTH` numbers.
    """
    n_labels = len(counts)
    if n_labels < MIN_LABELS:
        return []
    fraction = np.sort(np.maximum(counts, 0.5))[::-1]
    fraction /= fraction.sum()
    # (n,) ranks at which clusters may start, the last of them V; fraction of the tokens before each
    n_candidates = int(CANDIDATES * np.log10(n_labels))
    rank = np.unique(np.geomspace(10, n_labels, n_candidates).round().astype(np.int64))
    before = np.cumsum(fraction)[rank - 1]
    first = np.searchsorted(before, MIN_FRACTION)
    rank = rank[first:]
    before = before[first:]
    # (n, n) words and batch items of a cluster between two ranks, infinite cost where none
    words = rank - rank[:, None]
    items = BATCH * (before - before[:, None])
    # (n,) lowest cost of the words before each rank, and the cut-offs that give it
    cost = _step_cost(rank, BATCH, dim)
    cutoffs: list[list[int]] = [[] for _ in rank]
    best = (float(cost[-1]), cutoffs[-1])
    entry = _step_cost(1, BATCH, dim) - PER_CLUSTER  # one more row of the head
    for i in range(MAX_TAILS):
        width = _width(dim, factor, i)
        if width < MIN_WIDTH:
            break
        tail = _step_cost(words, items, width) + PER_PRODUCT * items * dim * width
        # (n, n) cost up to each rank with the last cluster from each other; its entry in the head
        total = cost[:, None] + np.where(words >= rank[:, None], tail, np.inf) + entry
        last = total.argmin(axis=0)
        cost = total.min(axis=0)
        cutoffs = [[*cutoffs[a], int(rank[a])] for a in last]
        best = min(best, (float(cost[-1]), cutoffs[-1]))
    return best[1]


def _step_cost(words: Array | int, items: Array | float, width: int) -> Any:
    """Return the nanoseconds of a softmax of some words over some items."""
    per_score = PER_PRODUCT * width + PER_SCORE
    return PER_CLUSTER + words * (items * per_score + PER_NUMBER * (width + 1))
