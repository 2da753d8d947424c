"""Tree files of other tools: reading, writing, and what each format drops.

One format per module. The library's own format (``.json``, ``.json.gz``, ``.npz``) is one of them,
so that `read` and `write` convert between any two. ``docs/formats.md`` describes them all.
"""

import hashlib
import os
from pathlib import Path

from hstree import progress
from hstree._files import read_regular, refuse_containers
from hstree._version import __version__
from hstree.data.word_files import LABELS, texts_of_file
from hstree.errors import FileFormatError, InputError, OptionError, TreeError
from hstree.formats import brown, dot, linkage, napkinxc, networkx, newick
from hstree.formats.base import CONTENT, Format
from hstree.tree import Tree
from hstree.tree import load as load_tree
from hstree.tree.files import ENDINGS, save
from hstree.tree.taxonomy import read_file
from hstree.tree.taxonomy.tables import read_csv

__all__ = ["FORMATS", "Format", "find_format", "losses", "read", "write"]

#: The library's own format.
_TREE = Format("tree", ENDINGS, tuple(CONTENT), save, lambda path, _: load_tree(path))
#: Tables of parents and children, or of levels, as `Tree.from_taxonomy` reads them.
_TAXONOMY = Format(
    "taxonomy",
    (".csv", ".tsv"),
    ("names",),
    None,
    lambda path, _: Tree(**vars(read_file(path, read_csv))),
)

#: All formats by name.
FORMATS = {
    "tree": _TREE,
    "dot": dot.FORMAT,
    "graphml": networkx.FORMAT,
    "newick": newick.FORMAT,
    "brown": brown.FORMAT,
    "napkinxc": napkinxc.FORMAT,
    "linkage": linkage.FORMAT,
    "taxonomy": _TAXONOMY,
}


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
) -> Tree:
    """Read a tree file.

    Parameters
    ----------
    path : str or path
    format : str, optional
        One of `FORMATS` (default: from the file's ending).
    labels : str or path, optional
        For linkage and napkinxc, whose files number their labels: a file with a line ``word`` or
        ``word<TAB>count`` per label (default: ``NAME.labels.tsv`` beside the file; without that
        the labels are their numbers).

    Returns
    -------
    Tree
        Its meta names the format and the file, unless that is in the library's own format.

    Raises
    ------
    OptionError
        When the format is unknown or write-only, or `labels` is given for a format with labels.
    InputError, FileFormatError
        When the file cannot be read as that; the message names the file and the line.
    TreeError
        When its content breaks a rule of trees.

    Examples
    --------
    >>> read("clusters.paths")  # doctest: +SKIP
    Tree(10000 labels, 9999 nodes, method='brown')
    """
    source = Path(path)
    chosen = find_format(source, format)
    if chosen.read is None:
        readable = ", ".join(name for name, each in FORMATS.items() if each.read)
        raise OptionError(f"{chosen.name} is only written; formats that are read: {readable}")
    if labels is not None and not chosen.takes_labels:
        raise OptionError.about(
            "labels", f"is not for {chosen.name} files, which contain their labels"
        )
    with progress.task(f"reading {source.name}"):
        if chosen is _TREE:
            return load_tree(source)
        try:
            tree = chosen.read(source, None if labels is None else Path(labels))
        except TreeError as error:
            raise TreeError(f"{source}: {error}") from error

        # The record of the file, the texts of its labels, and how a taxonomy was read
        record: dict[str, object] = {
            "kind": f"{chosen.name} file",
            "name": source.name,
            "sha256": hashlib.sha256(read_regular(source, FileFormatError)).hexdigest(),
        }
        if chosen.takes_labels:
            label_texts = texts_of_file(labels or source.with_suffix(LABELS))
            if label_texts:
                record["texts"] = label_texts
        taxonomy = tree.meta.get("input")
        if isinstance(taxonomy, dict) and "read_as" in taxonomy:
            record["read_as"] = taxonomy["read_as"]
        meta = {"method": chosen.name, "options": {}, "hstree": __version__, "input": record}
        return tree.with_meta(tree.meta | meta)  # a taxonomy's tree has names in its meta


def write(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a tree file.

    Parameters
    ----------
    tree : Tree
    path : str or path
        An existing file is replaced when the new one is complete.
    format : str, optional
        One of `FORMATS` (default: from the file's ending).

    Raises
    ------
    OptionError
        When the format is unknown or only read.
    InputError
        When the format cannot hold the tree: several codes per label, wide nodes, labels that it
        cannot quote. `losses` names what it merely drops.
    FileFormatError
        When the file cannot be written.
    """
    target = Path(path)
    chosen = find_format(target, format)
    if chosen.write is None:
        writable = ", ".join(name for name, each in FORMATS.items() if each.write)
        raise OptionError(f"{chosen.name} is only read; formats that are written: {writable}")
    with progress.task(f"writing {target.name}"):
        try:
            chosen.write(tree, target)
        except InputError as error:
            raise InputError(f"{target} as {chosen.name}: {error}") from error


def losses(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """Name what `write` would drop of a tree, such as its counts; raises as `find_format`."""
    return find_format(Path(path), format).losses(tree)


def find_format(path: Path, name: str | None = None) -> Format:
    """Return a format by name, or by the ending of `path`.

    Raises OptionError if it is unknown, and InputError if the file is a pickle or a zip.
    """
    if name is not None:
        if name not in FORMATS:
            raise OptionError(f"no format {name!r}; there are {', '.join(FORMATS)}")
        return FORMATS[name]
    # The ending may have two parts, as .json.gz has
    endings = {ending: each for each in FORMATS.values() for ending in each.endings}
    ending = next(filter(path.name.endswith, endings), None)
    if ending is None:
        refuse_containers(path)
        known = ", ".join(sorted(endings))
        raise OptionError(f"no format has the ending of {path}; endings are {known}; or name one")
    return endings[ending]
