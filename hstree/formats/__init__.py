"""Trees in the formats of other tools: reading, writing, and what each of them cannot hold.

One format a file. The library's own (``.json``, ``.json.gz``, ``.npz``) is one of them, so that
`read` and `write` go between any two. ``docs/formats.md`` describes them all.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hstree import progress
from hstree._files import read_regular, reading
from hstree._version import __version__
from hstree.data.vector_files.npy import labels_path, texts_of_file
from hstree.errors import FileFormatError, InputError, OptionError, TreeError
from hstree.formats import brown, dot, linkage, napkinxc, nested, networkx, newick
from hstree.formats.base import PARTS, Format
from hstree.tree import Tree
from hstree.tree import files as treefile
from hstree.tree import load as load_tree

__all__ = ["FORMATS", "Format", "format_of", "losses", "read", "write"]

_TREE = Format(
    "tree",
    treefile.ENDINGS,
    frozenset(PARTS),
    write=treefile.save,
    read=lambda path, labels: load_tree(path),
)

#: All formats by name.
FORMATS = {
    each.name: each
    for each in (
        _TREE,
        dot.FORMAT,
        networkx.FORMAT,
        newick.FORMAT,
        brown.FORMAT,
        napkinxc.FORMAT,
        linkage.FORMAT,
        nested.FORMAT,
    )
}


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
) -> Tree:
    """Read a tree in any format that is read.

    Parameters
    ----------
    path : str or path
    format : str, optional
        One of `FORMATS`; by default the file's ending says which.
    labels : str or path, optional
        For linkage and napkinxc, whose files number their labels: lines of ``word`` or
        ``word<TAB>count``, one for each. Without it ``NAME.labels.tsv`` beside the file is read;
        without that too, labels are called by their numbers.

    Returns
    -------
    Tree
        Where it is not the library's own format, its meta names the format and the file.

    Raises
    ------
    OptionError
        When the format is unknown or only written, or `labels` is given for another.
    InputError, FileFormatError
        When the file cannot be read as that; the message names it, and the line where it has lines.
    TreeError
        When what it holds breaks a rule of trees.

    Examples
    --------
    >>> read("clusters.paths")  # doctest: +SKIP
    Tree(10000 labels, 9999 nodes, method='brown')
    """
    source = Path(path)
    chosen = format_of(source, format)
    if chosen.read is None:
        readable = ", ".join(name for name, each in FORMATS.items() if each.read)
        raise OptionError(f"{chosen.name} is only written, not read; what is read: {readable}")
    if labels is not None and not chosen.takes_labels:
        raise OptionError(f"{chosen.name} files hold their labels themselves; leave out --labels")
    with progress.task(f"reading {source.name}"):
        if chosen is _TREE:
            return load_tree(source)
        try:
            tree = chosen.read(source, None if labels is None else Path(labels))
        except TreeError as error:
            raise TreeError(f"{source}: {error}") from error
        return tree.with_meta(_meta(source, chosen, labels))


def write(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a tree in any format.

    Parameters
    ----------
    tree : Tree
    path : str or path
        What stands there is replaced, and only when the new file is whole.
    format : str, optional
        One of `FORMATS`; by default the file's ending says which.

    Raises
    ------
    OptionError
        When the format is unknown.
    InputError
        When it cannot hold the tree: several codes a label, wide nodes, labels that it cannot
        quote. The message names the first. What it only drops, `losses` tells.
    FileFormatError
        When the file cannot be written.
    """
    target = Path(path)
    chosen = format_of(target, format)
    with progress.task(f"writing {target.name}"):
        try:
            chosen.write(tree, target)
        except InputError as error:
            raise InputError(f"{target} as {chosen.name}: {error}") from error


def losses(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """Name what `write` would drop of a tree, such as its counts; nothing where all is kept.

    Raises
    ------
    OptionError
        When the format is unknown.
    """
    return format_of(Path(path), format).losses(tree)


def format_of(path: Path, name: str | None = None) -> Format:
    """Return the format of this name, or else the one that the ending of `path` says.

    Raises
    ------
    OptionError
        When there is no such format, or the ending is unknown.
    """
    if name is not None:
        if name not in FORMATS:
            raise OptionError(f"no format {name!r}; there are {', '.join(FORMATS)}")
        return FORMATS[name]
    # .nested.json before .json
    endings = sorted(
        ((ending, each) for each in FORMATS.values() for ending in each.endings),
        key=lambda pair: -len(pair[0]),
    )
    for ending, each in endings:
        if path.name.endswith(ending):
            return each
    known = ", ".join(ending for ending, _ in sorted(endings, key=lambda pair: pair[0]))
    raise OptionError(f"the ending of {path} says no format; it may be {known}, or name one")


def _meta(path: Path, chosen: Format, labels: str | os.PathLike[str] | None) -> dict[str, object]:
    """Return how a tree was made that came from a file of another format."""
    with reading(path, FileFormatError):
        digest = hashlib.sha256(read_regular(path)).hexdigest()
    source: dict[str, object] = {"kind": f"{chosen.name} file", "name": path.name, "sha256": digest}
    if chosen.takes_labels and (made_from := texts_of_file(labels or labels_path(path))):
        source["texts"] = made_from
    return {"method": chosen.name, "options": {}, "hstree": __version__, "input": source}
