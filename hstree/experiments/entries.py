"""What can be compared: a method with its options, a tree that is there already, a baseline.

A method is written as on the command line, "gmm --epsilon 0.4 --trees 4"; its options are those
of the builder's signature. Nothing is built or trained here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hstree._options import Option
from hstree.builders import Builder, builder
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.tree import Tree

_BASELINE = re.compile(r"kn([2-7])")
_LONGEST_SLUG = 80


@dataclass(frozen=True)
class Method:
    """A builder and the options that it was given; the others have their defaults."""

    name: str
    builder: Builder = field(repr=False)
    given: Mapping[str, Any]

    @property
    def slug(self) -> str:
        """A name for a folder, the same for all spellings of the same options."""
        values = self.builder.effective(self.given)
        changed = {
            o.name: values[o.name] for o in self.builder.options if values[o.name] != o.default
        }
        plain = _plain("-".join([self.builder.name, *(f"{n}-{v}" for n, v in changed.items())]))
        is_exact = len(plain) <= _LONGEST_SLUG and not any(
            isinstance(v, Path) for v in changed.values()
        )
        return plain if is_exact else f"{plain[:_LONGEST_SLUG]}-{_short_hash(repr(changed))}"

    @property
    def takes_vectors(self) -> bool:
        """Whether its input is word vectors."""
        return self.builder.takes is WordVectors

    @property
    def needs_vectors(self) -> bool:
        """Whether it wants vectors that a model learned: as its input, or as an option's file."""
        values = self.builder.effective(self.given)
        by_vectors = values.get("cluster_by") == "vectors" and values.get("vectors_file") is None
        return self.takes_vectors or by_vectors

    @property
    def reads_vectors(self) -> bool:
        """Whether it takes vectors from a file, whose making nobody timed."""
        return self.builder.effective(self.given).get("vectors_file") is not None

    def options(self, seed: int) -> dict[str, Any]:
        """Return the options for one random state, which a seed of its own overrules."""
        seeded = any(option.name == "random_state" for option in self.builder.options)
        return {"random_state": seed, **self.given} if seeded else dict(self.given)


@dataclass(frozen=True)
class MadeTree:
    """A tree that somebody made already."""

    name: str
    tree: Tree

    @property
    def slug(self) -> str:
        """A name for a folder."""
        return _plain(f"tree-{Path(self.name).name.partition('.')[0]}-{self.tree.sha256[:8]}")


@dataclass(frozen=True)
class Baseline:
    """A Kneser-Ney n-gram model, "kn3" or "kn5"."""

    name: str
    order: int

    @property
    def slug(self) -> str:
        """A name for a folder."""
        return self.name


Entry = Method | MadeTree | Baseline


def entries(
    methods: Sequence[str], trees: Mapping[str, Tree], baselines: Sequence[str]
) -> list[Entry]:
    """Return what is to be compared, in this order.

    Raises
    ------
    OptionError
        When a method, an option or a baseline is unknown, two are the same, or there is none.
    """
    found: list[Entry] = [
        *map(parse_method, methods),
        *(MadeTree(name, tree) for name, tree in trees.items()),
        *map(parse_baseline, baselines),
    ]
    if not found:
        raise OptionError("there is nothing to compare; name a method, a tree or a baseline")
    names: dict[str, str] = {}
    for entry in found:
        if entry.slug in names:
            one = names[entry.slug]
            twice = f"{one} stands twice" if one == entry.name else f"{one} and {entry.name} agree"
            raise OptionError(f"{twice} in the comparison; name each once")
        names[entry.slug] = entry.name
    return found


def parse_method(text: str) -> Method:
    """Read a method and its options.

    Parameters
    ----------
    text : str
        The builder's name, then its options as `hstree build` takes them: ``--max-codes 8``,
        ``--epsilon=0.4``, ``--weighted``, ``--no-weighted``; ``--seed`` is the random state.

    Raises
    ------
    OptionError
        When there is no such builder, it has no such option, or that cannot have that value.

    Examples
    --------
    >>> dict(parse_method("gmm --epsilon 0.4 --trees 4").given)
    {'epsilon': 0.4, 'trees': 4}
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise OptionError(f"the method {text!r} cannot be read: {error}") from error
    if not words:
        raise OptionError('a method without a name; write it as in "gmm --epsilon 0.4"')
    chosen = builder(words[0])
    by_flag = {flag: option for option in chosen.options for flag in _flags(option)}
    given: dict[str, Any] = {}
    rest = iter(words[1:])
    for word in rest:
        flag, equals, value = word.partition("=")
        option = by_flag.get(flag)
        if option is None:
            own = ", ".join(sorted({_flags(o)[0] for o in chosen.options})) or "none"
            raise OptionError(f"no option {word} for {chosen.name}, whose own options are: {own}")
        if option.type is bool:
            if equals:
                raise OptionError(f"{chosen.name}: {flag} is a switch, and takes no value")
            given[option.name] = not flag.startswith("--no-") or flag == _flags(option)[0]
            continue
        if not equals and (value := next(rest, "")) == "":
            raise OptionError(f"{chosen.name}: {flag} wants a value, as in {flag} {option.default}")
        given[option.name] = _value(option, value)
    chosen.effective(given)
    return Method(shlex.join(words), chosen, given)


def parse_baseline(text: str) -> Baseline:
    """Read the name of a baseline.

    Raises
    ------
    OptionError
        When it is none.
    """
    found = _BASELINE.fullmatch(text)
    if found is None:
        raise OptionError(f"there is no baseline {text!r}; there are kn2 to kn7, Kneser-Ney")
    return Baseline(text, int(found[1]))


def _flags(option: Option) -> list[str]:
    """Return how an option is spelt, a switch both ways."""
    if option.name == "random_state":
        return ["--seed"]
    name = option.name.replace("_", "-")
    return [f"--{name}", f"--no-{name}"] if option.type is bool else [f"--{name}"]


def _value(option: Option, text: str) -> Any:
    """Return a value as the option's type; one that is none is left for the builder to refuse."""
    if option.type not in (int, float):
        return Path(text) if option.type is Path else text
    try:
        return option.type(text)
    except ValueError:
        return text


def _plain(text: str) -> str:
    """Return a text as a folder's name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()


def _short_hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]
