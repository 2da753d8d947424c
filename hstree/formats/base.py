"""The record of a format, and functions that several formats share."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hstree._arrays import Int64
from hstree._files import replacing
from hstree.data.provenance import collect_sources
from hstree.data.word_files import LABELS, read_labels, replacing_with_labels
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.row_numbers import RowNumbers

#: Reader of a file; the second argument is the file of labels, if one is given.
Read = Callable[[Path, Path | None], Tree]
#: Writer of a file; it raises errors before it creates the file.
Write = Callable[[Tree, Path], None]

#: Parts of a tree that a format may keep, and their names in messages.
CONTENT = {
    "counts": "the counts",
    "names": "the names of nodes",
    "order": "the order of labels",
    "numbers": "the numbers of nodes",
    "meta": "how the tree was made",
}


@dataclass(frozen=True)
class Format:
    """One format of tree files."""

    name: str
    endings: tuple[str, ...]  #: file extensions that select the format by default
    keeps: tuple[str, ...]  #: keys of `CONTENT` that a file keeps, besides labels and codes
    write: Write | None  #: None for a read-only format
    read: Read | None = None  #: None for a write-only format
    takes_labels: bool = False  #: whether labels are in a separate file

    def files(self, path: Path) -> list[Path]:
        """Return the files that `write` creates: this file, and its file of labels, if any."""
        return [path, path.with_suffix(LABELS)] if self.takes_labels else [path]

    def losses(self, tree: Tree) -> list[str]:
        """Name the content of a tree that the format drops."""
        has_content = {
            "counts": tree.counts is not None,
            "names": tree.names is not None,
            "order": tree.n_labels > 1,
            "numbers": tree.n_labels > 1,
            "meta": bool(tree.meta),
        }
        return [
            description
            for part, description in CONTENT.items()
            if has_content[part] and part not in self.keeps
        ]


def check_quotable(tree: Tree, allowed: str, reason: str, *, names: bool = True) -> None:
    """Raise InputError for the first label or node name that a format cannot quote.

    `allowed` is a regular expression that the whole text must match, and `reason` is a clause of
    the message. Names are not checked if `names` is False.
    """
    pattern = re.compile(allowed)
    for label in tree.labels:
        if pattern.fullmatch(label) is None:
            raise InputError(f"the label {label!r} cannot be written: {reason}; rename it")
    node_names = tree.names if names and tree.names is not None else ()
    for node, name in enumerate(node_names):
        if name is not None and pattern.fullmatch(name) is None:
            raise InputError(
                f"the name of node {node}, {name!r}, cannot be written: {reason}; rename it"
            )


def list_edges(tree: Tree) -> Iterator[tuple[int, int, int]]:
    """Yield the node, the child and the branch of each edge."""
    return zip(tree.edge_node.tolist(), tree.child.tolist(), tree.edge_branch.tolist(), strict=True)


def write_lines(make_lines: Callable[[Tree], Iterable[str]], tree: Tree, path: Path) -> None:
    """Write the lines of a tree to a text file; an error in `make_lines` leaves no file."""
    with replacing(path) as file:
        file.writelines(line.encode() for line in make_lines(tree))


def read_labels_or_numbers(
    path: Path, labels: Path | None, n_labels: int
) -> tuple[Sequence[str], Int64 | None]:
    """Return the labels and counts for a file that numbers its labels, as `read_labels` does.

    Without a file of labels, the labels are their numbers.
    """
    content = read_labels(path, labels)
    if content is None:
        return RowNumbers(n_labels), None
    return content.words, content.counts


def replacing_labelled(tree: Tree, path: Path) -> AbstractContextManager[BinaryIO]:
    """Open the file of a tree for writing, as `replacing_with_labels` does."""
    return replacing_with_labels(
        path, tree.labels, tree.counts, collect_sources(tree.meta.get("input"))
    )
