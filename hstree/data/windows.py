"""Context windows over a corpus: batches of contexts and targets, in text or training order.

In `ContextBatches`, the context is the n words before the target. It crosses line ends, and
``<eos>`` precedes the first word of a corpus. In `SymmetricWindows`, the context is the words on
both sides in the same line, as in word2vec, with sub-sampling of frequent words and random window
sizes in training (Mikolov et al. 2013; the word2vec program). A corpus is read block by block, so
that it can be larger than memory.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from hstree._arrays import Bool, Float64, Int32, Int64, offsets
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS
from hstree.errors import InputError

#: Label ids of contexts (B, n) and targets (B,), and whether each target is OOV (B,).
Batch = tuple[Int32, Int32, Bool]

#: Number of positions in a block, which is kept in memory and shuffled.
BLOCK = 1 << 22
#: Maximum number of tokens in a line of `LineWindows`; windows do not cross the pieces.
LONGEST = 10_000


class ContextBatches:
    """Contexts and targets in a corpus whose vocabulary is the labels of a tree.

    Parameters
    ----------
    corpus : Corpus
        Raises InputError if the vocabulary does not contain ``<eos>``, which is in contexts that
        cross line ends, or ``<unk>``, if there are unknown words.
    context : int
        n, the number of words before the target.

    Attributes
    ----------
    corpus : Corpus
    context : int
    training_counts : float64 array (V,)
        Expected number of occurrences of each label as a target in `training_batches`.
    """

    #: Whether contexts cross line ends, so that they contain ``<eos>``.
    crosses_lines: ClassVar[bool] = True

    def __init__(self, corpus: Corpus, context: int) -> None:
        vocabulary = corpus.vocabulary
        if self.crosses_lines and vocabulary.eos is None:
            raise InputError(
                f"the labels do not include <eos>, which ends every line of {corpus.name}; build "
                "the tree from a corpus, or from the words of a corpus (vocabulary=); CBOW and "
                "skip-gram need no <eos>"
            )
        if corpus.n_oov and vocabulary.unk is None:
            raise InputError(
                f"{corpus.n_oov:,} of {len(corpus):,} tokens of {corpus.name} are not among the "
                "labels, which do not include <unk>; build the tree with a vocabulary that "
                "includes <unk>, for example with a larger min_count"
            )
        self.corpus = corpus
        self.context = context
        # <eos> fills contexts that begin before the text; -1 if no context needs it
        self._eos = int(vocabulary.ids([EOS])[0])
        self.training_counts: Float64 = corpus.counts.astype(np.float64)

    def __len__(self) -> int:
        return len(self.corpus)

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Yield batches of at most `size` positions.

        Parameters
        ----------
        size : int
        rng : numpy.random.Generator, optional
            Generator that shuffles the blocks of 2**22 positions and the positions within each
            block. None keeps the order of the text.

        Yields
        ------
        contexts : int32 array (B, n)
            Label ids, in the order of the text.
        targets : int32 array (B,)
            Label ids; the id of ``<unk>`` for unknown words.
        oov : bool array (B,)
            Whether the target is outside the vocabulary.
        """
        for start, stop in self._blocks(rng):
            # Contexts of the first targets begin before the block
            first = start - self.context
            ids = self.corpus.ids(slice(max(first, 0), stop))
            oov = self.corpus.is_oov(slice(start, stop))
            ids = np.pad(ids, (max(-first, 0), 0), constant_values=self._eos)
            # (targets, n + 1) contexts, then the target
            window = np.lib.stride_tricks.sliding_window_view(ids, self.context + 1)
            order = np.arange(len(window)) if rng is None else rng.permutation(len(window))
            for at in range(0, len(order), size):
                batch = order[at : at + size]
                rows = window[batch]
                yield rows[:, :-1], rows[:, -1], oov[batch]

    #: Yield the batches of one training epoch, in random order.
    training_batches = batches

    def _blocks(self, rng: np.random.Generator | None = None) -> Iterator[tuple[int, int]]:
        """Yield the first position and the end of each block; shuffle blocks with a generator."""
        starts = np.arange(0, len(self), BLOCK)
        for start in starts.tolist() if rng is None else rng.permutation(starts).tolist():
            yield start, min(start + BLOCK, len(self))

    def _read(self, first: int, stop: int) -> tuple[Int32, Bool]:
        """Return the label ids of a range of tokens, and whether each is OOV."""
        tokens = slice(first, stop)
        return self.corpus.ids(tokens), self.corpus.is_oov(tokens)


