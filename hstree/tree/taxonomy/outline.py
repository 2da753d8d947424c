"""Outlines: the items of a taxonomy and the item above each, which all readers return."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hstree._text import brief
from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing

#: Number of names of a path that messages show.
SHOWN_NAMES = 8
#: Missing values of pandas and NumPy as text.
MISSING_AS_TEXT = ("nan", "NaN", "<NA>", "NaT")


@dataclass
class Outline:
    """Items of a taxonomy, in the order in which they were met."""

    kind: str  #: shape of the input, recorded in the tree's meta
    names: list[str | None] = field(default_factory=list)  #: None for an item without a name
    #: Item above each, -1 for none; it may come after the item.
    parents: list[int] = field(default_factory=list)
    #: Items with a parent, siblings in order; None where that is the order of the items.
    children: list[int] | None = None
    read_as: str = ""  #: rule by which the shape was decided, where several were possible
    hint: str = ""  #: the other shapes that the input could have, for error messages

    def add(self, name: str | None, parent: int) -> int:
        """Add an item and return its number."""
        self.names.append(name)
        self.parents.append(parent)
        return len(self.names) - 1

    def path(self, item: int, n_names: int = SHOWN_NAMES) -> str:
        """Return the names from the root down to an item, "shoes/Other", the last `n_names` only.

        An item without a name is called by its number among its siblings, "#1"; such a root is left
        out.
        """
        names = list[str]()
        while item >= 0 and len(names) <= n_names:
            name = self.names[item]
            parent = self.parents[item]
            if name is None and parent >= 0:
                siblings = [i for i, above in enumerate(self.parents) if above == parent]
                name = f"#{siblings.index(item) + 1}"
            if name is not None:
                names.append(name)
            item = parent
        if len(names) > n_names:
            names[n_names:] = ["..."]
        return "/".join(reversed(names))


def item_name(value: Any) -> str:
    """Return the name of an item as text; InputError where it has none."""
    if is_missing(value):
        raise InputError("an item of the taxonomy has no name; give each a text or a number")
    return class_name(value)


def is_collection(value: Any) -> bool:
    """Return whether a value holds others, as a mapping, a list or an array, and is no name."""
    return (
        hasattr(value, "__iter__")
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) > 0
    )


def read_edges(
    edges: Iterable[tuple[Any, Any]], kind: str, *, read_as: str, hint: str = ""
) -> Outline:
    """Read pairs of a parent and a child; a child of a missing parent is a root."""
    outline = Outline(kind, read_as=read_as, hint=hint)
    items: dict[str, int] = {}
    with_parent: set[int] = set()

    def find_or_add(value: Any) -> int:
        if is_collection(value):
            raise InputError(
                f"{brief(value)} is in the place of a name; give a pair (parent, child) for each "
                "child, or a mapping of each parent to its list of children"
            )
        name = item_name(value)
        if name not in items:
            items[name] = outline.add(name, -1)
        return items[name]

    # Items are numbered when they are first met, above or below an edge
    for above, below in edges:
        parent = -1 if is_missing(above) else find_or_add(above)
        child = find_or_add(below)
        if child in with_parent:
            first, second = (
                "no parent" if item < 0 else repr(outline.names[item])
                for item in (outline.parents[child], parent)
            )
            raise InputError(
                f"{outline.names[child]!r} is listed twice, under {first} and under {second}; list "
                f"an item once, under its only parent{hint}"
            )
        with_parent.add(child)
        outline.parents[child] = parent
    return outline
