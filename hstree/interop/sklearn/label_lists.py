"""Lists of labels as targets: one list per sample, of any length."""

from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

from hstree._text import brief
from hstree.errors import InputError

#: Types of a sample's labels, in addition to arrays and Series.
_LISTS = (list, tuple, set, frozenset)


def label_lists(y: Any, *, may_be_table: bool = True) -> list[Any] | None:
    """Return the lists of labels in `y`; None for a table of numbers or one class per sample.

    `y` may be a Series, a DataFrame with one column, an array or a list of lists. If
    `may_be_table`, a list of lists of equal length without text is a table. Raises InputError if
    only some samples have a list.
    """
    rows = y
    if hasattr(y, "columns") and len(y.columns) == 1:
        rows = y[y.columns[0]].to_list()
    elif hasattr(y, "to_list"):
        rows = y.to_list()  # a Series of pandas or polars
    elif isinstance(y, np.ndarray) and y.dtype == object and y.shape in ((y.size,), (y.size, 1)):
        rows = y.ravel().tolist()
    if not isinstance(rows, list | tuple):
        return None

    is_list = [isinstance(row, _LISTS) or getattr(row, "ndim", 0) == 1 for row in rows]
    if not any(is_list):
        return None
    if not all(is_list):
        at = is_list.index(False)
        raise InputError(
            f"y has {brief(rows[at])} for sample {at} and lists of labels for others; "
            "give each sample a list, [] where it has no label"
        )
    has_text = any(isinstance(label, str) for row in rows for label in row)
    lengths = set(map(len, rows))
    is_table = rows is y and not has_text and len(lengths) == 1 and lengths != {0}
    if is_table and may_be_table:
        return None
    # Items of a tensor are tensors, which are equal to no other label
    return [row if isinstance(row, _LISTS) else np.asarray(row) for row in rows]


def distinct_labels(lists: list[Any]) -> list[Any]:
    """Return the distinct labels in lists, ascending.

    Raises InputError, with the sample, if they are neither all text nor all numbers.
    """
    try:
        return sorted(set(chain.from_iterable(lists)))
    except TypeError as error:  # labels without a hash or an order
        pairs = [(sample, label) for sample, labels in enumerate(lists) for label in labels]
        kind = str if any(isinstance(label, str) for _, label in pairs) else Real
        sample, wrong = next(pair for pair in pairs if not isinstance(pair[1], kind))
        raise InputError(
            f"y has the label {brief(wrong)} for sample {sample}; labels are all text, or all "
            "numbers, and a sample without a label has the list []"
        ) from error
