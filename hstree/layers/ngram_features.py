"""N-gram features of a tree: pairs of a context (the words before a target) and a weight row.

A text has a feature for a context and a row if the node of that row makes a decision after the
context. For a binary node, it is the row of the node; for other nodes, the row of the chosen child.
All features are in one sorted array of keys. The features of a context, and the features of a
context at a node, are therefore a range.
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

#: Number of text positions that are read at a time.
BLOCK = 1 << 18
#: Number of n-grams whose codes are expanded at a time.
GRAMS_TOGETHER = 1 << 18


@dataclass(frozen=True)
class NgramFeatures:
    """N-gram features of a text: C contexts with 1 to n words, and F pairs of context and row."""

    #: (C,) keys of the contexts, ``shorter * V + word``, sorted within a length: `word` is the
    #: farthest word, and `shorter` is the number of the context without it (0 for a single word)
    contexts: Int64
    #: (n + 1,) contexts with i + 1 words are ``contexts[start[i]:start[i + 1]]``; the index of a
    #: context is its number
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
        """Return the features of the n-grams that occur at least `min_count` times in a text.

        O(T log T) for T tokens and each context length; O(G depth) memory for G n-grams.
        """
        n_labels = codes.tree.n_labels
        n_rows = int(codes.tree.row_start[-1])
        contexts = [np.empty(0, np.int64)]
        keys = [np.empty(0, np.int64)]
        start = [0]
        target = _column(train, None)
        # (T,) number of the context at each position, -1 if it has no features
        number = np.zeros(len(target), np.int64)
        with progress.task("n-gram features", total=words, unit="lengths") as task:
            for length in range(1, min(words, train.context) + 1):
                # Extend the contexts that have features by the next word
                known = np.flatnonzero(number >= 0)
                farthest = _column(train, -length)[known]
                longer = number[known] * n_labels + farthest
                distinct, occurrence = np.unique(longer, return_inverse=True)

                # Keep frequent n-grams of a context and a target
                grams, count = np.unique(occurrence * n_labels + target[known], return_counts=True)
                gram_context, label = np.divmod(grams[count >= min_count], n_labels)
                used = _first_of_runs(gram_context)  # ascending, as the n-grams are

                # Number their contexts
                context_number = np.full(len(distinct), -1)
                context_number[used] = start[-1] + np.arange(len(used))
                number[known] = context_number[occurrence]
                contexts.append(distinct[used])
                start.append(start[-1] + len(used))

                # Process whole contexts at a time, so that keys ascend from part to part
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
        """Offsets of the contexts in the features, an int64 array (C + 1,)."""
        return np.searchsorted(self.keys, np.arange(len(self.contexts) + 1) * self.n_rows)

    @cached_property
    def rows(self) -> Int32:
        """Row of each feature, an int32 array (F,)."""
        return (self.keys % self.n_rows).astype(np.int32)

    def numbers(self, contexts: Integer) -> Int64:
        """Return the context numbers (B, n) of the last 1 to n words; -1 for unknown contexts."""
        fast = compiled()
        if fast is not None:
            number: Int64 = fast.context_numbers(contexts, self.contexts, self.start, self.n_labels)
            return number
        n_lengths = len(self.start) - 1
        number = np.full((len(contexts), n_lengths), -1)
        # Items whose last i words are a context, and the number of that context
        known = np.arange(len(contexts))
        shorter = np.zeros(len(contexts), np.int64)
        for i in range(min(n_lengths, contexts.shape[1])):
            # A key consists of the number of the last i words, and the word before them
            keys = self.contexts[self.start[i] : self.start[i + 1]]
            index = find(keys, shorter * self.n_labels + contexts[known, -1 - i])
            known = known[index >= 0]
            shorter = index[index >= 0] + self.start[i]
            number[known, i] = shorter
        return number

    def at_pairs(self, number: Int64, row: Integer) -> tuple[Int64, Int64]:
        """Return the features of pairs (P,) of contexts (P, n) and rows, as (pair, feature)."""
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
        """Yield the features of contexts (B, n) in the rows from `first` to `stop`, by length.

        Yields three arrays for the last word, three for the last two words, and so on: context, row
        and feature. A pair of a context and a row occurs at most once per length.
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
        """Return the arrays, by their names in a saved model."""
        return {"ngram_contexts": self.contexts, "ngram_start": self.start, "ngram_keys": self.keys}

    def restored(self, tables: Mapping[str, Array]) -> Self:
        """Restore the features from `tables`, for the same labels, rows and words.

        Raises FileFormatError when an array is missing or violates a rule of the class.
        """
        none: Any = np.zeros(0)
        contexts, start, keys = (tables.get(name, none) for name in self.tables())
        if any(array.dtype != np.int64 or array.ndim != 1 for array in (contexts, start, keys)):
            raise FileFormatError(
                "an array of n-gram features of a saved layer is missing, or is not a vector of "
                "integers; train the layer again"
            )
        # Offsets ascend (compared, not subtracted, since differences could overflow)
        is_whole = (
            len(start) == len(self.start)
            and (start[0], start[-1]) == (0, len(contexts))
            and bool((start[1:] >= start[:-1]).all())
        )
        if is_whole:
            # Contexts of each length ascend, and extend contexts that are one word shorter
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
    number: Int64  #: (B, n) context of each item, by length; -1 if it is not in the table
    weight: Array  #: (F,)

    def select(self, items: Any) -> ContextFeatures:
        """Return the features of some of the items."""
        return replace(self, number=self.number[items])

    def at_pairs(self, item: Integer, row: Integer) -> tuple[Int64, Int64]:
        """Return the features of pairs (P,) of an item and a weight row, as (pair, feature)."""
        return self.table.at_pairs(self.number[item], row)

    def at_rows(self, item: Integer, first: int, stop: int) -> tuple[Int64, Int64, Int64]:
        """Return the features of items (n,) in the rows from `first` to `stop`.

        Returns three arrays (F,): index of the item, row counted from `first`, and feature.
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
        """Return the arrays for `Features` of the compiled functions, in order."""
        return self.number, self.table.context_start, self.table.rows, self.weight


def _column(train: ContextBatches, back: int | None) -> Int64:
    """Return the targets (T,) of a text, or the words at index `back` of their contexts."""
    columns = [np.empty(0, np.int64)]
    for contexts, targets, _ in train.batches(BLOCK):
        columns.append((targets if back is None else contexts[:, back]).astype(np.int64))
    return np.concatenate(columns)


def _keys(number: Int64, target: Int64, codes: Codes, n_rows: int) -> Int64:
    """Return the feature keys of n-grams: one for each decision on the codes of the target."""
    decisions, _ = path_decisions(codes, target)
    row = decisions.row + np.where(decisions.width > 2, decisions.branch, 0)
    return _first_of_runs(np.sort(number[decisions.item] * n_rows + row))


def _first_of_runs(ascending: Int64) -> Int64:
    """Return the distinct numbers of an ascending array; ten times as fast as `np.unique`."""
    return ascending[np.flatnonzero(np.diff(ascending, prepend=-1))]