class SymmetricWindows(ContextBatches):
    """Windows of up to n words on both sides of each target, within its line.

    In training, frequent words are removed at random before windows are formed, and the size of
    each window is drawn uniformly from 1 to n. In scoring, all words and full windows are used.
    ``<eos>`` is a word of its line, unless the corpus has no line ends (`Corpus.select_words`).

    Parameters
    ----------
    corpus : Corpus
    context : int
        n, the maximum number of words on each side.
    sample : float, default 0
        Sub-sampling of frequent words in `training_batches`; see `keep_probability`.
    """

    crosses_lines: ClassVar[bool] = False

    def __init__(self, corpus: Corpus, context: int, sample: float = 0.0) -> None:
        super().__init__(corpus, context)
        self.kept = keep_probability(corpus.counts, sample)
        self.training_counts *= self.kept

    def batches(self, size: int, rng: np.random.Generator | None = None) -> Iterator[Batch]:
        """Yield batches of at most `size` positions, as `ContextBatches.batches` does.

        Contexts (B, 2 n) are label ids from left to right, with -1 outside the line.
        """
        for start, stop in self._blocks(rng):
            # Windows extend over the ends of a block
            first = max(0, start - self.context)
            last = min(stop + self.context, len(self))
            order = np.arange(start - first, stop - first)
            if rng is not None:
                order = rng.permutation(order)
            reach = np.full(len(order), self.context)
            yield from self._around(*self._read_lines(first, last), order, reach, size)

    def training_batches(  # type: ignore[override]
        self, size: int, rng: np.random.Generator
    ) -> Iterator[Batch]:
        """Yield the batches of one training epoch, with sub-sampled tokens and random window sizes.

        Windows do not cross the ends of a block of 2**22 tokens.
        """
        for start, stop in self._blocks(rng):
            ids, oov, line = self._read_lines(start, stop)
            kept = rng.random(len(ids)) < self.kept[ids]
            if not kept.any():
                continue
            # Removed tokens are in no window: windows contain only the remaining tokens
            order = rng.permutation(np.count_nonzero(kept))
            reach = rng.integers(1, self.context + 1, len(order))
            yield from self._around(ids[kept], oov[kept], line[kept], order, reach, size)

    def _read_lines(self, first: int, last: int) -> tuple[Int32, Bool, Int64]:
        """Return the label ids of a range of tokens, whether each is OOV, and its line."""
        ids, oov = self._read(first, last)
        starts = self.corpus.line_starts(first, last)
        starts = starts[(starts > first) & (starts < last)]
        line = np.cumsum(np.bincount(starts - first, minlength=len(ids)))
        return ids, oov, line

    def _around(
        self, ids: Int32, oov: Bool, line: Int64, order: Int64, reach: Int64, size: int
    ) -> Iterator[Batch]:
        """Yield contexts, targets and OOV flags in batches of at most `size`.

        `order` contains the positions of the targets, and `reach` the size of each window.
        """
        n = self.context
        # (T, 2 n + 1) tokens around each token, with the token itself in the middle
        padded = np.pad(ids, n, constant_values=-1)
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * n + 1)
        # (lines,) first token and length of each line
        first = np.flatnonzero(np.diff(line, prepend=-1))
        length = np.diff(first, append=len(ids))
        # (T,) number of tokens in the same line before and after each token
        before = np.arange(len(ids)) - np.repeat(first, length)
        behind = np.repeat(length, length) - 1 - before
        steps = np.r_[-n:0, 1 : n + 1]
        for start in range(0, len(order), size):
            target = order[start : start + size]
            target_reach = reach[start : start + size]
            contexts = np.delete(around[target], n, axis=1)
            left = np.minimum(before[target], target_reach)
            right = np.minimum(behind[target], target_reach)
            contexts[(steps < -left[:, None]) | (steps > right[:, None])] = -1
            yield contexts, ids[target], oov[target]


class LineWindows(SymmetricWindows):
    """Windows for training on whole lines, word by word.

    Training batches consist of lines; lines with more than `LONGEST` tokens are cut.
    """

    def training_batches(  # type: ignore[override]
        self, size: int, rng: np.random.Generator
    ) -> Iterator[Batch]:
        """Yield batches of sub-sampled lines with about `size` tokens, in random order.

        Yields
        ------
        start : int32 array (L + 1,)
            Offsets of the lines among the tokens.
        ids : int32 array (T,)
            Label ids.
        oov : bool array (T,)
        """
        # Tokens at which batches begin: the first line start after each `size` tokens
        cuts = []
        last = -1
        for start, stop in self._blocks():
            lines = self._pieces(start, stop)
            cuts.append(lines[np.diff(lines // size, prepend=last // size) > 0])
            if len(lines):
                last = int(lines[-1])
        cut = np.concatenate([*cuts, [len(self)]])

        for i in rng.permutation(len(cut) - 1):
            first, stop = map(int, cut[i : i + 2])
            ids, oov = self._read(first, stop)
            # (L + 1,) offsets of the lines among the tokens of the batch
            line_start = np.append(self._pieces(first, stop), stop)
            line_start = line_start - line_start[0]
            probability = self.kept[ids]
            if probability.min() < 1:
                is_kept = rng.random(len(ids)) < probability
                line_start = offsets(is_kept.astype(np.int64))[line_start]
                ids = ids[is_kept]
                oov = oov[is_kept]
            if len(ids):
                yield line_start.astype(np.int32), ids, oov

    def _pieces(self, first: int, stop: int) -> Int64:
        """Return the tokens from `first` to `stop` - 1 that begin a line or a piece of a line."""
        starts = self.corpus.line_starts(first, stop)
        # (lines,) number of pieces in each line
        n_pieces = np.maximum(1, -(-np.diff(starts) // LONGEST))
        # (pieces,) number of each piece within its line, and the token at which it begins
        number = np.arange(n_pieces.sum()) - np.repeat(offsets(n_pieces)[:-1], n_pieces)
        begin: Int64 = np.repeat(starts[:-1], n_pieces) + LONGEST * number
        return np.asarray(begin[(begin >= first) & (begin < stop)])


def keep_probability(counts: Int64, sample: float) -> Float64:
    """Return the probability (V,) with which a token of each word is kept.

    The probability is ``min(1, (sqrt(f / sample) + 1) * sample / f)`` for a relative frequency f,
    as in the word2vec program; the paper has another rule. If `sample` is 0, it is 1 for all words.
    """
    if sample == 0:
        return np.ones(len(counts))
    threshold = sample * counts.sum()
    count = np.maximum(counts, 1)
    kept: Float64 = (np.sqrt(count / threshold) + 1) * threshold / count
    return np.minimum(kept, 1.0)
