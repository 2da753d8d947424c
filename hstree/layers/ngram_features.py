"""Which n-gram features a tree has: pairs of the words before a target, and a weight row.

A text has a feature for the last words of a context and a row, if the node of that row decided
after them: for a binary node its row, for others that of the child taken. All features are one
sorted array of keys, so that those of a context, and those of a context at a node, are a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from hstree import progress
from hstree._arrays import Array, Int32, Int64, Integer, offsets, ranges, segment_ids
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError
from hstree.kernels import compiled
from hstree.ngrams.counts import find
from hstree.tree.codes import Codes
from hstree.tree.paths import path_decisions

#: Positions of a text read at a time.
BLOCK = 1 << 18
#: N-grams whose codes are expanded at a time.
GRAMS_TOGETHER = 1 << 18


@dataclass(frozen=True)
class NgramFeatures:
    """The features of a text: C contexts, of 1 to n words, and F pairs of a context and a row."""

    #: (C,) keys of the contexts, ``shorter * V + word``: `word` is the farthest word, `shorter` the
    #: number of the context of the others, 0 where there is none; sorted within a length
    contexts: Int64
    #: (n + 1,) those of i + 1 words are ``contexts[start[i]:start[i + 1]]``; their index is their
    #: number
    start: Int64
    keys: Int64  #: (F,) sorted, ``context * R + row``
    n_labels: int  #: V
    n_rows: int  #: R

    @classmethod
    def empty(cls, words: int, n_labels: int, n_rows: int) -> Self:
        """Return the features of an empty text."""
        none = np.empty(0, np.int64)
        return cls(none, np.zeros(words + 1, np.int64), none, n_labels, n_rows)

    @classmethod
    def from_text(cls, train: ContextBatches, codes: Codes, words: int, min_count: int) -> Self:
        """Return the features of the n-grams of a text that occur `min_count` times.

        O(T log T) for each number of words and T tokens, and O(G depth) memory for G n-grams.
        """
        n_labels = codes.tree.n_labels
        n_rows = int(codes.tree.row_start[-1])
        contexts = [np.empty(0, np.int64)]
        keys = [np.empty(0, np.int64)]
        start = [0]
        target = _column(train, None)
        # (T,) number of each position's context, -1 where it has no features
        number = np.zeros(len(target), np.int64)
        with progress.task("n-gram features", total=words, unit="lengths") as task:
            for length in range(1, min(words, train.context) + 1):
                # Extend the contexts that have features by the next word
                known = np.flatnonzero(number >= 0)
                farthest = _column(train, -length)[known]
                longer = number[known] * n_labels + farthest
                distinct, occurrence = np.unique(longer, return_inverse=True)

                # Keep the n-grams of context and target that are frequent
                grams, count = np.unique(occurrence * n_labels + target[known], return_counts=True)
                gram_context, label = np.divmod(grams[count >= min_count], n_labels)
                used = _first_of_runs(gram_context)  # ascending, as the n-grams are

                # Number their contexts
                context_number = np.full(len(distinct), -1)
                context_number[used] = start[-1] + np.arange(len(used))
                number[known] = context_number[occurrence]
                contexts.append(distinct[used])
                start.append(start[-1] + len(used))

                # Whole contexts at a time, so that keys ascend from one part to the next
                cuts = np.searchsorted(gram_context, gram_context[GRAMS_TOGETHER::GRAMS_TOGETHER])
                for part in map(slice, [0, *cuts], [*cuts, len(label)]):
                    numbers = context_number[gram_context[part]]
                    keys.append(_keys(numbers, label[part], codes, n_rows))
                task.advance()
        start += [start[-1]] * (words + 1 - len(start))
        return cls(
            contexts=np.concatenate(contexts),
            start=np.array(start),
            keys=np.concatenate(keys),
            n_labels=n_labels,
            n_rows=n_rows,
        )

    @cached_property
    def context_start(self) -> Int64:
        """int64 array (C + 1,): offsets of each context among the features."""
        return np.searchsorted(self.keys, np.arange(len(self.contexts) + 1) * self.n_rows)

    @cached_property
    def rows(self) -> Int32:
        """int32 array (F,): the row of each feature."""
        return (self.keys % self.n_rows).astype(np.int32)

    def numbers(self, contexts: Integer) -> Int64:
        """Return the numbers (B, n) of the last 1 to n words of contexts; -1 if there is none."""
        fast = compiled()
        if fast is not None:
            number: Int64 = fast.context_numbers(contexts, self.contexts, self.start, self.n_labels)
            return number
        n_lengths = len(self.start) - 1
        number = np.full((len(contexts), n_lengths), -1)
        # Contexts whose last i words are known, and the number of these words
        known = np.arange(len(contexts))
        shorter = np.zeros(len(contexts), np.int64)
        for i in range(min(n_lengths, contexts.shape[1])):
            # A key is the number of the last i words, and the word before them
            keys = self.contexts[self.start[i] : self.start[i + 1]]
            index = find(keys, shorter * self.n_labels + contexts[known, -1 - i])
            known = known[index >= 0]
            shorter = index[index >= 0] + self.start[i]
            number[known, i] = shorter
        return number

    def at_pairs(self, number: Int64, row: Integer) -> tuple[Int64, Int64]:
        """Return the features of pairs (P,) of contexts (P, n) and rows: pair and feature."""
        pairs = [np.empty(0, np.int64)]
        features = [np.empty(0, np.int64)]
        for context in number.T:  # of one length
            known = np.flatnonzero(context >= 0)
            feature = find(self.keys, context[known] * self.n_rows + row[known])
            pairs.append(known[feature >= 0])
            features.append(feature[feature >= 0])
        return np.concatenate(pairs), np.concatenate(features)

    def in_range(
        self, number: Int64, first: int, stop: int
    ) -> Iterator[tuple[Int64, Int64, Int64]]:
        """Yield the features of contexts (B, n) and the rows from `first` to `stop`, by words.

        Yields, for the last word, for the last two, and so on: which context, the row, and the
        feature. No pair of a context and a row occurs twice in one.
        """
        for context in number.T:  # of one length
            known = np.flatnonzero(context >= 0)
            key = context[known] * self.n_rows
            begin = np.searchsorted(self.keys, key + first)
            start = offsets(np.searchsorted(self.keys, key + stop) - begin)
            feature = ranges(begin, start)
            item = segment_ids(start)
            yield known[item], self.keys[feature] - key[item], feature

    def tables(self) -> dict[str, Int64]:
        """Return the arrays by the names that a saved model gives them."""
        return {"ngram_contexts": self.contexts, "ngram_start": self.start, "ngram_keys": self.keys}

    def restored(self, tables: Mapping[str, Array]) -> Self:
        """Return the features that `tables` returned, for the same labels, rows and words.

        Raises FileFormatError when an array is missing or breaks a rule of the class.
        """
        none: Any = np.zeros(0)
        contexts, start, keys = (tables.get(name, none) for name in self.tables())
        if any(array.dtype != np.int64 or array.ndim != 1 for array in (contexts, start, keys)):
            raise FileFormatError(
                "an array of n-gram features of a saved layer is missing, or not a row of integers"
            )
        # Offsets ascend; comparisons, as differences could wrap around
        is_whole = (
            len(start) == len(self.start)
            and (start[0], start[-1]) == (0, len(contexts))
            and bool((start[1:] >= start[:-1]).all())
        )
        if is_whole:
            # Contexts of each length ascend, and extend those that are one word shorter
            length = segment_ids(start)
            shorter = contexts // self.n_labels
            is_whole = bool(
                (shorter >= np.array([0, *start[:-2]])[length]).all()
                and (shorter < np.array([1, *start[1:-1]])[length]).all()
                and ((contexts[1:] > contexts[:-1]) | (length[1:] > length[:-1])).all()
                and (keys[1:] > keys[:-1]).all()
                and ((keys >= 0) & (keys < len(contexts) * self.n_rows)).all()
            )
        if not is_whole:
            raise FileFormatError(
                "the n-gram features of a saved layer are damaged; train it again"
            )
        return replace(self, contexts=contexts, start=start, keys=keys)


@dataclass(frozen=True)
class ContextFeatures:
    """N-gram features of the contexts of a batch, with their weights."""

    table: NgramFeatures
    number: Int64  #: (B, n) contexts of each item, by length; -1 where the table has none
    weight: Array  #: (F,)

    def select(self, items: Any) -> ContextFeatures:
        """Return the features of some of the items."""
        return replace(self, number=self.number[items])

    def at_pairs(self, item: Integer, row: Integer) -> tuple[Int64, Int64]:
        """Return the features of pairs (P,) of an item and a weight row: pair and feature."""
        return self.table.at_pairs(self.number[item], row)

    def at_rows(self, item: Integer, first: int, stop: int) -> tuple[Int64, Int64, Int64]:
        """Return the features of items (n,) at the rows from `first` to `stop`.

        Which of the items, the row counted from `first`, and the feature, arrays (F,).
        """
        parts = list(self.table.in_range(self.number[item], first, stop))
        none = np.empty(0, np.int64)
        position, row, feature = (
            np.concatenate([none, *(part[i] for part in parts)]) for i in range(3)
        )
        return position, row - first, feature

    def add_to_logits(self, logits: Array) -> None:
        """Add the weights of the features to the logits (B, R) of all rows."""
        for item, row, feature in self.table.in_range(self.number, 0, logits.shape[1]):
            logits[item, row] += self.weight[feature]

    def arrays(self) -> tuple[Int64, Int64, Int32, Array]:
        """Return the arrays of the compiled functions' `Features`, in their order."""
        return self.number, self.table.context_start, self.table.rows, self.weight


def _column(train: ContextBatches, back: int | None) -> Int64:
    """Return the targets (T,) of a text, or the words that are so far before them."""
    columns = [np.empty(0, np.int64)]
    for contexts, targets, _ in train.batches(BLOCK):
        columns.append((targets if back is None else contexts[:, back]).astype(np.int64))
    return np.concatenate(columns)


def _keys(number: Int64, target: Int64, codes: Codes, n_rows: int) -> Int64:
    """Return the keys of the features of n-grams: those of the decisions on the target's codes."""
    decisions, _ = path_decisions(codes, target)
    row = decisions.row + np.where(decisions.width > 2, decisions.branch, 0)
    return _first_of_runs(np.sort(number[decisions.item] * n_rows + row))


def _first_of_runs(ascending: Int64) -> Int64:
    """Return the different numbers of an ascending array; ten times as fast as `np.unique`."""
    return ascending[np.flatnonzero(np.diff(ascending, prepend=-1))]
