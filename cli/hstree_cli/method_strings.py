"""Methods of a comparison as one string with their options: "gmm --epsilon 0.4 --trees 4"."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from hstree._options import Option
from hstree.builders import builder
from hstree.errors import OptionError
from hstree.experiments.entries import Method
from hstree_cli.options import flag


def parse_method(text: str) -> Method:
    """Read a method, named as it was typed, and its options.

    The builder's name comes first, then its options as `hstree build` takes them:
    ``--max-codes 8``, ``--epsilon=0.4``, ``--weighted``, ``--no-weighted``.

    Examples
    --------
    >>> dict(parse_method("gmm --epsilon 0.4 --trees 4").options)
    {'epsilon': 0.4, 'trees': 4}
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"the method {text!r} cannot be read: {error}") from error
    if not words:
        raise OptionError('a method without a name; write it as in "gmm --epsilon 0.4"')
    chosen = builder(words[0])
    by_flag = {flag(option.name): option for option in chosen.options}
    off = {f"--no-{on[2:]}": option for on, option in by_flag.items() if option.type is bool}
    options: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        typed, equals, value = word.partition("=")
        option = by_flag.get(typed) or off.get(typed)
        if option is None:
            known = ", ".join(sorted(by_flag)) or "none"
            raise OptionError(f"no option {word} for {chosen.name}, whose own options are: {known}")
        if option.type is bool:
            if equals:
                raise OptionError(f"{chosen.name}: {typed} is a switch, and takes no value")
            options[option.name] = typed in by_flag
            continue
        if not equals and (value := next(rest, "")) == "":
            example = f"{typed} {option.default}"
            raise OptionError(f"{chosen.name}: {typed} wants a value, as in {example}")
        options[option.name] = _value(option, value)
    return Method(chosen.name, options, name=shlex.join(words))


def _value(option: Option, text: str) -> Any:
    """Return a value as the option's type; the builder refuses what cannot be converted."""
    if option.type not in (int, float):
        return Path(text) if option.type is Path else text
    try:
        return option.type(text)
    except ValueError:
        return text
