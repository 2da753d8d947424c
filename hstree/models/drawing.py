"""Starting word vectors that do not depend on how a tree orders its labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hstree._typing import Array


def in_sorted_order(words: Sequence[str], drawn: Array) -> Array:
    """Give the drawn rows to the words in sorted order; return them in the words' own order.

    So two trees over the same words start from the same model however they order their labels.
    """
    rows = np.empty_like(drawn)
    rows[sorted(range(len(words)), key=words.__getitem__)] = drawn
    return rows
