"""What a builder is called, takes and offers, read from its function's signature and docstring.

The command line makes its options from these records; nothing here knows of it.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
import re
import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Union

import numpy as np

from hstree._seeds import SEED_RANGE, is_seed
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError, PluginError
from hstree.tree import Tree

#: What a builder may take as its main input, and what people call it.
INPUTS: dict[type, str] = {
    Vocabulary: "a vocabulary",
    Corpus: "a corpus",
    WordVectors: "word vectors",
}

#: The package of hstree's own builders.
OWN = "hstree"

_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}

#: Names that `build`, here or on the command line, keeps for itself.
_TAKEN = frozenset(
    [
        *("method", "input", "output", "seed", "force", "train_split_only", "quiet", "help"),
        *("vocabulary", "labels", "min_count", "max_size", "lower"),
    ]
)


@dataclass(frozen=True)
class Option:
    """One keyword-only parameter of a builder.

    Attributes
    ----------
    name : str
    type : type
        bool, int, float, str or pathlib.Path.
    default : object
    choices : tuple
        The values it may have; empty where `type` says it all.
    optional : bool
        Whether it may be None.
    help : str
        Its text in the docstring, on one line.
    """

    name: str
    type: type
    default: Any
    choices: tuple[Any, ...]
    optional: bool
    help: str

    def checked(self, value: object, method: str) -> Any:
        """Return `value` as the option's type.

        Raises
        ------
        OptionError
            When it cannot have that value.
        """
        if value is None and self.optional:
            return None
        try:
            converted = _CONVERT[self.type](value)
        except (TypeError, ValueError):
            converted = None
        fits = converted is not None and (not self.choices or converted in self.choices)
        if not fits or (self.name == "random_state" and not is_seed(converted)):
            raise OptionError(
                f"{method}: {self.name} must be {self._expected()}, not {reprlib.repr(value)}"
            )
        return converted

    def _expected(self) -> str:
        if self.name == "random_state":
            return SEED_RANGE
        if self.choices:
            expected = "one of " + ", ".join(map(repr, self.choices))
        else:
            expected = _TYPES.get(self.type, "the name of a file")
        return f"{expected} or None" if self.optional else expected


@dataclass(frozen=True)
class Builder:
    """A registered tree-building strategy.

    Attributes
    ----------
    name : str
        The method's name.
    function : callable
        From the main input, and options by keyword, to a `Tree`.
    takes : type
        `Vocabulary`, `Corpus` or `WordVectors`; `takes_text` is its name for people.
    summary : str
        The first line of the docstring.
    options : tuple of Option
    package : str
        Who provides it.
    """

    name: str
    function: Callable[..., Tree]
    takes: type
    summary: str
    options: tuple[Option, ...]
    package: str

    @property
    def takes_text(self) -> str:
        """What it takes, in words."""
        return INPUTS[self.takes]

    @classmethod
    def of(cls, name: str, function: Callable[..., Tree], package: str = OWN) -> Builder:
        """Describe a builder function.

        Raises
        ------
        PluginError
            When the function does not look like a builder.
        """

        def refuse(what: str) -> PluginError:
            return PluginError(
                f"the builder {name!r} of the package {package} cannot be used: {what}"
            )

        try:
            main, *others = inspect.signature(function).parameters.values()
            hints = typing.get_type_hints(function)
        except (TypeError, ValueError, NameError, AttributeError) as error:
            raise refuse(f"its signature cannot be read ({error})") from error
        takes = hints.get(main.name)
        if takes not in INPUTS:
            raise refuse("its first parameter must be annotated Vocabulary, Corpus or WordVectors")
        helps = _parameter_helps(function)
        options = []
        for parameter in others:
            if parameter.kind is not parameter.KEYWORD_ONLY or parameter.name in _TAKEN:
                raise refuse(f"{parameter.name!r} must be keyword-only, and not a name of build's")
            if parameter.default is parameter.empty:
                raise refuse(f"the option {parameter.name!r} needs a default")
            found = _option_type(hints.get(parameter.name))
            if found is None:
                raise refuse(
                    f"the option {parameter.name!r} must be annotated bool, int, float, str, Path "
                    "or Literal, perhaps with None"
                )
            text = helps.get(parameter.name, "")
            option = Option(parameter.name, found[0], parameter.default, *found[1:], text)
            try:
                option.checked(option.default, name)
            except OptionError as error:
                raise refuse(f"by default, {error}") from error
            options.append(option)
        return cls(name, function, takes, _summary(function), tuple(options), package)

    def effective(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the value of every option: as given, checked, or by default.

        Raises
        ------
        OptionError
            For an unknown name, or a value that an option cannot have.
        """
        names = [option.name for option in self.options]
        for name in given:
            if name not in names:
                close = get_close_matches(name, names, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                known = f"it has {', '.join(names)}" if names else "it has none"
                raise OptionError(f"{self.name} has no option {name!r}; {hint}{known}")
        return {
            option.name: option.checked(given.get(option.name, option.default), self.name)
            for option in self.options
        }


def _option_type(hint: Any) -> tuple[type, tuple[Any, ...], bool] | None:
    """Return an annotation's type, choices, and whether it may be None; None if unsupported."""
    optional = False
    if typing.get_origin(hint) in (Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not types.NoneType]
        if len(members) != 1 or len(members) == len(typing.get_args(hint)):
            return None
        hint, optional = members[0], True
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        kinds = {type(choice) for choice in choices}
        return (kinds.pop(), choices, optional) if kinds in ({str}, {int}) else None
    return (hint, (), optional) if hint in _CONVERT else None


def _as_bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _as_int(value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise TypeError
    return operator.index(value)


def _as_float(value: Any) -> float:
    if isinstance(value, bool | np.bool_ | str | bytes) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _as_path(value: Any) -> Path:
    return Path(os.fsdecode(value))


_CONVERT: dict[Any, Callable[[Any], Any]] = {
    bool: _as_bool,
    int: _as_int,
    float: _as_float,
    str: _as_text,
    Path: _as_path,
}


def _summary(function: Callable[..., Tree]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _parameter_helps(function: Callable[..., Tree]) -> dict[str, str]:
    """Return the text of each parameter in a numpydoc docstring, on one line."""
    doc = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.M | re.S)
    helps: dict[str, str] = {}
    names: list[str] = []
    for line in section[1].splitlines() if section else []:
        if line[:1].strip():
            names = [name.strip() for name in line.partition(":")[0].split(",")]
            continue
        for name in names:
            helps[name] = f"{helps.get(name, '')} {line.strip()}".strip().replace("``", "")
    return helps
