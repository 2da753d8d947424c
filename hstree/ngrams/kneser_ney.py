"""Interpolated Kneser-Ney n-gram language models.

A discount is subtracted from every count, and its mass goes to the model of the next lower order,
whose counts are the numbers of different words before an n-gram; below the unigrams is the uniform
distribution. Without count cut-offs, pruning and files. The smoothing is that of S. Chen & J.
Goodman, "An empirical study of smoothing techniques for language modeling", Computer Speech &
Language 13 (1999), section 3.
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

#: Positions read or scored at a time.
BATCH = 1 << 16

#: Tokens that the number of n-grams is estimated from.
_SAMPLE = 1 << 20

#: Discounts of an order for which none can be estimated.
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
        """Sums of `kept` over all n-grams before each, (G + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.kept)])


class KneserNey:
    """An n-gram language model with interpolated (modified) Kneser-Ney smoothing.

    Parameters
    ----------
    order : int, default 5
        Length of the longest n-grams; 2 to 7.
    discount : "modified" or float, default "modified"
        Three discounts for each order, estimated from its counts (`modified_discounts`), or one
        discount between 0 and 1 for all counts.
    sentences : bool, default True
        Start contexts again at every line, as in published results: no context reaches beyond the
        last ``<eos>``. Otherwise they cross line ends, as those of `LanguageModel`.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        Vocabulary of the training text.
    discounts_ : float64 array (order, 3)
        Discounts of counts 1, 2, and 3 or more, for each order from the unigrams.
    n_grams_ : tuple of int, length order
        Number of different n-grams of each order in the training text.

    Raises
    ------
    OptionError
        When `order` or `discount` is out of range.
    InputError
        By every method: when the model is not fitted, contexts are not such an array, or a text
        has words outside the vocabulary, which lacks ``<unk>`` for them.

    Notes
    -----
    ``P(w | h) = (c(h w) - D(c(h w)) + R(h) P(w | h')) / c(h)``, where h' is the context h without
    its farthest word, c(h) sums c(h v) over all words v, R(h) sums their discounts D(c(h v)), and
    D(0) = 0. For a context h that does not occur, P(w | h) = P(w | h').

    At the highest order c counts occurrences; below it, c(h w) is the number of different words
    before h w. If contexts begin at lines, an n-gram at the beginning of a line has no word before
    it and keeps its plain count, as in SRILM and KenLM.

    Examples
    --------
    On the Penn Treebank, for which 141.2 is published:

    >>> KneserNey(5).fit(train).perplexity(test)                     # doctest: +SKIP
    141.186...
    """

    predicts: ClassVar[str] = "word given the words before it"
    """Description of a prediction, as that of `LanguageModel`."""

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
        train : Corpus, or what `Corpus.of` makes one of
            Its vocabulary, which needs ``<eos>``, becomes the model's; tokens outside it are
            ``<unk>``.

        Notes
        -----
        O(order T log T) time for T tokens. Peak memory is 72 bytes per token and 40 per n-gram;
        the model keeps 16 per n-gram and 16 per context. Raises InputError when that is more than
        what is free.
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
        """Return the bytes that `fit` takes for a text at most, about.

        The n-grams of a long text are estimated from its first million tokens: their number grows
        no faster than that of the tokens.
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
        """Vocabulary of the training text, as `vocabulary_`."""
        self._fitted()
        return self.vocabulary_

    def nll(self, corpus: Any) -> Float64:
        """Return the negative log-likelihood of every token of a text: float64 array (T,), in nats.

        Tokens outside the model's vocabulary are scored as ``<unk>``.
        """
        orders, n_words = self._fitted()
        corpus = Corpus.of(corpus, self.vocabulary_)
        # A corpus over other words is read with those of the model
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
        """Return the perplexity of a text, ``<unk>`` and ``<eos>`` included."""
        return float(np.exp(self.nll(corpus).mean()))

    def log_prob(self, contexts: Integer, words: Integer | None = None) -> Float64:
        """Return the log-probabilities of words in each context: float64 array (B, k).

        In O(B k order log G) time for G n-grams.

        Parameters
        ----------
        contexts : int array (B, order - 1)
            Word ids, the farthest first; ``<eos>`` before the first word of a text.
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
        """Draw k words after each context of `log_prob`, with replacement: int64 array (B, k).

        A draw begins at the longest context that occurs in the training text. There it takes one
        of the context's n-grams, each with its discounted probability; with the probability that
        the discounts leave, it continues with the next shorter context, at last to all words alike.
        O(B k order log G) time for G n-grams. Raises OptionError when `k` is not a whole number,
        0 or more.
        """
        k = checked_count("k", k, 0)
        orders, n_words = self._fitted()
        ids = checked_ids(contexts, self.order - 1, n_words)
        words = np.empty(len(ids) * k, np.int64)
        # Draws that have no word yet.
        draw = np.arange(words.size)
        for order, row, context in reversed(list(_by_order(orders, ids, n_words))):
            # (2, B) first n-gram of each context and the one after its last; 0, 0 for others
            runs = np.zeros((2, len(ids)), np.int64)
            bounds = n_words * np.array([context, context + 1])
            runs[:, row] = np.searchsorted(order.grams, bounds)
            below, above = order.cumulative[runs]
            item = draw // k
            u = rng.random(len(draw))
            taken = u < (above - below)[item]
            # Find the n-gram that holds each number in the cumulative sums.
            item = item[taken]
            gram = np.searchsorted(order.cumulative, below[item] + u[taken], "right") - 1
            words[draw[taken]] = order.grams[np.minimum(gram, runs[1, item] - 1)] % n_words
            draw = draw[~taken]
        words[draw] = rng.integers(0, n_words, len(draw))
        return words.reshape(len(ids), k)

    def _fitted(self) -> tuple[list[_Order], int]:
        """Return the orders and the number of words; refuse a model that is not fitted."""
        if not self._orders:
            raise InputError("this n-gram model has no counts yet; call fit(train) first")
        return self._orders, len(self.vocabulary_)


def modified_discounts(counts: Int64) -> Float64:
    """Estimate the discounts of modified Kneser-Ney smoothing from the counts (G,) of one order.

    With n_i the number of n-grams of count i, and ``Y = n_1 / (n_1 + 2 n_2)``, the discount of an
    n-gram of count i is ``i - (i + 1) Y n_{i+1} / n_i``; counts above 3 have the discount of 3.

    Returns the discounts of counts 1, 2, and 3 or more: float64 (3,), `FALLBACK` if one of n_1 to
    n_4 is zero or a discount is not above 0, as happens with small texts.

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
    """Yield each order from 1 up with the rows whose context has it, and the contexts' numbers."""
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
