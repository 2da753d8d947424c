"""Options that are numbers, in a dataclass: of the right kind, and in their range."""

from __future__ import annotations

import numbers
from dataclasses import fields
from typing import TYPE_CHECKING

from hstree.errors import OptionError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def check_numbers(options: DataclassInstance) -> None:
    """Refuse options that are no number, or no whole number where their type is "int".

    Raises
    ------
    OptionError
        Naming the first.
    """
    for field in fields(options):
        value = getattr(options, field.name)
        kind = numbers.Integral if field.type == "int" else numbers.Real
        if isinstance(value, bool) or not isinstance(value, kind):
            what = "whole number" if kind is numbers.Integral else "number"
            raise OptionError(f"{field.name} is {value!r}; it must be a {what}")


def check_ranges(options: DataclassInstance, *rules: tuple[str, bool, str]) -> None:
    """Refuse options out of their range.

    Parameters
    ----------
    options : dataclass
    *rules : (str, bool, str)
        An option's name, whether it is in its range, and that range in words.

    Raises
    ------
    OptionError
        Naming the first.
    """
    for name, legal, expected in rules:
        if not legal:
            raise OptionError(f"{name} is {getattr(options, name)}; it must be {expected}")
