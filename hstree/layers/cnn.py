"""Character CNN softmax: output vectors are computed from how the words are spelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Float64, Int32, Int64, Integer, offsets
from hstree._options import RandomState
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches
from hstree.layers.arithmetic import slot_sums
from hstree.layers.base import Gradients
from hstree.layers.dense import SoftmaxLayer, log_unigram, softmax_loss

T = TypeVar("T")

#: Characters before and after every word.
BEGIN = 0
END = 1


class CnnSoftmax(SoftmaxLayer):
    """Softmax whose output vectors are made from characters, by a convolutional network.

    A word is its characters with a mark before and after it; each character has a vector. A filter
    of width n is a linear function of n successive characters, and the word's feature is the
    largest value along the word:

        ``y_f = tanh(max_t F_f . (c_t, ..., c_(t+n-1)) + a_f)``

    The output vector is a projection of all features, with a low-rank correction that is not tied
    to the spelling, and the distribution is the softmax of ``s = W h + b``:

        ``W_w = P y(w) / sqrt(number of features) + B u_w``

    Parameters of a word are `rank` numbers and a bias, of d + 1 in the flat softmax: at V = 10,000
    and d = 100, 23% of the flat softmax's. Training costs V scores per target as the flat softmax
    does, and once every `delay` batches the features of all words and their gradients, which takes
    as long as thousands of scores per word. Between these batches the network's gradients are
    summed; the correction and the biases move in every batch. Testing costs what the flat softmax
    costs.

    Parameters
    ----------
    random_state : int
        Random seed of the starting parameters.
    characters : int
        Length of the vectors of characters.
    filters : int
        Number of filters of width 1; there are n times as many of width n.
    widest : int
        Filters have widths from 1 to this number of characters.
    rank : int
        Rank of the part of the output vectors that is not tied to the spelling.
    delay : int
        Batches of training in one update of the network.

    References
    ----------
    Y. Kim, Y. Jernite, D. Sontag & A. Rush, "Character-aware neural language models", AAAI 2016
    (the network, here without highway layers); R. Jozefowicz, O. Vinyals, M. Schuster, N.
    Shazeer & Y. Wu, "Exploring the limits of language modeling", arXiv:1602.02410, 2016 (the
    CNN softmax and its correction).
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        random_state: RandomState = 0,
        characters: Annotated[int, Meta(ge=1, le=1 << 16)] = 16,
        filters: Annotated[int, Meta(ge=1, le=1 << 16)] = 25,
        widest: Annotated[int, Meta(ge=1, le=256)] = 5,
        rank: Annotated[int, Meta(ge=1, le=1 << 16)] = 16,
        delay: Annotated[int, Meta(ge=1)] = 1,
    ) -> None:
        super().__init__(len(vocabulary), dim)
        spelling = _Spelling(vocabulary.words, widest)
        self._spelling = spelling
        draw = np.random.default_rng(random_state).standard_normal
        self.bias = log_unigram(vocabulary.counts if counts is None else counts).astype(dtype)
        arrays = {"characters": draw((spelling.n_characters, characters))}
        #: columns of the features of each width of filters
        self._columns: dict[int, slice] = {}
        first = 0
        for n in range(1, widest + 1):
            # values of a variance of 1 at the start
            arrays[f"filters_{n}"] = draw((n * filters, n * characters)) / (n * characters) ** 0.5
            self._columns[n] = slice(first, first + n * filters)
            first = first + n * filters
        arrays |= {"feature_bias": np.zeros(first), "projection": np.zeros((first, dim))}
        self._n_features = first
        #: scale of the projection, which keeps the first steps of training from overshooting
        self._scale = self.bias.dtype.type(self._n_features**-0.5)
        #: the network's parameters, and those of the correction
        self._network: dict[str, Array] = {k: array.astype(dtype) for k, array in arrays.items()}
        self._correction: dict[str, Array] = {
            "correction": np.zeros((self.n_labels, rank), dtype),
            "basis": (draw((rank, dim)) / rank**0.5).astype(dtype),
        }
        self.period = delay
        #: batches since the network's last update, and the sum of their gradients
        self._waiting = np.zeros((), np.int64)
        self._grad_spelled: Array = np.zeros((self.n_labels, dim), dtype)
        self.training_state = {"waiting": self._waiting, "grad_spelled": self._grad_spelled}
        #: features and output vectors, with copies of what they were computed from
        self._values: dict[str, tuple[list[Array], Any]] = {}

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {**self._network, **self._correction, "bias": self.bias}

    @property
    def weight(self) -> Array:
        """The output vectors (V, d), computed from the present parameters; do not change them.

        Trainers change parameters in place: they are compared with copies of those that the kept
        vectors were computed from, which takes far less time than computing the vectors.
        """
        sources = [*self._network.values(), *self._correction.values()]
        return self._kept("weight", sources, self._output_vectors)

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        logits: Array = hidden @ self.weight.T
        logits += self.bias
        return logits

    def _output_vectors(self) -> Array:
        correction = self._correction["correction"] @ self._correction["basis"]
        weight: Array = self._features().spelled + correction
        return weight

    def _features(self) -> _Features:
        """Return the features of all words under the present parameters of the network."""
        return self._kept("features", list(self._network.values()), self._compute_features)

    def _kept(self, name: str, sources: list[Array], compute: Callable[[], T]) -> T:
        """Return what was last computed from equal sources, or compute it."""
        kept = self._values.get(name)
        if kept is None or not all(map(np.array_equal, kept[0], sources)):
            kept = [array.copy() for array in sources], compute()
            self._values[name] = kept
        value: T = kept[1]
        return value

    def prepare(self, train: ContextBatches) -> None:
        """Start a training: gradients of an earlier one are dropped."""
        self._waiting[...] = 0
        self._grad_spelled.fill(0)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return the negative log-likelihoods, and the gradients of their sum.

        With `delay` n, the gradients of the network are those of the last n batches together in
        every n-th batch, and left out in the others.
        """
        # The correction and the biases move in every batch
        log_z, logit, softmax_gradients = softmax_loss(hidden, self.weight, self.bias, targets)
        grad_hidden, grad_weight, grad_bias = softmax_gradients
        gradients = {
            "bias": grad_bias,
            "correction": grad_weight @ self._correction["basis"].T,
            "basis": self._correction["correction"].T @ grad_weight,
        }

        # The network waits until the last batch of its period
        self._grad_spelled += grad_weight
        self._waiting += 1
        if self._waiting >= self.period:
            gradients |= self._network_gradients(self._features(), self._grad_spelled)
            self._waiting[...] = 0
            self._grad_spelled.fill(0)
        return log_z - logit, Gradients.for_all_rows(grad_hidden, gradients)

    def _compute_features(self) -> _Features:
        p = self._network
        spelling = self._spelling
        features = np.empty((self.n_labels, self._n_features), self.bias.dtype)
        source = np.empty(features.shape, np.int32)
        for n, columns in self._columns.items():
            # (U, n characters) vectors of each n-gram, then (U, filters) their values
            grams = p["characters"][spelling.ngrams[n]].reshape(len(spelling.ngrams[n]), -1)
            values = grams @ p[f"filters_{n}"].T
            spelling.largest(n, values, features[:, columns], source[:, columns])
        features += p["feature_bias"]
        np.tanh(features, out=features)
        spelled = features @ p["projection"]
        spelled *= self._scale
        return _Features(features, source, spelled)

    def _network_gradients(self, kept: _Features, grad_spelled: Array) -> dict[str, Array]:
        """Return the gradients of the network, from that of the vectors that it computes."""
        p = self._network
        spelling = self._spelling
        dtype = self.bias.dtype
        features = kept.features
        # (V, features) gradients of the features, then of the largest values
        grad = grad_spelled @ (p["projection"].T * self._scale)
        grad *= 1 - features * features
        grad_characters = np.zeros_like(p["characters"])
        gradients = {
            "characters": grad_characters,
            "feature_bias": grad.sum(axis=0),
            "projection": (features.T @ grad_spelled) * self._scale,
        }
        for n, columns in self._columns.items():
            ngrams = spelling.ngrams[n]
            filters = p[f"filters_{n}"]
            # (U, filters) gradients of the values of each n-gram: those of which it is the largest
            cell = kept.source[:, columns] * np.int64(len(filters)) + np.arange(len(filters))
            size = len(ngrams) * len(filters)
            grad_values = np.bincount(cell.ravel(), grad[:, columns].ravel(), size).astype(dtype)
            grad_values = grad_values.reshape(len(ngrams), len(filters))
            grams = p["characters"][ngrams].reshape(len(ngrams), -1)
            gradients[f"filters_{n}"] = grad_values.T @ grams
            # (U n, length) gradients of the vector of each character of each n-gram
            grad_grams = (grad_values @ filters).reshape(ngrams.size, -1)
            grad_characters += slot_sums(grad_grams, ngrams.ravel(), len(grad_characters))
        return gradients


class _Features(NamedTuple):
    """Features of all words."""

    features: Array  # (V, features)
    source: Int32  # (V, features) n-gram that has the largest value
    spelled: Array  # (V, d) projection of the features


class _Spelling:
    """Characters of words: their distinct n-grams, and those of all words, position by position.

    A word has a mark before and after it, and is filled up to `widest` characters with marks after.
    """

    n_characters: int  # distinct characters with the two marks
    ngrams: dict[int, Int64]  # (U, n) distinct n-grams of each width n as numbers of characters
    words: Int64  # (V,) the words, the longest first
    #: for each width n, the numbers of the n-grams that end at the n-th position, the next and so
    #: on; of those of `words` that are so long
    positions: dict[int, list[Int64]]

    def __init__(self, words: Sequence[str], widest: int) -> None:
        # The longest words first, so that those with a character at a position are the first ones
        length = np.array([len(word) for word in words])
        self.words = np.argsort(-length, kind="stable")
        length = length[self.words]

        # The number of each character of the words in a row, and where each word starts
        text = "".join(words[i] for i in self.words.tolist()).encode("utf-32-le", "surrogatepass")
        known, character = np.unique(np.frombuffer(text, np.uint32), return_inverse=True)
        self.n_characters = len(known) + 2
        start = offsets(length)[:-1]

        # Characters at each position of the words that are long enough; `END` after their last
        filled_length = np.maximum(length + 2, widest)
        characters = [np.full(len(words), BEGIN)]
        for position in range(1, int(filled_length.max())):
            at_position = np.full(np.count_nonzero(filled_length > position), END)
            n_inside = np.count_nonzero(length >= position)
            at_position[:n_inside] = character[start[:n_inside] + position - 1] + 2
            characters.append(at_position)

        self.ngrams = {1: np.arange(self.n_characters)[:, None]}
        self.positions = {1: characters}
        for n in range(2, widest + 1):
            # Each n-gram as an (n-1)-gram and a character, at each position; then their numbers
            ends = zip(self.positions[n - 1], characters[n - 1 :], strict=False)
            keys = [before[: len(last)] * self.n_characters + last for before, last in ends]
            distinct, number = np.unique(np.concatenate(keys), return_inverse=True)
            shorter, last = np.divmod(distinct, self.n_characters)
            self.ngrams[n] = np.column_stack([self.ngrams[n - 1][shorter], last])
            self.positions[n] = np.split(number, np.cumsum([len(key) for key in keys])[:-1])

    def largest(self, n: int, values: Array, out: Array, source: Int32) -> None:
        """Write the largest values along each word (V, filters), and the n-grams that have them.

        `values` (U, filters) are those of each n-gram.
        """
        first, *others = self.positions[n]
        # (V, filters) largest value so far of each word, the longest first, and its n-gram
        best = values.take(first, 0)
        best_gram = np.repeat(first.astype(np.int32)[:, None], values.shape[1], axis=1)
        for ngram in others:
            # The next n-gram of the words that are long enough to have one, the first of all
            next_value = values.take(ngram, 0)
            value_so_far = best[: len(ngram)]
            gram_so_far = best_gram[: len(ngram)]
            np.copyto(gram_so_far, ngram[:, None], where=next_value > value_so_far)
            np.maximum(value_so_far, next_value, out=value_so_far)
        out[self.words] = best
        source[self.words] = best_gram
