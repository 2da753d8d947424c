"""Windows on both sides of each word, as word2vec has them: within a line, at most n words away.

To train, frequent words are left out at random before windows are laid (`sample`), and each
window's reach is drawn from 1 to n (Mikolov et al. 2013; the word2vec program). To score, every
word stays and every window is whole. The ``<eos>`` of a line is a word of it like any other.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hstree._typing import Bool, Float64, Int32, Int64
from hstree.data.corpus import Corpus
from hstree.data.windows import BLOCK, Batch, Windows


class SymmetricWindows(Windows):
    """The words around each word of a corpus, and the word itself.

    Parameters
    ----------
    corpus : Corpus
    context : int
        n, the number of words on either side.
    sample : float, default 0
        Of a word that makes up a share f of the corpus, `training_batches` keeps a token with the
        probability
        ``min(1, (sqrt(f / sample) + 1) * sample / f)``; 0 keeps them all.
    """

    def __init__(self, corpus: Corpus, context: int, sample: float = 0.0) -> None:
        super().__init__(corpus, context)
        self.kept = keep_probability(corpus.counts, sample)
        self._line_start = corpus.line_start

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Yield batches of at most `size` positions; see `Windows.batches`.

        Yields
        ------
        contexts : int32 array (B, 2 n)
            Label ids, from left to right; -1 beyond the ends of the line.
        targets : int32 array (B,)
        oov : bool array (B,)
        """
        starts = np.arange(0, len(self), BLOCK)
        for start in (starts if rng is None else rng.permutation(starts)).tolist():
            stop = min(start + BLOCK, len(self))
            # Windows reach over the ends of a block.
            first, last = max(0, start - self.context), min(stop + self.context, len(self))
            words = _Words(*self._read(first, last), self.context)
            order = np.arange(start - first, stop - first)
            if rng is not None:
                order = rng.permutation(order)
            for a in range(0, len(order), size):
                yield words.around(order[a : a + size], self.context)

    def training_batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield batches to train on, in random order: tokens left out, windows of random reach.

        A window does not reach over the ends of a block of 2**22 tokens.
        """
        for start in rng.permutation(np.arange(0, len(self), BLOCK)).tolist():
            ids, oov, line = self._read(start, min(start + BLOCK, len(self)))
            kept = rng.random(len(ids)) < self.kept[ids]
            if not kept.any():
                continue
            words = _Words(ids[kept], oov[kept], line[kept], self.context)
            order = rng.permutation(len(words.ids))
            reach = rng.integers(1, self.context + 1, len(order))
            for a in range(0, len(order), size):
                yield words.around(order[a : a + size], reach[a : a + size])

    def training_counts(self) -> Float64:
        """Return how often each label is a target of `training_batches`, on average; (V,)."""
        return super().training_counts() * self.kept

    def _read(self, first: int, last: int) -> tuple[Int32, Bool, Int64]:
        """Return the ids of some tokens, whether they are OOV, and the line of each."""
        ids = self.corpus.ids(slice(first, last))
        oov = ids < 0
        ids[oov] = self._unk
        starts = self._line_start
        inside = starts[np.searchsorted(starts, first, "right") : np.searchsorted(starts, last)]
        line = np.zeros(len(ids), np.int64)
        line[inside - first] = 1
        return ids, oov, np.cumsum(line)


class _Words:
    """Some tokens in a row, and how many of its line each has to its left and right."""

    def __init__(self, ids: Int32, oov: Bool, line: Int64, context: int) -> None:
        self.ids, self.oov = ids, oov
        self._both = np.lib.stride_tricks.sliding_window_view(
            np.pad(ids, context, constant_values=-1), 2 * context + 1
        )
        self._steps = np.r_[-context:0, 1 : context + 1]
        place = np.arange(len(ids))
        first = np.flatnonzero(np.diff(line, prepend=-1))
        length = np.diff(first, append=len(ids))
        self._left = place - np.repeat(first, length)
        self._right = np.repeat(first + length, length) - 1 - place

    def around(self, places: Int64, reach: Int64 | int) -> Batch:
        """Return contexts, targets and OOV marks of some places."""
        left = np.minimum(self._left[places], reach)[:, None]
        right = np.minimum(self._right[places], reach)[:, None]
        inside = (self._steps >= -left) & (self._steps <= right)
        n = self._both.shape[1] // 2
        both = self._both[places]
        around = np.concatenate([both[:, :n], both[:, n + 1 :]], axis=1)
        return np.where(inside, around, np.int32(-1)), both[:, n], self.oov[places]


def keep_probability(counts: Int64, sample: float) -> Float64:
    """Return the probability with which each word's tokens are kept, a float64 array (V,).

    The word2vec program's rule, which differs from the paper's; 1 for all where `sample` is 0.
    """
    if sample == 0:
        return np.ones(len(counts))
    threshold = sample * counts.sum()
    count = np.maximum(counts, 1)
    kept: Float64 = (np.sqrt(count / threshold) + 1) * threshold / count
    return np.minimum(kept, 1.0)
