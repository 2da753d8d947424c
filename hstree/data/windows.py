"""Context windows over a corpus: what stands before each word, and the order of training.

Contexts run over line ends; before the first word of a corpus stand ``<eos>``. A corpus is read
a block at a time, so that one larger than memory works.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hstree._typing import Bool, Float64, Int32
from hstree.data.corpus import Corpus
from hstree.errors import InputError

#: Contexts (B, n) and targets (B,), both label ids, and whether each target is OOV.
Batch = tuple[Int32, Int32, Bool]

#: Positions held in memory, and shuffled among themselves, at a time.
BLOCK = 1 << 22


class Windows:
    """The contexts and targets of a corpus whose vocabulary is a tree's labels.

    Parameters
    ----------
    corpus : Corpus
    context : int
        n, the number of words before the target.

    Raises
    ------
    InputError
        When a word is not in the vocabulary and that has no ``<unk>``, or has no ``<eos>``.
    """

    def __init__(self, corpus: Corpus, context: int) -> None:
        vocabulary = corpus.vocabulary
        if vocabulary.eos is None:
            raise InputError(
                f"the labels hold no <eos>, which ends every line of {corpus.name}; "
                "build the tree from a corpus, or add <eos> to its vocabulary"
            )
        if corpus.n_oov and vocabulary.unk is None:
            raise InputError(
                f"{corpus.n_oov:,} of {len(corpus):,} tokens of {corpus.name} are not among "
                "the labels, which hold no <unk>; build the tree over a vocabulary with <unk>"
            )
        self.corpus = corpus
        self.context = context
        self._eos = vocabulary.index(vocabulary.eos)
        self._unk = vocabulary.index(vocabulary.unk) if vocabulary.unk is not None else -1

    def __len__(self) -> int:
        return len(self.corpus)

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Yield batches of at most `size` positions.

        Parameters
        ----------
        size : int
        rng : numpy.random.Generator, optional
            Shuffles the blocks, and the positions within each block of 2**22; in the order of
            the text without it.

        Yields
        ------
        contexts : int32 array (B, n)
            Label ids, the farthest first.
        targets : int32 array (B,)
            Label ids; ``<unk>``'s where the word is not in the vocabulary.
        oov : bool array (B,)
            Whether it is not.
        """
        starts = np.arange(0, len(self), BLOCK)
        for start in starts if rng is None else rng.permutation(starts):
            ids = self._block(int(start))
            oov = ids < 0
            ids[oov] = self._unk
            window = np.lib.stride_tricks.sliding_window_view(ids, self.context + 1)
            n_here = len(window)
            order = np.arange(n_here) if rng is None else rng.permutation(n_here)
            for a in range(0, n_here, size):
                here = order[a : a + size]
                both = window[here]
                yield both[:, :-1], both[:, -1], oov[here + self.context]

    def training_batches(self, size: int, rng: np.random.Generator) -> Iterator[Batch]:
        """Yield the batches of one epoch of training, in random order."""
        return self.batches(size, rng)

    def training_counts(self) -> Float64:
        """Return how often each label is a target of `training_batches`, on average; (V,)."""
        return self.corpus.counts.astype(np.float64)

    def _block(self, start: int) -> Int32:
        """Return the ids of a block, with the n words before it."""
        stop = min(start + BLOCK, len(self))
        before = max(0, start - self.context)
        ids = np.full(self.context + stop - start, self._eos, np.int32)
        ids[len(ids) - (stop - before) :] = self.corpus.ids(slice(before, stop))
        return ids
