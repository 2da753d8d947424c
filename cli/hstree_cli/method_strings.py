"""Methods and output layers as one string with their options: "gmm --epsilon 0.4 --trees 4"."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hstree._files import recorded_name
from hstree._options import suggestion
from hstree.builders.registry import BUILDERS
from hstree.errors import OptionError
from hstree.experiments.entries import (
    Baseline,
    Ensemble,
    Entry,
    EntryLike,
    Layer,
    Method,
    NamedOutput,
    as_entries,
)
from hstree.experiments.survey import default_rows
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerKind
from hstree.tree import load
from hstree_cli.arguments import find_builder, refuse_several, split_models
from hstree_cli.options import flag
from hstree_cli.registered_options import unknown_option

if TYPE_CHECKING:
    from hstree.builders import Builder


def parse_method(text: str) -> Method:
    """Read a method, named as it was typed, its options, and the layer over its trees.

    The builder's name comes first, then its options as `hstree build` takes them:
    ``--max-codes 8``, ``--epsilon=0.4``, ``--weighted``, ``--no-weighted``. A layer over the tree
    that is not the hierarchical softmax follows "+", with its options.

    Examples
    --------
    >>> dict(parse_method("gmm --epsilon 0.4 --trees 4").options)
    {'epsilon': 0.4, 'trees': 4}
    >>> method = parse_method("gmm + ngrams --words 2")
    >>> method.layer, dict(method.layer_options)
    ('ngrams', {'words': 2})
    """
    what = 'a method, as in "gmm --epsilon 0.4"'
    of_tree, *over = re.split(r"\s\+\s*", text, maxsplit=1)
    chosen, options, name = _parsed(of_tree, find_builder, what)
    if not over:
        return Method(chosen.name, options, name=name)
    kind, layer_options, layer = parse_layer(over[0])
    return Method(
        chosen.name,
        options,
        name=f"{name} + {layer}",
        layer=kind.name,
        layer_options=layer_options,
    )


def parse_layer(
    text: str, instead: str = "give it with --method {}"
) -> tuple[LayerKind, dict[str, Any], str]:
    """Read an output layer, its options by their Python names, and the name that was typed.

    `instead` tells what to do with the name of a builder.

    Examples
    --------
    >>> kind, options, name = parse_layer("flat")
    >>> kind.name, options, name
    ('flat', {}, 'flat')
    """

    def find(name: str) -> LayerKind:
        refuse_several(name, "--layer")
        if name not in LAYERS.names() and name in BUILDERS.names():
            raise OptionError(f"{name} is a way to build a tree: {instead.format(name)}")
        return LAYERS.get(name)

    return _parsed(text, find, 'an output layer, as in "sampled --samples 500"')


def spelled(chosen: Builder | LayerKind, values: Mapping[str, Any]) -> str:
    """Return a builder or a layer with its options as they are typed.

    An option that is None is left out, and a switch that is off by default.

    Examples
    --------
    >>> from hstree.builders import builder
    >>> spelled(builder("gmm"), {"epsilon": 0.4, "weighted": False})
    'gmm --epsilon 0.4'
    """
    defaults = {option.name: option.default for option in chosen.options}
    words = [chosen.name]
    for name, value in values.items():
        if isinstance(value, bool):
            off = [f"--no-{flag(name)[2:]}"] if defaults[name] else []
            words += [flag(name)] if value else off
        elif value is not None:
            words += [flag(name), str(value)]
    return shlex.join(words)


def default_entries(config: Mapping[str, Any]) -> list[Entry]:
    """Return the rows of a survey by default, named as they are typed."""
    return as_typed(default_rows(config))


def as_typed(entries: Sequence[EntryLike]) -> list[Entry]:
    """Return entries, methods among them named as they are typed."""
    return [
        replace(entry, name=_as_typed(entry)) if isinstance(entry, Method) else entry
        for entry in as_entries(entries)
    ]


def _as_typed(method: Method) -> str:
    name = spelled(method.builder, method.options)
    if method.layer == TREE_LAYER:
        return name
    return f"{name} + {spelled(LAYERS.get(method.layer), method.layer_options)}"


def _several(entry: Any, models: int | None) -> Entry:
    """Return an ensemble of an entry; the entry itself without a number of models."""
    return entry if models is None else Ensemble(entry, models)


def parse_entries(methods: Iterable[str], layers: Iterable[str]) -> tuple[list[Entry], list[Entry]]:
    """Read methods, and output layers, with their options, each maybe an ensemble ("3 x gmm")."""
    of_methods, of_layers = list[Entry](), list[Entry]()
    for models, text in map(split_models, methods):
        of_methods.append(_several(parse_method(text), models))
    for models, text in map(split_models, layers):
        kind, options, name = parse_layer(text)
        of_layers.append(_several(Layer(kind.name, options, name), models))
    return of_methods, of_layers


def parse_rows(text: str) -> list[Entry]:
    """Read rows that commas separate: methods and layers with their options, and tree files.

    A comma with a digit or * right after it belongs to an option's value, as in
    ``--bands 2000:64,*:16``; a file whose name begins with a digit takes a space before it.

    Examples
    --------
    >>> [row.name for row in parse_rows("huffman, gmm --trees 4,flat")]
    ['huffman', 'gmm --trees 4', 'flat']
    """
    return [_row(one) for one in re.split(r",\s+|,(?=\d+\s+x\s)|,(?![\s\d*])", text)]


def _row(text: str) -> Entry:
    models, text = split_models(text)
    if models is not None:
        return _several(_row(text), models)
    name = text.split()[0] if text.strip() else ""
    if name.endswith((".json", ".json.gz", ".npz")):
        path = Path(text.strip())
        return NamedOutput(recorded_name(path), load(path))
    if name in BUILDERS.names():
        return parse_method(text)
    if re.fullmatch(r"kn\d+", name):
        return Baseline.named(name)
    if name and name not in LAYERS.names():
        known = {*BUILDERS.names(), *LAYERS.names()}
        raise OptionError(
            f"there is no method or output layer {name!r}; {suggestion(name, sorted(known))}"
            "`hstree methods` and `hstree layers` list them"
        )
    kind, options, typed = parse_layer(text)
    return Layer(kind.name, options, name=typed)


def _parsed(text: str, get: Callable[[str], Any], what: str) -> tuple[Any, dict[str, Any], str]:
    """Return the registered record that a string names, its options, and the string, normalised."""
    if split_models(text)[0] is not None:
        raise OptionError(f"{text!r} is an ensemble, which is a row of `hstree compare` alone")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"{text!r} cannot be read: {error}; write {what}") from error
    if not words:
        raise OptionError(f"a name is missing; write {what}")
    chosen = get(words[0])
    return chosen, _typed_options(chosen, words[1:]), shlex.join(words)


def _help_command(chosen: Builder | LayerKind) -> str:
    if isinstance(chosen, LayerKind):
        return f"`hstree layers {chosen.name}`"
    return f"`hstree build --method {chosen.name} --help`"


def _typed_options(chosen: Builder | LayerKind, words: list[str]) -> dict[str, Any]:
    """Return options by their Python names."""
    by_flag = {flag(option.name): option for option in chosen.options}
    off = {f"--no-{on[2:]}": option for on, option in by_flag.items() if option.type is bool}
    options: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        typed, equals, value = word.partition("=")
        option = by_flag.get(typed) or off.get(typed)
        if word in ("--help", "-h"):
            raise OptionError(f"{_help_command(chosen)} describes the options of {chosen.name}")
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
            options[option.name] = option.parsed(value)
    return options
