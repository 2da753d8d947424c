"""Interpolated Kneser-Ney n-gram language models: the baseline that needs no training.

The smoothing is that of Chen & Goodman (1999): every count gives up a discount, what is given up
goes to the model of the order below, whose counts say how many words an n-gram is seen after, and
at the bottom stands the uniform distribution. What is not here: count cut-offs, pruning, files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hstree import progress
from hstree._ragged import offsets, ranges
from hstree._typing import Bool, Float64, Int64, Integer
from hstree.data.corpus import Corpus
from hstree.data.text_score import TextScore
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import Windows
from hstree.errors import InputError, OptionError
from hstree.ngrams.counts import NGrams, count_ngrams, find
from hstree.ngrams.discounts import modified_discounts

#: The orders that a model may have.
ORDERS = range(2, 8)

#: Positions read or scored at a time.
BATCH = 1 << 16


@dataclass(frozen=True)
class _Order:
    """One order of a model: n-grams as in `NGrams`, each with the probability that it keeps.

    ``P(word | context) = kept + rest * P(word | shorter context)``.
    """

    contexts: Int64
    rest: Float64
    grams: Int64
    kept: Float64


class KneserNey:
    """An n-gram language model with interpolated (modified) Kneser-Ney smoothing.

    Parameters
    ----------
    order : int, default 5
        n, the length of the longest n-grams; 2 to 7.
    discount : "modified" or float, default "modified"
        Three discounts for each order, estimated from its counts (`modified_discounts`), or one
        between 0 and 1 for every count of every order.
    sentences : bool, default True
        Contexts begin anew at every line, as those behind published figures do: none reaches
        beyond the last ``<eos>``. Otherwise they run over line ends, as those of `LanguageModel`.
    uniform : bool, default True
        Whether unigrams are discounted too, for a uniform share of every word in the vocabulary.
        Without it, a word that is not in the training text has probability 0.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        That of the training text.
    discounts_ : float64 array (order, 3)
        Of counts 1, 2, and 3 or more, the unigrams' first.
    n_grams_ : tuple of int, length order
        How many different n-grams of each order the training text holds.

    Raises
    ------
    OptionError
        When `order` or `discount` has a value that it cannot have.

    Notes
    -----
    ``P(w | h) = (c(h w) - D(c(h w)) + R(h) P(w | h')) / c(h)``, where h' is the context h without
    its farthest word, c(h) sums c(h v) over all words v, R(h) sums their discounts D(c(h v)),
    and a count of zero has none. A context that was never seen leaves all to h'.

    At the highest order c counts the text; below it, c(h w) is the number of different words
    that stand before h w. Where contexts begin at the line, an n-gram that begins one has no word
    before it, and keeps its plain count, as in SRILM and KenLM.

    The smoothing is that of S. Chen & J. Goodman, "An empirical study of smoothing techniques
    for language modeling", Computer Speech & Language 13 (1999), section 3.

    Examples
    --------
    On the Penn Treebank, for which 141.2 is published:

    >>> KneserNey(5).fit(train).perplexity(test)                     # doctest: +SKIP
    141.186...
    """

    vocabulary_: Vocabulary
    discounts_: Float64
    n_grams_: tuple[int, ...]

    def __init__(
        self,
        order: int = 5,
        *,
        discount: Literal["modified"] | float = "modified",
        sentences: bool = True,
        uniform: bool = True,
    ) -> None:
        if not isinstance(order, int | np.integer) or order not in ORDERS:
            raise OptionError(
                f"order is {order!r}; it must be a whole number from {ORDERS[0]} to {ORDERS[-1]}"
            )
        is_number = isinstance(discount, int | float | np.floating)
        is_modified = isinstance(discount, str) and discount == "modified"
        if not is_modified and not (is_number and 0 < float(discount) < 1):
            raise OptionError(
                f'discount is {discount!r}; it must be "modified" or a number between 0 and 1'
            )
        self.order, self.discount = int(order), discount
        self.sentences, self.uniform = sentences, uniform
        self._orders: list[_Order] = []

    def fit(self, train: Corpus) -> KneserNey:
        """Count the n-grams of a text.

        Parameters
        ----------
        train : Corpus
            Its vocabulary is the model's; tokens out of it are ``<unk>``.

        Returns
        -------
        KneserNey
            Itself.

        Raises
        ------
        InputError
            When a word is not in the vocabulary and that has no ``<unk>``, or has no ``<eos>``.

        Notes
        -----
        O(order T log T) time for T tokens. Memory is at most 72 bytes a token at work, and 40 for
        each n-gram; the model keeps 16 for each n-gram and 16 for each context.
        """
        windows = Windows(train, self.order - 1)
        words = train.vocabulary
        end = words.index(EOS)
        before = np.full(self.order - 1, end, np.int32)
        ids = np.concatenate([before, *(targets for _, targets, _ in windows.batches(BATCH))])
        found = count_ngrams(ids, self.order, len(words), end if self.sentences else None)
        self.discounts_ = np.array([self._discounts(ngrams.counts) for ngrams in found])
        if not self.uniform:
            self.discounts_[0] = 0
        self._orders = [
            _smoothed(ngrams, discounts, len(words))
            for ngrams, discounts in zip(found, self.discounts_, strict=True)
        ]
        self.n_grams_ = tuple(len(ngrams.grams) for ngrams in found)
        self.vocabulary_ = words
        return self

    def nll(self, corpus: Corpus) -> Float64:
        """Return the negative log-likelihood of every token of a text.

        Parameters
        ----------
        corpus : Corpus
            Seen through the model's vocabulary; tokens out of it are scored as ``<unk>``.

        Returns
        -------
        float64 array (T,)
            In nats, in the order of the text.

        Raises
        ------
        InputError
            When a word is not in the vocabulary and that has no ``<unk>``, or nothing was fitted.
        """
        return np.concatenate([nll for nll, _ in self._scored(corpus)])

    def score(self, corpus: Corpus) -> TextScore:
        """Score every token of a text in batches of a fixed size; raises as `nll` does."""
        nll = nll_of_oov = 0.0
        oov_tokens = 0
        for losses, oov in self._scored(corpus):
            nll += float(losses.sum())
            nll_of_oov += float(losses[oov].sum())
            oov_tokens += int(oov.sum())
        return TextScore(nll, len(corpus), nll_of_oov, oov_tokens)

    def perplexity(self, corpus: Corpus) -> float:
        """Return the perplexity over all tokens of a text, ``<unk>`` and ``<eos>`` included."""
        return self.score(corpus).perplexity

    def log_prob(self, contexts: Integer) -> Float64:
        """Return the log-probabilities of all words.

        Parameters
        ----------
        contexts : int array (B, order - 1)
            Word ids, the farthest first; ``<eos>`` before the first word of a text.

        Returns
        -------
        float64 array (B, V)

        Raises
        ------
        InputError
            When the contexts are no such array, or nothing was fitted.

        Notes
        -----
        O(B V) time and memory.
        """
        orders = self._fitted()
        n_words = len(self.vocabulary_)
        given = _checked_contexts(contexts, self.order - 1, n_words)
        prob = np.full((len(given), n_words), 1 / n_words)
        for order, row, context in _descent(orders, given, n_words):
            prob[row] *= order.rest[context][:, None]
            first, stop = np.searchsorted(order.grams, [context * n_words, (context + 1) * n_words])
            start = offsets(stop - first)
            gram = ranges(first, start)
            prob[np.repeat(row, stop - first), order.grams[gram] % n_words] += order.kept[gram]
        return _log(prob)

    def _discounts(self, counts: Int64) -> Float64:
        if self.discount == "modified":
            return modified_discounts(counts)
        return np.full(3, float(self.discount))

    def _fitted(self) -> list[_Order]:
        if not self._orders:
            raise InputError("this n-gram model has no counts yet; call fit(train) first")
        return self._orders

    def _scored(self, corpus: Corpus) -> Iterator[tuple[Float64, Bool]]:
        """Yield the nll of a text's tokens, and which are OOV, a batch at a time."""
        orders = self._fitted()
        if corpus.vocabulary.words != self.vocabulary_.words:
            corpus = corpus.with_vocabulary(self.vocabulary_)
        windows = Windows(corpus, self.order - 1)
        n_words = len(self.vocabulary_)
        with progress.task(f"scoring {corpus.name}", len(windows), "tokens") as task:
            for contexts, targets, oov in windows.batches(BATCH):
                prob = np.full(len(targets), 1 / n_words)
                for order, row, context in _descent(orders, contexts, n_words):
                    gram = find(order.grams, context * n_words + targets[row])
                    kept = np.where(gram < 0, 0.0, order.kept[gram])
                    prob[row] = kept + order.rest[context] * prob[row]
                yield -_log(prob), oov
                task.advance(len(targets))


def _smoothed(ngrams: NGrams, discounts: Float64, n_words: int) -> _Order:
    """Return the probability that each n-gram keeps, and that each context passes down."""
    context = ngrams.grams // n_words
    discount = discounts[np.minimum(ngrams.counts, 3) - 1]
    total = np.bincount(context, ngrams.counts)
    rest = np.bincount(context, discount) / total
    return _Order(ngrams.contexts, rest, ngrams.grams, (ngrams.counts - discount) / total[context])


def _descent(
    orders: list[_Order], contexts: Integer, n_words: int
) -> Iterator[tuple[_Order, Int64, Int64]]:
    """Yield, from order 1 up, the rows whose context of that order was seen, and its number."""
    row = np.arange(len(contexts))
    context = np.zeros(len(contexts), np.int64)
    yield orders[0], row, context
    for length, order in enumerate(orders[1:], start=1):
        context = find(order.contexts, context * n_words + contexts[row, -length])
        row, context = row[context >= 0], context[context >= 0]
        yield order, row, context


def _checked_contexts(contexts: Integer, length: int, n_words: int) -> Int64:
    given = np.asarray(contexts)
    if given.ndim != 2 or given.shape[1] != length:
        raise InputError(f"contexts of shape {given.shape}; this model takes (B, {length})")
    if given.dtype.kind not in "iu":
        raise InputError(f"contexts of type {given.dtype}; word ids are whole numbers")
    if given.size and not 0 <= given.min() <= given.max() < n_words:
        raise InputError(f"contexts hold ids outside 0 to {n_words - 1}")
    return given.astype(np.int64)


def _log(prob: Float64) -> Float64:
    """Return the logarithm; minus infinity for what an unsmoothed unigram model rules out."""
    with np.errstate(divide="ignore"):
        return np.log(prob)
