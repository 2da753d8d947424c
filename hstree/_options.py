"""Descriptions and checks of the options of builders, output layers and models.

The keyword options of a function, a class or a dataclass are read from its annotations and its
numpydoc docstring as `Option` records. Command lines, keys and checks use these records. msgspec
converts values and checks ranges, which are part of the annotation:
``epsilon: Annotated[float, Meta(ge=0, le=0.5)] = 0.0``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
import re
import shlex
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import msgspec
import msgspec.inspect as types
import numpy as np
from msgspec import Meta

from hstree._text import brief
from hstree.errors import OptionError

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Whole numbers must be below this, as in int64 arrays.
_LARGEST = 1 << 63
#: Types of options, with their descriptions.
_TYPES: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "the name of a file",
}
#: Built-in types by msgspec's classes of types.
_BUILTIN: dict[Any, Any] = {
    types.BoolType: bool,
    types.IntType: int,
    types.FloatType: float,
    types.StrType: str,
}
#: Sections of a numpydoc docstring with parameters, and the names and the text of a parameter.
_SECTION = r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)"
_PARAMETER = r"^(\S[^:\n]*)[^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)"

#: Type of the option `random_state`. The maximum is that of scikit-learn and of older generators of
#: NumPy, so that a seed can be used with any library.
RandomState = Annotated[int, Meta(ge=0, le=2**32 - 1)]


@dataclass(frozen=True)
class Option:
    """One keyword option."""

    name: str
    annotation: Any  #: type to which msgspec converts values
    type: type  #: bool, int, float, str or pathlib.Path
    default: Any
    choices: tuple[Any, ...] = ()  #: accepted values; empty if all values of the type are accepted
    optional: bool = False  #: whether None is accepted
    range: str = ""  #: description of the accepted numbers; empty for all
    word: str = ""  #: a word that is accepted too, such as "auto"; empty for none
    help: str = ""  #: text from the docstring, on one line

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any = None, help: str = "") -> Option:
        """Return the option for an annotation. Raises TypeError for other types."""
        info = types.type_info(annotation)
        members = info.types if isinstance(info, types.UnionType) else (info,)
        plain = [m for m in members if not isinstance(m, types.NoneType | types.LiteralType)]
        numbers = [m for m in plain if isinstance(m, types.IntType | types.FloatType)]
        choices = _literal_values(annotation)
        word = ""
        if numbers and len(choices) == 1:  # numbers or one word
            word = str(choices[0])
            choices = ()
        value_types: set[Any] = {type(choice) for choice in choices}
        value_types |= {_BUILTIN.get(type(m)) or getattr(m, "cls", None) for m in plain}
        if len(value_types) != 1 or not value_types <= _TYPES.keys():
            known = "bool, int, float, str, Path or Literal, perhaps with None"
            raise TypeError(f"the option {name!r} must be annotated {known}")
        return cls(
            name,
            annotation,
            value_types.pop(),
            default,
            choices,
            optional=any(isinstance(member, types.NoneType) for member in members),
            range=_range_text(numbers[0]) if numbers else "",
            word=word,
            help=help,
        )

    @property
    def expected(self) -> str:
        """Description of the accepted values, except None."""
        choices = ", ".join(map(repr, self.choices))
        text = f"one of {choices}" if choices else _TYPES[self.type]
        if self.range:
            text += f" {self.range}" if self.range.startswith("from") else f", {self.range}"
        return f"{text}, or {self.word!r}" if self.word else text

    def parsed(self, text: str) -> Any:
        """Convert a typed text to a value of the type; return invalid text unchanged."""
        if text == self.word != "" or (text == "none" and self.optional):
            return None if text == "none" else text
        if self.type is bool:
            return {"true": True, "false": False}.get(text, text)
        try:
            return self.type(text)
        except ValueError:  # not a number, or too many digits for Python
            return text

    def spelled(self, value: Any) -> str:
        """Return the text of a value as it is typed, the inverse of `parsed`."""
        if value is None or isinstance(value, bool):
            return str(value).lower()
        return repr(value) if isinstance(value, float) else str(value)

    def checked(self, value: Any, owner: str = "") -> Any:
        """Convert a value to the type of the option. Raises OptionError, which names `owner`."""
        limit = ""
        try:
            # msgspec does not convert NumPy numbers
            plain = _python_number(value, self.type)
            converted = msgspec.convert(plain, self.annotation, dec_hook=_convert_path)
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError):
            is_legal = False
        else:
            is_legal = not isinstance(converted, float) or math.isfinite(converted)
            if type(converted) is int and not -_LARGEST <= converted < _LARGEST:
                is_legal = False
                limit = " and below 2**63"
        if is_legal:
            return converted
        reason = f"is {brief(value)}; it must be {self.expected}{limit}"
        prefix = f"{owner}: " if owner else ""
        message = f"{prefix}{self.name} {reason}{', or None' if self.optional else ''}"
        raise OptionError(message, option=self.name, reason=reason, owner=owner)


def _range_text(number: types.IntType | types.FloatType) -> str:
    """Return a description of a range, such as "from 0 to 1" or "above 0"."""
    if number.ge is not None and number.le is not None:
        return f"from {number.ge} to {number.le}"
    bounds = []
    if number.ge is not None:
        bounds.append(f"{number.ge} or more")
    if number.gt is not None:
        bounds.append(f"above {number.gt}")
    if number.le is not None:
        bounds.append(f"{number.le} or less")
    if number.lt is not None:
        bounds.append(f"below {number.lt}")
    return " and ".join(bounds)


def _literal_values(annotation: Any) -> tuple[Any, ...]:
    """Return the values of the `Literal` in an annotation, in order and without None."""
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is not typing.Literal:
        arguments = tuple(value for inner in arguments for value in _literal_values(inner))
    return tuple(value for value in dict.fromkeys(arguments) if value is not None)


def _python_number(value: Any, type_: type) -> Any:
    """Convert a NumPy scalar, or for float any real number, to a Python number."""
    is_bool = isinstance(value, bool | np.bool_)
    # NumPy complex numbers have a method __float__, which drops the imaginary part
    is_complex = isinstance(value, np.generic | np.ndarray) and value.dtype.kind == "c"
    if type_ is float and hasattr(value, "__float__") and not is_bool and not is_complex:
        return float(value)
    is_scalar = isinstance(value, np.generic) and not isinstance(value, np.timedelta64)
    return value.item() if is_scalar else value


def _convert_path(type_: type, value: Any) -> Path:
    """Convert a file name to a path, the only type that msgspec does not convert."""
    return Path(os.fsdecode(value))


def as_integer(value: object) -> int | None:
    """Return a Python or NumPy integer as an int; None for other values, such as True and 2.0."""
    is_other = isinstance(value, bool | np.timedelta64)
    if is_other or not isinstance(value, int | np.integer):
        return None
    return int(value)


def checked_count(name: str, value: object, least: int = 1) -> int:
    """Return an argument as an int. Raises OptionError unless it is a whole number from `least`.

    This is for arguments that are not keyword options, such as `k` of ``top_k``.
    """
    number = as_integer(value)
    if number is None or number < least:
        reason = f"is {brief(value)}; it must be a whole number, {least} or more"
        raise OptionError.about(name, reason)
    return number


#: The option `random_state`, for methods whose options are not read from a signature.
RANDOM_STATE = Option.of("random_state", RandomState)


@cache
def read_options(
    target: Callable[..., Any], without: frozenset[str] = frozenset()
) -> tuple[Option, ...]:
    """Read the options of a function, a class or a dataclass, except those in `without`.

    Options are keyword-only parameters, or fields of a dataclass with a default. The default of a
    required option is None. Raises TypeError, ValueError, NameError or AttributeError if the
    signature cannot be read, or if an option has an unsupported type.
    """
    signature = inspect.signature(target)
    is_dataclass = dataclasses.is_dataclass(target)
    annotated = target.__init__ if isinstance(target, type) and not is_dataclass else target  # type: ignore[misc]
    hints = typing.get_type_hints(annotated, include_extras=True)
    # Text of each parameter or attribute in the numpydoc docstrings, on one line
    helps: dict[str, str] = {}
    for documented in reversed(inspect.getmro(target)) if isinstance(target, type) else (target,):
        for section in re.findall(_SECTION, inspect.getdoc(documented) or "", re.M | re.S):
            for names, text in re.findall(_PARAMETER, section, re.M):
                one_line = " ".join(text.replace("``", "").split())
                helps |= dict.fromkeys(names.replace(" ", "").split(","), one_line)
    options = []
    for name, parameter in signature.parameters.items():
        positional = parameter.kind is not parameter.KEYWORD_ONLY
        is_main = positional and (not is_dataclass or parameter.default is parameter.empty)
        if is_main or name in without:
            continue
        default = None if parameter.default is parameter.empty else parameter.default
        options.append(Option.of(name, hints.get(name), default, helps.get(name, "")))
    return tuple(options)


def effective(
    options: Sequence[Option], values: Mapping[str, object], owner: str
) -> dict[str, Any]:
    """Return the checked value or default of each option. Raises OptionError for unknown names."""
    names = [option.name for option in options]
    for name in values:
        if name not in names:
            known = f"it has {', '.join(names) or 'none'}"
            raise OptionError(f"{owner} has no option {name!r}; {suggestion(name, names)}{known}")
    return {
        option.name: option.checked(values.get(option.name, option.default), owner)
        for option in options
    }


def parse_options(owner: str, options: Sequence[Option], pairs: Sequence[str]) -> dict[str, Any]:
    """Return the checked values of typed ``key=value`` pairs. Raises OptionError."""
    known = {option.name: option for option in options}
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or key in values:
            twice = (
                "is given twice; give it once" if equals else "is not an option; write key=value"
            )
            raise OptionError(f"{owner}: {key!r} {twice}")
        values[key] = known[key].parsed(text) if key in known else text
    # Check all options, but return only those that were typed
    checked = effective(options, values, owner)
    return {key: checked[key] for key in values}


def spelled(name: str, options: Sequence[Option], values: Mapping[str, Any]) -> str:
    """Return a name with the options that differ from their defaults, as they are typed.

    A given random state is always included, because the default may depend on another seed.
    """
    # A candidate has one name, regardless of how its options were typed
    words = [name]
    for option in options:
        value = option.checked(values.get(option.name, option.default), name)
        is_set = option.name == "random_state" and option.name in values
        if is_set or value != option.default:
            words.append(f"{option.name}={option.spelled(value)}")
    return " ".join(map(shlex.quote, words))


def typed_words(text: str) -> list[str]:
    """Split a typed name with options into words; refuse options written as flags."""
    try:
        tokens = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"{text!r} cannot be read: {str(error).lower()}") from error
    for token in tokens:
        if token.startswith("--"):
            raise OptionError(
                f'write options in {text!r} as key=value, not {token}: "gmm epsilon=0.4 trees=4"'
            )
    return tokens


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return "did you mean ...? " with the known name that is most similar to a name, if any."""
    known = list(known)
    if name == "seed":
        is_random = "random_state" in known
        return f"a seed is random_state{'' if is_random else ', but nothing here is random'}; "
    close = get_close_matches(str(name), known, n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def checked_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that it raises OptionError for invalid values of options."""

    @wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        for option in read_options(function):
            if option.name in kwargs:
                kwargs[option.name] = option.checked(kwargs[option.name], function.__name__)
        return function(*args, **kwargs)

    return checked
