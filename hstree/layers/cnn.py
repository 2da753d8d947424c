"""Character CNN softmax: output vectors are computed from the spelling of the words."""

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

#: Marks before and after every word, used as characters.
BEGIN = 0
END = 1


class CnnSoftmax(SoftmaxLayer):
    """Softmax with output vectors computed from characters by a convolutional network.

    A word is a sequence of characters with a mark before and after it. Each character has a vector.
    A filter of width n is a linear function of n successive characters. The feature of the word is
    the largest value along the word:

        ``y_f = tanh(max_t F_f . (c_t, ..., c_(t+n-1)) + a_f)``

    The output vector is a projection of all features, plus a low-rank correction that does not
    depend on the spelling. The distribution is the softmax of ``s = W h + b``:

        ``W_w = P y(w) / sqrt(number of features) + B u_w``

    A word has `rank` parameters and a bias, instead of d + 1 parameters in the flat softmax. With
    V = 10,000 and d = 100, the layer has 23% of the parameters of the flat softmax. Training costs
    V scores per target, as in the flat softmax. Once every `delay` batches, it also costs the
    features of all words and their gradients, which take as long as thousands of scores per word.
    Between these batches, the gradients of the network are summed; the correction and the biases
    change in every batch. Testing costs the same as the flat softmax.

    Parameters
    ----------
    random_state : int
        Random seed for the initial parameters.
    characters : int
        Length of character vectors.
    filters : int
        Number of filters of width 1; there are n times as many filters of width n.
    widest : int
        Maximum width of filters, in characters; widths start at 1.
    rank : int
        Rank of the correction, the part of the output vectors that is independent of the spelling.
    delay : int
        Number of batches between two updates of the network.

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
        #: filter width -> columns of its features
        self._columns: dict[int, slice] = {}
        first = 0
        for n in range(1, widest + 1):
            # Filter values have a variance of 1 initially
            arrays[f"filters_{n}"] = draw((n * filters, n * characters)) / (n * characters) ** 0.5
            self._columns[n] = slice(first, first + n * filters)
            first = first + n * filters
        arrays |= {"feature_bias": np.zeros(first), "projection": np.zeros((first, dim))}
        self._n_features = first
        #: scale of the projection, which prevents the first training steps from overshooting
        self._scale = self.bias.dtype.type(self._n_features**-0.5)
        #: parameters of the network, and of the correction
        self._network: dict[str, Array] = {k: array.astype(dtype) for k, array in arrays.items()}
        self._correction: dict[str, Array] = {
            "correction": np.zeros((self.n_labels, rank), dtype),
            "basis": (draw((rank, dim)) / rank**0.5).astype(dtype),
        }
        self.period = delay
        #: number of batches since the last update of the network, and the sum of their gradients
        self._waiting = np.zeros((), np.int64)
        self._grad_spelled: Array = np.zeros((self.n_labels, dim), dtype)
        self.training_state = {"waiting": self._waiting, "grad_spelled": self._grad_spelled}
        #: features and output vectors, with copies of the parameters used to compute them
        self._values: dict[str, tuple[list[Array], Any]] = {}

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {**self._network, **self._correction, "bias": self.bias}

    @property
    def weight(self) -> Array:
        """Output vectors (V, d), computed from the current parameters; do not change them.

        Trainers change parameters in place. A cached result is valid if the parameters equal the
        copies kept with it; this comparison is much faster than computing the vectors.
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
        """Return the features of all words for the current parameters of the network."""
        return self._kept("features", list(self._network.values()), self._compute_features)

    def _kept(self, name: str, sources: list[Array], compute: Callable[[], T]) -> T:
        """Return the cached value if it was computed from equal sources; otherwise compute it."""
        kept = self._values.get(name)
        if kept is None or not all(map(np.array_equal, kept[0], sources)):
            kept = [array.copy() for array in sources], compute()
            self._values[name] = kept
        value: T = kept[1]
        return value

    def prepare(self, train: ContextBatches) -> None:
        """Clear the gradients summed in an earlier training run."""
        self._waiting[...] = 0
        self._grad_spelled.fill(0)

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return the negative log-likelihoods, and the gradients of their sum.

        With `delay` n, every n-th batch returns the summed network gradients of the last n batches;
        the other batches return none.
        """
        # Gradients of the correction and the biases, in every batch
        log_z, logit, softmax_gradients = softmax_loss(hidden, self.weight, self.bias, targets)
        grad_hidden, grad_weight, grad_bias = softmax_gradients
        gradients = {
            "bias": grad_bias,
            "correction": grad_weight @ self._correction["basis"].T,
            "basis": self._correction["correction"].T @ grad_weight,
        }

        # Gradients of the network, in the last batch of a period
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
            # (U, n * characters) vectors of each n-gram, then (U, filters) filter values
            grams = p["characters"][spelling.ngrams[n]].reshape(len(spelling.ngrams[n]), -1)
            values = grams @ p[f"filters_{n}"].T
            spelling.largest(n, values, features[:, columns], source[:, columns])
        features += p["feature_bias"]
        np.tanh(features, out=features)
        spelled = features @ p["projection"]
        spelled *= self._scale
        return _Features(features, source, spelled)

    def _network_gradients(self, kept: _Features, grad_spelled: Array) -> dict[str, Array]:
        """Return the gradients of the network from the gradient of its output vectors (V, d)."""
        p = self._network
        spelling = self._spelling
        dtype = self.bias.dtype
        features = kept.features
        # (V, features) gradients with respect to the features, then to the maxima before tanh
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
            # (U, filters) gradients of each n-gram's values, summed where they are the maximum
            cell = kept.source[:, columns] * np.int64(len(filters)) + np.arange(len(filters))
            size = len(ngrams) * len(filters)
            grad_values = np.bincount(cell.ravel(), grad[:, columns].ravel(), size).astype(dtype)
            grad_values = grad_values.reshape(len(ngrams), len(filters))
            grams = p["characters"][ngrams].reshape(len(ngrams), -1)
            gradients[f"filters_{n}"] = grad_values.T @ grams
            # (U n, characters) gradient of the vector of each character in each n-gram
            grad_grams = (grad_values @ filters).reshape(ngrams.size, -1)
            grad_characters += slot_sums(grad_grams, ngrams.ravel(), len(grad_characters))
        return gradients


class _Features(NamedTuple):
    """Features of all words."""

    features: Array  # (V, features)
    source: Int32  # (V, features) n-gram with the largest value
    spelled: Array  # (V, d) projection of the features


class _Spelling:
    """Distinct character n-grams, and the n-grams of all words, position by position.

    A word has a mark before and after it. Short words are padded at the end to `widest` characters.
    """

    n_characters: int  # number of distinct characters, including the two marks
    ngrams: dict[int, Int64]  # width n -> (U, n) distinct n-grams, as character numbers
    words: Int64  # (V,) the words, the longest first
    #: width n -> for each position, from the first, numbers of the n-grams of all `words` that are
    #: long enough
    positions: dict[int, list[Int64]]

    def __init__(self, words: Sequence[str], widest: int) -> None:
        # Sort words by length, so that the words with a character at a position come first
        length = np.array([len(word) for word in words])
        self.words = np.argsort(-length, kind="stable")
        length = length[self.words]

        # The number of each character in the concatenated words, and the start of each word
        text = "".join(words[i] for i in self.words.tolist()).encode("utf-32-le", "surrogatepass")
        known, character = np.unique(np.frombuffer(text, np.uint32), return_inverse=True)
        self.n_characters = len(known) + 2
        start = offsets(length)[:-1]

        # Characters at each position, for the words that are long enough; `END` after the last
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
            # Key of each n-gram, from an (n-1)-gram and a character, at each position; then numbers
            ends = zip(self.positions[n - 1], characters[n - 1 :], strict=False)
            keys = [before[: len(last)] * self.n_characters + last for before, last in ends]
            distinct, number = np.unique(np.concatenate(keys), return_inverse=True)
            shorter, last = np.divmod(distinct, self.n_characters)
            self.ngrams[n] = np.column_stack([self.ngrams[n - 1][shorter], last])
            self.positions[n] = np.split(number, np.cumsum([len(key) for key in keys])[:-1])

    def largest(self, n: int, values: Array, out: Array, source: Int32) -> None:
        """Write the largest value along each word to `out` (V, filters), its n-gram to `source`.

        `values` (U, filters) holds the filter values of each n-gram.
        """
        first, *others = self.positions[n]
        # (V, filters) largest value of each word so far, the longest word first, and its n-gram
        best = values.take(first, 0)
        best_gram = np.repeat(first.astype(np.int32)[:, None], values.shape[1], axis=1)
        for ngram in others:
            # The next n-gram, for the words that are long enough; these come first
            next_value = values.take(ngram, 0)
            value_so_far = best[: len(ngram)]
            gram_so_far = best_gram[: len(ngram)]
            np.copyto(gram_so_far, ngram[:, None], where=next_value > value_so_far)
            np.maximum(value_so_far, next_value, out=value_so_far)
        out[self.words] = best
        source[self.words] = best_gram
