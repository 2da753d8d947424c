"""Adaptive softmax: a short list of frequent words, and clusters of rare words."""

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

#: Batch size for which cut-offs are chosen.
BATCH = 1024
#: Nanoseconds per multiplication in the matrix products of a training step.
PER_PRODUCT = 0.1
#: Nanoseconds per score, in addition to its products.
PER_SCORE = 1.5
#: Nanoseconds per parameter update.
PER_NUMBER = 1.5
#: Nanoseconds for the function calls of one cluster.
PER_CLUSTER = 50_000
#: Minimum fraction of the tokens that an automatically chosen short list covers.
MIN_FRACTION = 0.75
#: Minimum length of a cluster's vectors.
MIN_WIDTH = 4
#: Maximum number of clusters.
MAX_TAILS = 4
#: Number of ranks that are tried as cut-offs, per factor of ten.
CANDIDATES = 30
#: Minimum number of labels for which cut-offs are chosen.
MIN_LABELS = 500

#: Softmax for some targets: its name in parameters, batch items, projection of their hidden
#: vectors, weights, biases, and the rows (n,) of the targets.
_Softmax = tuple[str, Int64 | slice, Array | None, Array, Array, Int64]


class AdaptiveSoftmax(OutputLayer):
    """Softmax in two steps: first frequent words and clusters, then the rare words of a cluster.

    A softmax over S frequent words (the short list) and T clusters gives ``P(w | h)`` for a
    frequent word. A word in cluster i has ``P(w | h) = P(i | h) exp(v_w . P_i h + b_w) / Z_i``,
    where P_i projects h to ``d / factor^i`` dimensions. Words are assigned to clusters by
    descending frequency, so that most targets do not need the large clusters. If the projections
    were the identity, the layer would be a tree with two levels.

    A target costs the scores of the short list and of its cluster. If p_i is the fraction of the
    targets in cluster i, these are ``(S + T) d + sum_i p_i (d d_i + V_i d_i)`` multiplications, in
    training and for one word's probability. The probabilities of all words cost ``sum_i V_i d_i``.
    Parameters: ``(S + T) (d + 1) + sum_i (d d_i + V_i (d_i + 1))``.

    Parameters
    ----------
    random_state : int
        Random seed for the projections.
    cutoffs : str
        Number of words in the short list, and the ranks of words by count at which further clusters
        start, such as "2000,10000". "auto" minimises the estimated time, with at least three
        quarters of the tokens in the short list; it makes no clusters with fewer than 500 words, or
        if their vectors would have fewer than 4 dimensions. "none" is the flat softmax.
    factor : float
        Factor by which the vectors of each cluster are shorter than those of the previous cluster.
    projection_rate : float
        Factor by which the learning rate of a language model is multiplied for the projections.
        These change in every batch, while the vectors of rare words seldom do. With clusters of at
        least d / 4 dimensions, 0.03 fits the training text less closely and predicts new text
        better; narrower projections need a higher rate.

    Attributes
    ----------
    head_weight, head_bias : float arrays (S + T, d), (S + T,)
        Rows of the short list, then of the clusters.
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
        cuts = parse_cutoffs(vocabulary.counts, dim, cutoffs, factor)
        self.bands = Bands(vocabulary.counts, cuts)
        # (V,) log-probabilities of labels, then split into the short list and the clusters
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
            # Orthogonal rows that keep the mean squared length of a vector
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
            # Clusters use projected vectors, and the head uses the hidden vectors
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

        No word is more probable than its cluster, so clusters below the k-th best word are skipped.
        """
        k = min(checked_count("k", k), self.n_labels)
        start = self.bands.start
        n_short = int(start[1])
        head = _log_softmax(hidden, self.head_weight, self.head_bias)
        # (B, k) the best labels so far; V stands for no label
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
            # Merge both, sorted by label, so that ties are broken by label
            both = np.hstack([labels[items], self.bands.label[start[i] + column]])
            value = np.hstack([best[items], value])
            by_label = np.argsort(both, axis=1)
            value = np.take_along_axis(value, by_label, axis=1)
            chosen, best[items] = first_columns(value, k)
            by_label = np.take_along_axis(by_label, chosen, axis=1)
            labels[items] = np.take_along_axis(both, by_label, axis=1)
        return labels, best

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Return p (1 - p) for rows of the head; in a cluster, multiplied by its probability.

        For rows of a projection, it is 1/4 of the probability of the cluster, an upper bound.
        """
        # Probability of each word, and of each cluster as an entry of the head
        fraction = (counts / counts.sum())[self.bands.label]
        bands = np.split(fraction, self.bands.start[1:-1])
        mass = np.array([tail.sum() for tail in bands[1:]])
        head = np.concatenate([bands[0], mass])
        curvature = {"head_weight": head * (1 - head), "head_bias": head * (1 - head)}
        for i, (tail, m) in enumerate(zip(bands[1:], mass, strict=True), 1):
            # p(w) (1 - p(w | cluster)); the words of a cluster that never occurs have p(w) = 0
            rows = tail * (1 - tail / max(m, np.finfo(float).tiny))
            curvature[f"tail{i}_projection"] = np.full(len(self.tails[i - 1][0]), m / 4)
            curvature |= {f"tail{i}_weight": rows, f"tail{i}_bias": rows}
        return {name: curvature[name] for name in self.parameters()}

    def _softmaxes(self, targets: Integer) -> Iterator[_Softmax]:
        """Yield the softmax of the head, and the softmaxes of the clusters that have targets."""
        # (B,) the column of each target in order of frequency, and its cluster, 0 for the head
        column = self.bands.column[targets]
        start = self.bands.start
        tail = np.searchsorted(start[1:-1], column, side="right")

        # In the head, a target is its word, or the entry of its cluster after all words
        entry = np.where(tail == 0, column, start[1] + tail - 1)
        yield "head", slice(None), None, self.head_weight, self.head_bias, entry

        # In a cluster, the items are those whose targets are in the cluster
        for i, arrays in enumerate(self.tails, 1):
            items = np.flatnonzero(tail == i)
            if items.size:
                yield f"tail{i}", items, *arrays, column[items] - start[i]

    def _tail(self, i: int, hidden: Array) -> Float64:
        """Return the log-probabilities (B, V_i) of words within cluster i."""
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


def parse_cutoffs(counts: Integer, dim: int, text: str, factor: float) -> list[int]:
    """Return the cut-offs of the option `cutoffs`, in ascending order; [] for no clusters.

    Raises OptionError if they are illegal.
    """
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
    """Choose the cut-offs with the lowest estimated time per training step, by dynamic programming.

    The cost of a softmax over k words with vectors of length w, for B items, in nanoseconds, is
    ``c + k (B (a w + e) + u (w + 1))``: matrix products and exponentials for each score, and the
    update of all rows. The constants were measured on one core of an Intel Xeon server and rounded.

    Cut-offs are chosen among `CANDIDATES` ranks per factor of ten; few labels have no cut-offs. To
    preserve accuracy, the short list has at least `MIN_FRACTION` of the tokens, each cluster has at
    least as many words as all before it, and vectors have at least `MIN_WIDTH` dimensions.
    """
    n_labels = len(counts)
    if n_labels < MIN_LABELS:
        return []
    fraction = np.sort(np.maximum(counts, 0.5))[::-1]
    fraction /= fraction.sum()
    # (n,) ranks at which clusters may start, then V; fraction of the tokens before each rank
    n_candidates = int(CANDIDATES * np.log10(n_labels))
    rank = np.unique(np.geomspace(10, n_labels, n_candidates).round().astype(np.int64))
    before = np.cumsum(fraction)[rank - 1]
    first = np.searchsorted(before, MIN_FRACTION)
    rank = rank[first:]
    before = before[first:]
    # (n, n) words and batch items of a cluster between two ranks
    words = rank - rank[:, None]
    items = BATCH * (before - before[:, None])
    # (n,) lowest cost of the words before each rank, and its cut-offs
    cost = _step_cost(rank, BATCH, dim)
    cutoffs: list[list[int]] = [[] for _ in rank]
    best = (float(cost[-1]), cutoffs[-1])
    entry = _step_cost(1, BATCH, dim) - PER_CLUSTER  # one more row of the head
    for i in range(MAX_TAILS):
        width = _width(dim, factor, i)
        if width < MIN_WIDTH:
            break
        tail = _step_cost(words, items, width) + PER_PRODUCT * items * dim * width
        # (n, n) cost up to a rank (column) if the last cluster starts at another rank (row)
        total = cost[:, None] + np.where(words >= rank[:, None], tail, np.inf) + entry
        last = total.argmin(axis=0)
        cost = total.min(axis=0)
        cutoffs = [[*cutoffs[a], int(rank[a])] for a in last]
        best = min(best, (float(cost[-1]), cutoffs[-1]))
    return best[1]


def _step_cost(words: Array | int, items: Array | float, width: int) -> Any:
    """Return the estimated nanoseconds of a softmax over some words, for some items."""
    per_score = PER_PRODUCT * width + PER_SCORE
    return PER_CLUSTER + words * (items * per_score + PER_NUMBER * (width + 1))
