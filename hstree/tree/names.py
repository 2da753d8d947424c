"""Conversion of values to the names of labels and classes.

The same class may be 10 in one column, 10.0 in a column with missing values, and "10" in a file.
All three are the label "10".
"""

import math
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from hstree._text import brief
from hstree.errors import InputError

#: Maximum number of digits of a whole number that is a name; every float has fewer.
MOST_DIGITS = 400
_LARGEST = 10**MOST_DIGITS


def _unboxed(value: Any) -> Any:
    """Return the value of an array or a tensor without axes; return other values unchanged."""
    is_boxed = getattr(value, "ndim", None) == 0 and not isinstance(value, np.generic)
    return value.tolist() if is_boxed else value  # None if it is masked


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NaT, pandas.NA, masked, or an empty string."""
    if isinstance(value, str):
        return not value
    value = _unboxed(value)
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    is_of_pandas = type(value).__name__ in ("NAType", "NaTType")  # without importing pandas
    return value is None or is_of_pandas


def whole_number(value: Any) -> int | None:
    """Return a value of any numeric type as an int if it is a whole number; otherwise None."""
    # Common types first, since columns are long
    if type(value) is int:
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    value = _unboxed(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal) or is_missing(value):
        return None
    if isinstance(value, float | np.floating | Decimal) and not math.isfinite(value):
        return None
    number = int(value)  # type: ignore[arg-type]  # every Real has a whole part
    return number if value == number else None


def class_name(value: Any) -> str:
    """Return the name of a class as a plain str.

    Whole numbers of any type are named by their digits. Raises InputError when the value is not
    text, a number or a date, such as a missing value or a list.

    Examples
    --------
    >>> [class_name(value) for value in (10, 10.0, np.float32(10), "10", np.str_("a"), 2.5, True)]
    ['10', '10', '10', '10', 'a', '2.5', 'True']
    """
    if isinstance(value, str):
        return str.__str__(value)  # converts subclasses, such as numpy.str_
    number = whole_number(value)
    if number is not None:
        if abs(number) >= _LARGEST:
            raise InputError(f"a number of more than {MOST_DIGITS} digits is no name; give text")
        return str(number)
    value = _unboxed(value)
    if isinstance(value, str | bool | np.bool_):
        return str(value)
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(float(value))
    if isinstance(value, np.datetime64) and not is_missing(value):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, date) and not is_missing(value):
        # Include the time of day, unless it is midnight
        if isinstance(value, datetime) and value.time() != time():
            return value.isoformat(" ")
        return value.isoformat()[:10]
    raise InputError(f"{brief(value)} is no name; names must be text, numbers or dates")


def class_names(values: Iterable[Any], what: str) -> list[str]:
    """Return the names of classes.

    Raises InputError as `class_name` does; the message has `what` and the position of the value.
    """
    names = []
    for at, value in enumerate(values):
        try:
            names.append(class_name(value))
        except InputError as error:
            raise InputError(f"{what} {at}: {error}") from error
    return names
