"""Interpolated Kneser-Ney n-gram language models.

A discount is subtracted from every count, and its mass goes to the model of the next lower order.
The counts of lower orders are the numbers of distinct words before an n-gram. The order below the
unigrams is the uniform distribution. There are no count cut-offs, no pruning and no files. See S.
Chen & J. Goodman, "An empirical study of smoothing techniques for language modeling", Computer
Speech & Language 13 (1999), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from msgspec import Meta

from hstree import progress
from hstree._arrays import Float64, Int64, Integer
from hstree._options import Option, checked_count
from hstree.data.contexts import check_ids, checked_ids
from hstree.data.corpus import Corpus
from hstree.data.memory import free_memory
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import ContextBatches
from hstree.errors import InputError
from hstree.ngrams.counts import count_ngrams, find

#: Orders that a model may have.
ORDERS = range(2, 8)

_ORDER = Option.of("order", Annotated[int, Meta(ge=ORDERS[0], le=ORDERS[-1])])
_DISCOUNT = Option.of(
    "discount",
    Annotated[float, Meta(gt=0, lt=1)] | Literal["modified"],
)

#: Number of positions that are read or scored at a time.
BATCH = 1 << 16

#: Number of tokens from which the number of n-grams is estimated.
_SAMPLE = 1 << 20

#: Discounts of an order if they cannot be estimated.
FALLBACK = (0.5, 1.0, 1.5)


@dataclass(frozen=True)
class _Order:
    """One order of a model: the tables of `NGrams` with probabilities.

    ``P(word | context) = kept + rest * P(word | shorter context)``.
    """

    contexts: Int64
    rest: Float64  #: (C,)
    grams: Int64
    kept: Float64  #: (G,); 0 for n-grams without a count

    @cached_property
    def cumulative(self) -> Float64:
        """Cumulative sums of `kept`, (G + 1,), starting with 0."""
        return np.concatenate([[0.0], np.cumsum(self.kept)])


class KneserNey:
    """N-gram language model with interpolated (modified) Kneser-Ney smoothing.

    Parameters
    ----------
    order : int, default 5
        Maximum length of n-grams, from 2 to 7.
    discount : "modified" or float, default "modified"
        "modified": three discounts for each order, estimated from its counts
        (`modified_discounts`). A number between 0 and 1: one discount for all counts.
    sentences : bool, default True
        Whether contexts begin at every line, as in published results, so that they do not extend
        beyond the last ``<eos>``. Otherwise they cross line ends, as in `LanguageModel`.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Vocabulary of the training text.
    discounts_ : float64 array (order, 3)
        Discounts for counts 1, 2, and 3 or more, for each order, starting with the unigrams.
    n_grams_ : tuple of int, length order
        Number of distinct n-grams of each order in the training text.

    Raises
    ------
    OptionError
        When `order` or `discount` is out of range.
    InputError
        In all methods: when the model is not fitted, contexts have the wrong type or shape, or a
        text has words outside a vocabulary that lacks ``<unk>``.

    Notes
    -----
    ``P(w | h) = (c(h w) - D(c(h w)) + R(h) P(w | h')) / c(h)``, where h' is the context h without
    its farthest word, c(h) is the sum of c(h v) over all words v, R(h) is the sum of their
    discounts D(c(h v)), and D(0) = 0. If a context h does not occur, P(w | h) = P(w | h').

    For the highest order, c counts occurrences; for lower orders, c(h w) is the number of distinct
    words before h w. If contexts begin at lines, an n-gram at the beginning of a line has no word
    before it and keeps its number of occurrences, as in SRILM and KenLM.

    Examples
    --------
    The published perplexity on the Penn Treebank is 141.2:

    >>> KneserNey(5).fit(train).perplexity(test)                     # doctest: +SKIP
    141.186...
    """

    predicts: ClassVar[str] = "word given the words before it"
    """Description of a prediction, as in `LanguageModel`."""

    vocabulary_: Vocabulary
    discounts_: Float64
    n_grams_: tuple[int, ...]

    def __init__(
        self,
        order: int = 5,
        *,
        discount: Literal["modified"] | float = "modified",
        sentences: bool = True,
    ) -> None:
        self.order: int = _ORDER.checked(order)
        self.discount: Literal["modified"] | float = _DISCOUNT.checked(discount)
        self.sentences = sentences
        self._orders: list[_Order] = []

    def fit(self, train: Any) -> KneserNey:
        """Count the n-grams of a text.

        Parameters
        ----------
        train : Corpus, or anything that `Corpus.of` accepts
            Its vocabulary becomes that of the model and must have ``<eos>``; tokens outside it
            count as ``<unk>``.

        Notes
        -----
        O(order T log T) time for T tokens. Peak memory is 72 bytes per token and 40 per n-gram; the
        model keeps 16 bytes per n-gram and 16 per context. Raises InputError when that exceeds the
        free memory.
        """
        train = Corpus.of(train)
        needed = self.memory(train)
        free = free_memory()
        if needed > free:
            most = float(f"{len(train) * free / needed:.1e}")
            raise InputError(
                f"{len(train):,} tokens of {train.name} take about {needed / 2**30:.1f} GiB at "
                f"order {self.order}, and {free / 2**30:.1f} GiB of memory are free; give about "
                f"{most:,.0f} tokens (`first_tokens`), or a lower order"
            )
        windows = ContextBatches(train, self.order - 1)
        words = train.vocabulary
        end = words.index(EOS)
        before = np.full(self.order - 1, end, np.int32)
        ids = np.concatenate([before, *(targets for _, targets, _ in windows.batches(BATCH))])
        tables = count_ngrams(ids, self.order, len(words), end if self.sentences else None)
        if self.discount == "modified":
            self.discounts_ = np.array([modified_discounts(ngrams.counts) for ngrams in tables])
        else:
            self.discounts_ = np.full((self.order, 3), float(self.discount))
        self._orders = []
        for ngrams, discounts in zip(tables, self.discounts_, strict=True):
            context = ngrams.grams // len(words)  # (G,) context of each n-gram
            discount = discounts[np.minimum(ngrams.counts, 3) - 1]  # (G,)
            total = np.bincount(context, ngrams.counts)  # (C,)
            rest = np.bincount(context, discount) / total
            kept = (ngrams.counts - discount) / total[context]
            self._orders.append(_Order(ngrams.contexts, rest, ngrams.grams, kept))
        self.n_grams_ = tuple(len(ngrams.grams) for ngrams in tables)
        self.vocabulary_ = words
        return self

    def memory(self, train: Corpus) -> int:
        """Return an approximate upper bound for the memory that `fit` needs, in bytes.

        For a long text, the number of n-grams is estimated from the first million tokens, since it
        grows at most linearly with the number of tokens.
        """
        n_words = len(train.vocabulary)

        def needed(n_grams: float) -> int:  # above unigrams, of each token
            return int((72 + 40 * n_grams) * len(train)) + 40 * n_words

        if needed(self.order - 1) <= free_memory():
            return needed(self.order - 1)
        start = train.first_tokens(_SAMPLE)
        tables = count_ngrams(np.maximum(start.ids(), 0), self.order, n_words)
        return needed(sum(len(ngrams.grams) for ngrams in tables[1:]) / len(start))

    @property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary of the training text, like `vocabulary_`."""
        self._fitted()
        return self.vocabulary_

    def nll(self, corpus: Any) -> Float64:
        """Return the negative log-likelihood of every token in nats, a float64 array (T,).

        Tokens outside the model's vocabulary are scored as ``<unk>``.
        """
        orders, n_words = self._fitted()
        corpus = Corpus.of(corpus, self.vocabulary_)
        # A corpus with other words is encoded with the vocabulary of the model
        if corpus.vocabulary.words != self.vocabulary_.words:
            corpus = corpus.with_vocabulary(self.vocabulary_)
        windows = ContextBatches(corpus, self.order - 1)
        nll = []
        with progress.task(f"scoring {corpus.name}", len(windows), "tokens") as task:
            for contexts, targets, _ in windows.batches(BATCH):
                nll.append(
                    -np.log(_probabilities(orders, contexts, targets[:, None], n_words)[:, 0])
                )
                task.advance(len(targets))
        return np.concatenate(nll)

    def perplexity(self, corpus: Any) -> float:
        """Return the perplexity of a text, including ``<unk>`` and ``<eos>``."""
        return float(np.exp(self.nll(corpus).mean()))

    def log_prob(self, contexts: Integer, words: Integer | None = None) -> Float64:
        """Return the log-probabilities of words in each context, a float64 array (B, k).

        O(B k order log G) time for G n-grams.

        Parameters
        ----------
        contexts : int array (B, order - 1)
            Word ids, the farthest word first; ``<eos>`` precedes the first word of a text.
        words : int array (B, k), optional
            Word ids (default: all words).
        """
        orders, n_words = self._fitted()
        ids = checked_ids(contexts, self.order - 1, n_words)
        if words is None:
            words = np.broadcast_to(np.arange(n_words), (len(ids), n_words))
        else:
            words = np.asarray(words)
            if words.ndim != 2 or len(words) != len(ids):
                shape = f"words of shape {words.shape} for {len(ids)} contexts"
                raise InputError(f"{shape}; give (B, k)")
            check_ids(words, n_words, what="words")
        return np.log(_probabilities(orders, ids, words, n_words))

    def sample(self, contexts: Integer, rng: np.random.Generator, k: int = 1) -> Int64:
        """Draw k words for each context with replacement, an int64 array (B, k).

        `contexts` are as in `log_prob`. A draw starts with the longest context that occurs in the
        training text. It selects an n-gram of the context by discounted probability. With the
        remaining probability, it continues with the next shorter context, and finally with the
        uniform distribution. O(B k order log G) time for G n-grams. Raises OptionError when `k` is
        not a whole number, 0 or more.
        """
        k = checked_count("k", k, 0)
        orders, n_words = self._fitted()
        ids = checked_ids(contexts, self.order - 1, n_words)
        words = np.empty(len(ids) * k, np.int64)
        # Draws that have no word yet
        draw = np.arange(words.size)
        for order, row, context in reversed(list(_by_order(orders, ids, n_words))):
            # (2, B) range of the n-grams of each context; empty for unknown contexts
            runs = np.zeros((2, len(ids)), np.int64)
            bounds = n_words * np.array([context, context + 1])
            runs[:, row] = np.searchsorted(order.grams, bounds)
            below, above = order.cumulative[runs]
            item = draw // k
            u = rng.random(len(draw))
            taken = u < (above - below)[item]
            # Find the n-gram of each random number in the cumulative sums
            item = item[taken]
            gram = np.searchsorted(order.cumulative, below[item] + u[taken], "right") - 1
            words[draw[taken]] = order.grams[np.minimum(gram, runs[1, item] - 1)] % n_words
            draw = draw[~taken]
        words[draw] = rng.integers(0, n_words, len(draw))
        return words.reshape(len(ids), k)

    def _fitted(self) -> tuple[list[_Order], int]:
        """Return the orders and the number of words. Raises InputError if not fitted."""
        if not self._orders:
            raise InputError("this n-gram model has no counts yet; call fit(train) first")
        return self._orders, len(self.vocabulary_)


def modified_discounts(counts: Int64) -> Float64:
    """Estimate the discounts of modified Kneser-Ney smoothing from the counts (G,) of one order.

    If n_i is the number of n-grams with count i, and ``Y = n_1 / (n_1 + 2 n_2)``, the discount for
    count i is ``i - (i + 1) Y n_{i+1} / n_i``; counts above 3 have the discount for 3.

    Returns the discounts for counts 1, 2, and 3 or more, float64 (3,). They are `FALLBACK` if one
    of n_1 to n_4 is zero or a discount is not positive, which happens with small texts.

    Examples
    --------
    >>> modified_discounts(np.repeat([1, 2, 3, 4], [40, 20, 10, 6])).tolist()
    [0.5, 1.25, 1.8]
    """
    # n_1 to n_4
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(np.float64)
    if not n.all():
        return np.array(FALLBACK)
    i = np.arange(1, 4)
    discounts = i - (i + 1) * n[0] / (n[0] + 2 * n[1]) * n[1:] / n[:-1]
    return discounts if (discounts > 0).all() else np.array(FALLBACK)


def _by_order(
    orders: list[_Order], contexts: Integer, n_words: int
) -> Iterator[tuple[_Order, Int64, Int64]]:
    """Yield each order from 1, with the rows whose context it has, and the context numbers."""
    row = np.arange(len(contexts))
    context = np.zeros(len(contexts), np.int64)
    yield orders[0], row, context
    for length, order in enumerate(orders[1:], start=1):
        context = find(order.contexts, context * n_words + contexts[row, -length])
        row = row[context >= 0]
        context = context[context >= 0]
        yield order, row, context


def _probabilities(
    orders: list[_Order], contexts: Integer, words: Integer, n_words: int
) -> Float64:
    """Return the probabilities of words (B, k) in each context (B, order - 1)."""
    prob = np.full(words.shape, 1 / n_words)
    for order, row, context in _by_order(orders, contexts, n_words):
        key = context[:, None] * n_words + words[row]
        gram = find(order.grams, key.ravel()).reshape(key.shape)
        kept = np.where(gram < 0, 0.0, order.kept[gram])
        prob[row] = kept + order.rest[context][:, None] * prob[row]
    return prob
