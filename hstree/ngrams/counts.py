"""Tables of the n-grams of a text, with the counts that Kneser-Ney smoothing is made from.

An n-gram is a context and a word. Contexts are numbered length by length, each as its nearest
words (a shorter context, whose number is known) and one word farther back, so that every key is
one int64 whatever the order, and the context to fall back on is a division away. What is not
here: discounts and probabilities (`kneser_ney`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hstree import progress
from hstree._typing import Int64, Integer


@dataclass(frozen=True)
class NGrams:
    """The n-grams of one order k that a text holds; C contexts, G n-grams.

    Attributes
    ----------
    contexts : int64 array (C,), sorted
        The contexts of k - 1 words: ``shorter * V + word``, with `word` the farthest and
        `shorter` the place of the others among the contexts of the order below. A context's
        place here is its number. Order 1 has one, the empty context.
    grams : int64 array (G,), sorted
        ``context * V + word``.
    counts : int64 array (G,)
        At the highest order, how often the n-gram stands in the text. Below it, how many words
        are seen before it; where it begins a line, and contexts do, how often it does so.
    """

    contexts: Int64
    grams: Int64
    counts: Int64


def count_ngrams(
    ids: Integer, order: int, n_words: int, boundary: int | None = None
) -> list[NGrams]:
    """Count the n-grams of every order up to `order` at every position of a text.

    Parameters
    ----------
    ids : int array (order - 1 + T,)
        Word ids; the first ``order - 1`` are context only.
    order : int
    n_words : int
        V.
    boundary : int, optional
        A word that no context reaches beyond: the line end, where contexts begin anew.

    Returns
    -------
    list of NGrams
        Orders 1 to `order`.

    Notes
    -----
    O(order T log T) time. Memory is at most 72 bytes a token at work, and 24 bytes for each
    n-gram (8 for it as a context) in the tables, of which no order has more than T. Keys
    stay in an int64 as long as ``T V < 2**63``.

    Examples
    --------
    >>> unigrams, bigrams = count_ngrams(np.array([0, 1, 2, 1, 2]), 2, n_words=3)
    >>> [divmod(key, 3) for key in bigrams.grams.tolist()], bigrams.counts.tolist()
    ([(0, 1), (1, 2), (2, 1)], [1, 2, 1])
    >>> unigrams.grams.tolist(), unigrams.counts.tolist()
    ([1, 2], [2, 1])
    """
    with progress.task("counting n-grams", total=2 * order, unit="tables") as task:
        contexts, observed = _contexts(ids, order, n_words, boundary, task)
        found: list[NGrams] = []
        for k in range(order, 0, -1):
            grams, counts = np.unique(observed.pop(), return_counts=True)
            if found:
                shorter = _suffixes(found[-1], n_words)
                grams, counts = _joined(grams, counts, *np.unique(shorter, return_counts=True))
            found.append(NGrams(contexts[k - 1], grams, counts))
            task.advance()
    return found[::-1]


def find(table: Int64, keys: Int64) -> Int64:
    """Return the place of each key in a sorted table, -1 where it is not there. O(K log N)."""
    if len(table) == 0:
        return np.full(len(keys), -1)
    place = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    return np.where(table[place] == keys, place, -1)


def _contexts(
    ids: Integer,
    order: int,
    n_words: int,
    boundary: int | None,
    task: progress.Task,
) -> tuple[list[Int64], list[Int64]]:
    """Number the contexts of every length; key the n-gram of each position's longest context.

    Returns
    -------
    contexts : list of int64 array
        As in `NGrams`, for each order.
    observed : list of int64 array
        For each order, the n-grams of the positions whose longest context is of that order.
    """
    target = ids[order - 1 :]
    contexts = [np.zeros(1, np.int64)]
    observed = []
    position = np.arange(len(target))
    context = np.zeros(len(target), np.int64)
    for length in range(1, order):
        is_longest = np.zeros(len(position), np.bool_)
        if boundary is not None and length > 1:
            is_longest = ids[position + (order - length)] == boundary
        observed.append(context[is_longest] * n_words + target[position[is_longest]])
        position, context = position[~is_longest], context[~is_longest]
        farthest = ids[position + (order - 1 - length)]
        table, context = np.unique(context * n_words + farthest, return_inverse=True)
        contexts.append(table)
        task.advance()
    observed.append(context * n_words + target[position])
    return contexts, observed


def _suffixes(ngrams: NGrams, n_words: int) -> Int64:
    """Return the key of each n-gram without its farthest word, in the order below."""
    context, word = np.divmod(ngrams.grams, n_words)
    suffix: Int64 = ngrams.contexts[context] // n_words * n_words + word
    return suffix


def _joined(
    grams: Int64, counts: Int64, more_grams: Int64, more_counts: Int64
) -> tuple[Int64, Int64]:
    """Merge two tables of n-grams that share none."""
    if len(grams) == 0:
        return more_grams, more_counts
    both = np.concatenate([grams, more_grams])
    order = np.argsort(both, kind="stable")
    return both[order], np.concatenate([counts, more_counts])[order]
