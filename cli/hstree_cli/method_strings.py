"""Methods and output layers as one string with their options: "gmm --epsilon 0.4 --trees 4"."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hstree.builders import builder
from hstree.errors import OptionError
from hstree.experiments.entries import Method
from hstree.layers.registry import LAYERS, LayerKind
from hstree_cli.options import flag
from hstree_cli.registered_options import unknown_option

if TYPE_CHECKING:
    from hstree.builders import Builder


def parse_method(text: str) -> Method:
    """Read a method, named as it was typed, and its options.

    The builder's name comes first, then its options as `hstree build` takes them:
    ``--max-codes 8``, ``--epsilon=0.4``, ``--weighted``, ``--no-weighted``.

    Examples
    --------
    >>> dict(parse_method("gmm --epsilon 0.4 --trees 4").options)
    {'epsilon': 0.4, 'trees': 4}
    """
    chosen, options, name = _parsed(text, builder, 'a method, as in "gmm --epsilon 0.4"')
    return Method(chosen.name, options, name=name)


def parse_layer(text: str) -> tuple[LayerKind, dict[str, Any], str]:
    """Read an output layer, its options by their Python names, and the name that was typed.

    Examples
    --------
    >>> kind, options, name = parse_layer("flat")
    >>> kind.name, options, name
    ('flat', {}, 'flat')
    """
    return _parsed(text, LAYERS.get, 'an output layer, as in "sampled --samples 500"')


def _parsed(text: str, get: Callable[[str], Any], what: str) -> tuple[Any, dict[str, Any], str]:
    """Return the registered record that a string names, its options, and the string, normalised."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"{text!r} cannot be read: {error}; write {what}") from error
    if not words:
        raise OptionError(f"a name is missing; write {what}")
    chosen = get(words[0])
    return chosen, _typed_options(chosen, words[1:]), shlex.join(words)


def _typed_options(chosen: Builder | LayerKind, words: list[str]) -> dict[str, Any]:
    """Return options by their Python names."""
    by_flag = {flag(option.name): option for option in chosen.options}
    off = {f"--no-{on[2:]}": option for on, option in by_flag.items() if option.type is bool}
    options: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        typed, equals, value = word.partition("=")
        option = by_flag.get(typed) or off.get(typed)
        if option is None:
            raise OptionError(unknown_option(word, chosen.name, chosen.options))
        if option.type is bool:
            if equals:
                raise OptionError(f"{chosen.name}: {typed} is a switch, and takes no value")
            options[option.name] = typed in by_flag
            continue
        if not equals and (value := next(rest, "")) == "":
            example = f"{typed} {option.default}"
            raise OptionError(f"{chosen.name}: {typed} wants a value, as in {example}")
        options[option.name] = value
        with suppress(ValueError):  # the builder refuses what cannot be converted
            options[option.name] = option.type(value)
    return options
