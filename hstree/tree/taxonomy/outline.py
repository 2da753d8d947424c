"""Outlines, which all readers return: the items of a taxonomy, and the item above each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing

#: Maximum number of names in a path that messages show.
SHOWN_NAMES = 8


@dataclass
class Outline:
    """Items of a taxonomy, in the order of their first occurrence."""

    kind: str  #: form of the input, recorded in the tree's meta
    names: list[str | None] = field(default_factory=list)  #: None for an item without a name
    #: Item above each item, -1 for none; it may have a larger number.
    parents: list[int] = field(default_factory=list)
    #: Items with a parent, siblings in order; None if this is the order of the items.
    children: list[int] | None = None
    read_as: str = ""  #: rule that decided the form, if several were possible

    def add(self, name: str | None, parent: int) -> int:
        """Add an item and return its number."""
        self.names.append(name)
        self.parents.append(parent)
        return len(self.names) - 1

    def path(self, item: int) -> str:
        """Return the names from the root down to an item, such as "shoes/Other".

        Items without a name are left out; a long path is cut at the start.
        """
        names = list[str]()
        while item >= 0 and len(names) < SHOWN_NAMES:
            if (name := self.names[item]) is not None:
                names.append(name)
            item = self.parents[item]
        return "/".join(reversed(names))

    def error(self, message: str) -> InputError:
        """Return an error that also states how the taxonomy was read."""
        rule = f" (the taxonomy is read as {self.read_as})" if self.read_as else ""
        return InputError(f"{message}{rule}")


def item_name(value: Any) -> str:
    """Return the name of an item as text. Raises InputError if it is missing."""
    if is_missing(value):
        raise InputError("an item of the taxonomy has no name; name each by text or a number")
    return class_name(value)


def is_collection(value: Any) -> bool:
    """Return whether a value is a collection, such as a mapping, a list or an array."""
    return (
        hasattr(value, "__iter__")
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) > 0
    )


def read_edges(edges: Iterable[tuple[Any, Any]], kind: str, read_as: str) -> Outline:
    """Read pairs of a parent and a child; a child with a missing parent is a root."""
    outline = Outline(kind, read_as=read_as)
    items: dict[str, int] = {}
    with_parent: set[int] = set()
    # Items are numbered by first occurrence, as parent or child
    for above, below in edges:
        parent = -1
        if not is_missing(above):
            name = item_name(above)
            parent = items[name] if name in items else outline.add(name, -1)
            items[name] = parent
        name = item_name(below)
        child = items[name] if name in items else outline.add(name, -1)
        items[name] = child
        if child in with_parent:
            first, second = (
                "no parent" if item < 0 else repr(outline.names[item])
                for item in (outline.parents[child], parent)
            )
            raise outline.error(
                f"{name!r} is listed twice, under {first} and under {second}; list an item once, "
                "under its only parent"
            )
        with_parent.add(child)
        outline.parents[child] = parent
    return outline
