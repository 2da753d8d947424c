"""Entries of a comparison: builders with their options, trees, and n-gram baselines."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hstree.builders import Builder, builder
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.tree import Tree

_BASELINE = re.compile(r"kn([2-7])")
_LONGEST_SLUG = 80


@dataclass(frozen=True)
class Method:
    """A builder and its options, by default those of the builder.

    Attributes
    ----------
    method : str
        Name of a builder.
    options : mapping
        By their Python names.
    name : str
        Name of the row; by default the method and its options.
    vectors_from : Method, optional
        The row whose model learns the vectors that this tree is built from; by default the random
        tree.

    Raises
    ------
    OptionError
        When the builder, an option or its value is unknown.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    vectors_from: Method | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        self.builder.effective(self.options)
        if not self.name:
            words = [self.method, *(f"{option}={value}" for option, value in self.options.items())]
            object.__setattr__(self, "name", " ".join(words))

    @cached_property
    def builder(self) -> Builder:
        """The builder of this name."""
        return builder(self.method)

    @cached_property
    def slug(self) -> str:
        """Name of the row's folder, the same for all spellings of the same options."""
        values = self._values
        changed = {
            o.name: values[o.name] for o in self.builder.options if values[o.name] != o.default
        }
        words = [self.method, *(f"{name}-{value}" for name, value in changed.items())]
        if self.vectors_from is not None:
            words += ["from", self.vectors_from.slug]
        plain = _plain("-".join(words))
        is_exact = len(plain) <= _LONGEST_SLUG and not any(
            isinstance(value, Path) for value in changed.values()
        )
        if is_exact:
            return plain
        source = () if self.vectors_from is None else (self.vectors_from.slug,)
        return f"{plain[:_LONGEST_SLUG]}-{_short_hash(''.join([repr(changed), *source]))}"

    @property
    def takes_vectors(self) -> bool:
        """Whether the builder's input is word vectors."""
        return self.builder.takes is WordVectors

    @property
    def needs_vectors(self) -> bool:
        """Whether it needs vectors that a model learned, as its input or as an option."""
        by_vectors = self._values.get("cluster_by") == "vectors" and not self.reads_vectors
        return self.takes_vectors or by_vectors

    @property
    def reads_vectors(self) -> bool:
        """Whether an option names a file of vectors, whose training was not timed."""
        return self._values.get("vectors_file") is not None

    @cached_property
    def _values(self) -> dict[str, Any]:
        return self.builder.effective(self.options)

    def seeded(self, random_state: int) -> dict[str, Any]:
        """Return the options with a random state, unless they have one."""
        takes_state = any(option.name == "random_state" for option in self.builder.options)
        return {"random_state": random_state, **self.options} if takes_state else dict(self.options)


@dataclass(frozen=True)
class NamedTree:
    """A tree that exists already, and the name of its row."""

    name: str
    tree: Tree

    @property
    def slug(self) -> str:
        """Name of the row's folder."""
        return _plain(f"tree-{Path(self.name).name.partition('.')[0]}-{self.tree.sha256[:8]}")


@dataclass(frozen=True)
class Baseline:
    """A Kneser-Ney n-gram model; "kn3" is the usual name of a trigram model."""

    name: str
    order: int

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the baseline of a name; OptionError if there is none."""
        match = _BASELINE.fullmatch(name)
        if match is None:
            raise OptionError(f"there is no baseline {name!r}; there are kn2 to kn7, Kneser-Ney")
        return cls(name, int(match[1]))

    @property
    def slug(self) -> str:
        """Name of the row's folder."""
        return f"kn{self.order}"


Entry = Method | NamedTree | Baseline
#: Shorthands for an entry in Python.
EntryLike = Entry | str | tuple[str, Mapping[str, Any]] | Tree


def as_entries(entries: Sequence[EntryLike]) -> list[Entry]:
    """Return the entries of a comparison, in their order.

    Parameters
    ----------
    entries : sequence
        A method's name, a method and its options, a tree, a baseline's name ("kn5"), or an entry.

    Raises
    ------
    OptionError
        When there is none, one is of another type, two are the same, or a method, an option or a
        baseline is unknown.

    Examples
    --------
    >>> [entry.name for entry in as_entries(["huffman", ("gmm", {"epsilon": 0.4}), "kn5"])]
    ['huffman', 'gmm epsilon=0.4', 'kn5']
    """
    converted = [_as_entry(entry) for entry in entries]
    if not converted:
        raise OptionError("there is nothing to compare; name a method, a tree or a baseline")
    names: dict[str, str] = {}
    for entry in converted:
        if entry.slug in names:
            first = names[entry.slug]
            same = "occurs twice" if first == entry.name else f"and {entry.name} agree"
            raise OptionError(f"{first} {same} in the comparison; name each once")
        if entry.name in names.values():
            raise OptionError(f"two rows are named {entry.name}; give each another name")
        names[entry.slug] = entry.name
    return converted


def _as_entry(entry: EntryLike) -> Entry:
    if isinstance(entry, Tree):
        return NamedTree(f"tree {entry.sha256[:8]}", entry)
    if isinstance(entry, tuple):
        return Method(*entry)
    if isinstance(entry, str):
        return Baseline.named(entry) if re.fullmatch(r"kn\d+", entry) else Method(entry)
    if isinstance(entry, Entry):
        return entry
    raise OptionError(
        f"{entry!r} cannot be compared; name a method, a method and its options, a tree or a "
        "baseline"
    )


def _plain(text: str) -> str:
    """Return a text as a folder's name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()


def _short_hash(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:8]
