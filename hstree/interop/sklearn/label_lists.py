"""Lists of labels as targets: one list per sample, of any length."""

from typing import Any

import numpy as np

from hstree._text import brief
from hstree.errors import InputError

#: Types of a sample's labels.
_LISTS = (list, tuple, set, frozenset, np.ndarray)


def label_lists(y: Any) -> list[Any] | None:
    """Return the lists of labels in `y`; None where it is a table of numbers or has classes.

    `y` has lists if it is a Series or an array of lists, or a list of lists that differ in length
    or hold text. Raises InputError when some samples have a list and others not, or all lists are
    empty.
    """
    rows = y
    if hasattr(y, "to_list"):
        rows = y.to_list()  # of a Series of pandas or polars
    elif isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1:
        rows = y.tolist()
    if not isinstance(rows, list | tuple):
        return None

    is_list = [isinstance(row, _LISTS) for row in rows]
    if not any(is_list):
        return None
    if not all(is_list):
        at = is_list.index(False)
        raise InputError(
            f"y has {brief(rows[at])} for sample {at} and lists of labels for others; "
            "give each sample a list, [] where it has no label"
        )
    if not any(len(row) for row in rows):
        raise InputError("no sample has a label; every list of y is empty")
    has_text = any(isinstance(label, str) for row in rows for label in row)
    is_table = rows is y and not has_text and len(set(map(len, rows))) == 1
    return None if is_table else list(rows)
