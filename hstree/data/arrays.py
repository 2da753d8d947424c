"""Arrays and names as other libraries have them: lists, tensors, Series, DataFrames.

None of these libraries is imported: what can be detached is a tensor, and an index that is no
method is that of a Series or a DataFrame.
"""

from collections.abc import Mapping, Sequence, ValuesView
from numbers import Integral, Real
from typing import Any

import numpy as np

from hstree._arrays import Array, refuse_masked
from hstree._text import brief, one_line
from hstree.errors import FileFormatError, InputError
from hstree.tree.names import class_name, whole_number
from hstree.tree.row_numbers import RowNumbers


def as_array(values: Any, what: str) -> Array:
    """Return numbers as an array, without a copy where they are one; `what` is for messages.

    Raises InputError when they are none, such as rows of different lengths.
    """
    refuse_masked(values, what)
    if hasattr(values, "detach"):  # a tensor, which may be on a GPU or have a gradient
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values  # NumPy lacks it
    try:
        array = np.asarray(list(values) if isinstance(values, ValuesView) else values)
    except ValueError as error:
        raise InputError(f"{what} of different lengths; all rows need the same") from error
    except TypeError as error:
        raise InputError(f"{what} are no array: {one_line(error)}") from error
    if array.dtype == object and array.size and all(map(_is_number, array.flat)):
        array = np.array(array.tolist())  # of a column that may be empty, of whole numbers or not
    return array


def as_table(values: Any, what: str) -> Any:
    """Return a table of real numbers as an array (n, columns), or sparse as it is.

    The columns of a DataFrame may be of nullable types. Raises InputError, which calls the values
    `what`, when they are no such table.
    """
    table = values if hasattr(values, "tocsr") else as_array(values, what)
    if table.dtype == object and table.size and all(isinstance(cell, bool) for cell in table.flat):
        table = table.astype(bool)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InputError(
            f"{what} has the shape {table.shape} and the type {table.dtype}; give a table of real "
            "numbers, with a row for each sample"
        )
    return table


def count_axes(values: Any) -> tuple[int, bool]:
    """Return the number of axes of an array, or of lists, of numbers, and whether these are whole.

    (0, False) for anything else. The first number of a list decides.
    """
    if isinstance(values, str | bytes):
        return 0, False
    # Tensors and arrays say how many axes they have
    if hasattr(values, "detach"):
        return values.ndim, not values.is_floating_point()
    if hasattr(values, "columns"):
        return len(values.shape), False  # a DataFrame, which `numpy.asarray` may copy
    if hasattr(values, "__array__"):
        values = np.asarray(values)
        if values.dtype.kind not in "OU" or not values.ndim:
            is_real = values.dtype.kind in "iuf"
            return values.ndim * is_real, is_real and values.dtype.kind != "f"
    if not isinstance(values, Sequence | ValuesView | np.ndarray):
        return 0, False
    # Lists are as deep as their first items
    first = next(iter(values), None)
    if _is_number(first):
        return 1, isinstance(first, Integral)
    axes, is_whole = count_axes(first)
    return axes and axes + 1, is_whole


def get_index(values: Any) -> Any:
    """Return the index of a Series or a DataFrame, or None for other values."""
    index = getattr(values, "index", None)
    return None if callable(index) else index


def is_no_list(value: object) -> bool:
    """Return whether a value is one text, has no order, as a set, or cannot be iterated over."""
    if isinstance(value, str | bytes | Mapping | set | frozenset):
        return True
    return not hasattr(value, "__iter__")


def as_words(words: Any, what: str = "label") -> tuple[str, ...] | RowNumbers:
    """Return names as text, whole numbers of any type as `class_name` names them.

    `what` says what one of them is. Raises InputError when they have no order, as a set, or one is
    neither text nor a whole number.
    """
    if is_no_list(words):
        kind = type(words).__name__
        raise InputError(f"the {what}s are of type {kind}; give a list, in the order of the rows")
    if isinstance(words, RowNumbers):
        return words
    # Nearly always all are text, which one look at their types tells
    listed = tuple(words.tolist() if hasattr(words, "tolist") else words)
    if set(map(type, listed)) <= {str}:
        return listed
    for at, word in enumerate(listed):
        if not isinstance(word, str) and whole_number(word) is None:
            wrong = f"{what} {at} is {brief(word)}"
            raise InputError(f"{wrong}; {what}s must be text or whole numbers")
    return tuple(map(class_name, listed))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_tensor(
    tensor: Array | None,
    shape: tuple[int, ...],
    what: str,
    dtype: Any = np.float32,
    *,
    may_be_infinite: bool = False,
) -> None:
    """Refuse a tensor of a saved model that is missing, of another type or shape, or not finite.

    Raises FileFormatError, which calls it `what`.
    """
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        got = "nothing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
        raise FileFormatError(f"{what} must be {np.dtype(dtype)} of shape {shape}; found {got}")
    if not (~np.isnan(tensor) if may_be_infinite else np.isfinite(tensor)).all():
        raise FileFormatError(f"{what} holds numbers that are not finite; train the model again")
