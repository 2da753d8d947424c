"""What a format is: its name, its endings, what it keeps of a tree, and how it is read and written.

Also what several formats share: refusing labels that one cannot quote, and trees that are not
binary. The formats themselves stand one a file beside this one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hstree.data.provenance import texts
from hstree.data.vector_files.npy import (
    labels_beside,
    labels_path,
    read_labels,
    replacing_with_labels,
)
from hstree.errors import InputError
from hstree.tree import Tree

#: Reads a file; the second is the file of labels that was named, or None.
Read = Callable[[Path, Path | None], Tree]
#: Writes a file, or raises before anything stands at its place.
Write = Callable[[Tree, Path], None]

#: What a format may keep, and what is said where it does not.
PARTS = {
    "counts": "the counts",
    "names": "the names of nodes",
    "order": "the order of labels",
    "numbers": "the numbers of nodes",
    "meta": "how the tree was made",
}


@dataclass(frozen=True)
class Format:
    """One format of tree files.

    Attributes
    ----------
    name : str
        As `hstree convert --to` takes it.
    endings : tuple of str
        Of the files that are taken for it where no format is named.
    keeps : frozenset of str
        Which of `PARTS` come back; labels and codes always do.
    write : callable
    read : callable, optional
        None where hstree does not read it.
    takes_labels : bool
        Whether its files have their labels in a file of their own.
    """

    name: str
    endings: tuple[str, ...]
    keeps: frozenset[str]
    write: Write
    read: Read | None = None
    takes_labels: bool = False

    def files(self, path: Path) -> list[Path]:
        """Return the files that `write` makes: this one, and perhaps its labels beside it."""
        return [path, labels_path(path)] if self.takes_labels else [path]

    def losses(self, tree: Tree) -> list[str]:
        """Name what a tree has and the format does not keep."""
        has = {
            "counts": tree.counts is not None,
            "names": tree.names is not None,
            "order": tree.n_labels > 1,
            "numbers": tree.n_labels > 1,
            "meta": bool(tree.meta),
        }
        return [what for part, what in PARTS.items() if has[part] and part not in self.keeps]


def check_labels(tree: Tree, allowed: re.Pattern[str], why: str) -> None:
    """Refuse labels that a format cannot quote.

    Raises
    ------
    InputError
        With the first of them.
    """
    for label in tree.labels:
        if allowed.fullmatch(label) is None:
            raise InputError(f"the label {label!r} cannot be written: {why}")


def check_names(tree: Tree, allowed: re.Pattern[str], why: str) -> None:
    """Refuse names of nodes that a format cannot quote.

    Raises
    ------
    InputError
        With the first of them.
    """
    for node, name in enumerate(tree.names or ()):
        if name is not None and allowed.fullmatch(name) is None:
            raise InputError(f"the name of node {node}, {name!r}, cannot be written: {why}")


def labels_for(path: Path, given: Path | None) -> tuple[list[str], list[int] | None] | None:
    """Read the labels, and perhaps counts, of a file that has none itself.

    They stand in the file that was named, else in ``NAME.labels.tsv`` beside it, else nowhere.

    Raises
    ------
    InputError
        When the file of labels cannot be read.
    """
    beside = labels_beside(str(path)) if given is None else str(given)
    if beside is None:
        return None
    found = read_labels(beside, path)
    return found.words, found.counts


def replacing_labelled(tree: Tree, path: Path) -> AbstractContextManager[BinaryIO]:
    """Open the file of a tree whose labels go into a file beside it, which is written too.

    Raises
    ------
    InputError
        When a label has no place in a file of lines.
    FileFormatError
        When a file cannot be written.
    """
    return replacing_with_labels(path, tree.labels, tree.counts, texts(tree.meta.get("input")))


def expected(path: Path, line: int, what: str, found: Sequence[str] | str) -> InputError:
    """Return the error for a line that is not what it should be."""
    text = found if isinstance(found, str) else " ".join(found)
    shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
    return InputError(f"{path}, line {line}: expected {what}, found {shown}")
