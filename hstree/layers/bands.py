"""Bands of labels by frequency, for layers that spend fewer numbers on rare words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hstree._typing import Array, Int64, Integer
from hstree.errors import OptionError


@dataclass(frozen=True)
class Bands:
    """Labels in bands of falling frequency, in the order of the layer's rows (columns of logits).

    Labels of one band ascend, so that in a vocabulary sorted by count a label's column is its id.

    Attributes
    ----------
    start : int64 array (n + 1,)
        First column of each band, and V.
    column : int64 array (V,)
        Column of each label.
    label : int64 array (V,)
        Label of each column.
    is_identity : bool
        Whether every label's column is its id.
    """

    start: Int64
    column: Int64
    label: Int64
    is_identity: bool

    @classmethod
    def of(cls, counts: Integer, cutoffs: Sequence[int]) -> Bands:
        """Split labels at some ranks of their counts (V,), ties by label id."""
        by_count = np.argsort(-np.asarray(counts, np.int64), kind="stable")
        label = np.concatenate([np.sort(band) for band in np.split(by_count, cutoffs)])
        column = np.empty_like(label)
        column[label] = np.arange(len(label))
        start = np.array([0, *cutoffs, len(label)], np.int64)
        return cls(start, column, label, bool(np.array_equal(label, np.arange(len(label)))))

    def by_label(self, values: Array) -> Array:
        """Reorder values by column (B, V) to values by label (B, V)."""
        return values if self.is_identity else values.take(self.column, axis=1)


def check_cutoffs(cutoffs: Sequence[int], n_labels: int, option: str, value: str) -> None:
    """Refuse cut-offs that do not ascend from 1 to below the number of labels.

    Raises
    ------
    OptionError
    """
    if any(a >= b for a, b in zip([0, *cutoffs], cutoffs, strict=False)):
        reason = "give ranks of words that ascend, from 1"
    elif cutoffs and cutoffs[-1] >= n_labels:
        reason = f"the last must be below the number of words, {n_labels:,}"
    else:
        return
    raise OptionError.about(option, f"is {value!r}, whose cut-offs do not fit: {reason}")
