"""Bands of labels by frequency, for layers with shorter vectors for rare words."""

from collections.abc import Sequence

import numpy as np

from hstree._arrays import Int64, Integer
from hstree.errors import OptionError


class Bands:
    """Labels in bands of descending frequency, in the order of the layer's rows (logit columns).

    Labels are split at ranks of their counts (V,), ties by label id. Within a band, labels ascend:
    in a vocabulary sorted by count, the column of a label is its id.
    """

    def __init__(self, counts: Integer, cutoffs: Sequence[int]) -> None:
        by_count = np.argsort(-np.asarray(counts, np.int64), kind="stable")
        label = np.concatenate([np.sort(band) for band in np.split(by_count, cutoffs)])
        #: (V,) label of each column, and column of each label; whether all columns equal label ids
        self.label: Int64 = label
        self.column: Int64 = np.argsort(label)
        self.is_identity = bool(np.array_equal(label, np.arange(len(label))))
        #: (n + 1,) first column of each band, then V
        self.start: Int64 = np.array([0, *cutoffs, len(label)], np.int64)


def check_cutoffs(cutoffs: Sequence[int], n_labels: int, option: str, value: str) -> None:
    """Raise OptionError unless cut-offs ascend, from 1 to below the number of labels."""
    if any(a >= b for a, b in zip([0, *cutoffs], cutoffs, strict=False)):
        reason = "give ranks of words that ascend, from 1"
    elif cutoffs and cutoffs[-1] >= n_labels:
        reason = f"the last must be below the number of words, {n_labels:,}"
    else:
        return
    raise OptionError.about(option, f"is {value!r}, whose cut-offs do not fit: {reason}")
