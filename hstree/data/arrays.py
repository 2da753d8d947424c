"""Conversion of arrays and names from other libraries: lists, tensors, Series, DataFrames.

None of these libraries is imported: a value with a method `detach` is a tensor, and a value with an
attribute `index` that is not a method is a Series or a DataFrame.
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
    """Convert numbers to an array; return an array without a copy. `what` is for messages.

    Raises InputError if the values are not an array, such as rows of different lengths.
    """
    refuse_masked(values, what)
    if hasattr(values, "detach"):  # a tensor, which may be on a GPU or have a gradient
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values  # NumPy lacks it
    try:
        array = np.asarray(list(values) if isinstance(values, ValuesView) else values)
    except ValueError as error:
        raise InputError(
            f"{what} have rows of different lengths; give rows of one length"
        ) from error
    except TypeError as error:
        raise InputError(f"{what} cannot be converted to an array: {one_line(error)}") from error
    if array.dtype == object and array.size and all(map(_is_number, array.flat)):
        array = np.array(array.tolist())  # numbers that were stored as objects
    return array


def as_table(values: Any, what: str) -> Any:
    """Convert a table of real numbers to an array (n, columns); return a sparse table unchanged.

    The columns of a DataFrame may have nullable types. Raises InputError, which calls the values
    `what`, for anything else.
    """
    table = values if hasattr(values, "tocsr") else as_array(values, what)
    if table.dtype == object and table.size and all(isinstance(cell, bool) for cell in table.flat):
        table = table.astype(bool)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise InputError(
            f"{what} has the shape {table.shape} and the type {table.dtype}; give a table of real "
            "numbers with one row per sample"
        )
    return table


def count_axes(values: Any) -> tuple[int, bool]:
    """Return the number of axes of an array or nested list, and whether its numbers are whole.

    Returns (0, False) for anything else. In lists, the first number determines the type.
    """
    if isinstance(values, str | bytes):
        return 0, False
    # Tensors and arrays know their number of axes
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
    # The depth of a list is that of its first item
    first = next(iter(values), None)
    if _is_number(first):
        return 1, isinstance(first, Integral)
    axes, is_whole = count_axes(first)
    return axes and axes + 1, is_whole


def get_index(values: Any) -> Any:
    """Return the index of a Series or a DataFrame; None for other values."""
    index = getattr(values, "index", None)
    return None if callable(index) else index


def is_no_list(value: object) -> bool:
    """Return whether a value is one text, is unordered such as a set, or cannot be iterated."""
    if isinstance(value, str | bytes | Mapping | set | frozenset):
        return True
    return not hasattr(value, "__iter__")


def as_words(words: Any, what: str = "label") -> tuple[str, ...] | RowNumbers:
    """Return names as text; whole numbers are converted by `class_name`.

    `what` is the word for one of them in messages. Raises InputError if the names are unordered,
    such as a set, or if one is neither text nor a whole number.
    """
    if is_no_list(words):
        kind = type(words).__name__
        raise InputError(f"the {what}s are of type {kind}; give a list, in the order of the rows")
    if isinstance(words, RowNumbers):
        return words
    # Usually all names are text, which a check of their types shows quickly
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
    """Check the presence, type, shape and finiteness of a tensor in a saved model.

    Raises FileFormatError, which calls the tensor `what`.
    """
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        got = "nothing" if tensor is None else f"{tensor.dtype} of shape {tensor.shape}"
        raise FileFormatError(f"{what} must be {np.dtype(dtype)} of shape {shape}; found {got}")
    if not (~np.isnan(tensor) if may_be_infinite else np.isfinite(tensor)).all():
        raise FileFormatError(f"{what} contains numbers that are not finite; train the model again")
