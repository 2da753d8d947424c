"""Tree files of other tools: reading, writing, and the content that each format drops.

There is one module per format. hstree's own format (``.json``, ``.json.gz``, ``.npz``) is one of
the formats, so that `read` and `write` convert between any two. ``docs/formats.md`` describes them.
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

#: hstree's own format.
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
        One of `FORMATS` (default: by the extension of the file).
    labels : str or path, optional
        File of labels for linkage and napkinxc, whose files number their labels: one line ``word``
        or ``word<TAB>count`` per label (default: ``NAME.labels.tsv`` beside the file; if there is
        none, labels are numbers).

    Returns
    -------
    Tree
        The meta names the format and the file, except for hstree's own format.

    Raises
    ------
    OptionError
        When the format is unknown or write-only, or `labels` is given for a format with labels.
    InputError, FileFormatError
        When the file does not have this format; the message names the file and the line.
    TreeError
        When the content breaks a rule for trees.

    Examples
    --------
    >>> read("clusters.paths")  # doctest: +SKIP
    Tree(10000 labels, 9999 nodes, method='brown')
    """
    source = Path(path)
    chosen = find_format(source, format)
    if chosen.read is None:
        readable = ", ".join(name for name, each in FORMATS.items() if each.read)
        raise OptionError(f"{chosen.name} can only be written; formats to read: {readable}")
    if labels is not None and not chosen.takes_labels:
        raise OptionError.about(
            "labels", f"is not for {chosen.name} files, which contain their labels; leave it out"
        )
    with progress.task(f"reading {source.name}"):
        if chosen is _TREE:
            return load_tree(source)
        try:
            tree = chosen.read(source, None if labels is None else Path(labels))
        except TreeError as error:
            raise TreeError(f"{source}: {error}") from error

        # Record the file, the texts of its labels, and the rule for reading a taxonomy
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
        return tree.with_meta(tree.meta | meta)  # the meta of a taxonomy has names of nodes


def write(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a tree file.

    Parameters
    ----------
    tree : Tree
    path : str or path
        An existing file is replaced when the new one is complete.
    format : str, optional
        One of `FORMATS` (default: by the extension of the file).

    Raises
    ------
    OptionError
        When the format is unknown or read-only.
    InputError
        When the format cannot hold the tree: several codes per label, wide nodes, or labels that
        cannot be quoted. `losses` names the content that is only dropped.
    FileFormatError
        When the file cannot be written.
    """
    target = Path(path)
    chosen = find_format(target, format)
    if chosen.write is None:
        writable = ", ".join(name for name, each in FORMATS.items() if each.write)
        raise OptionError(f"{chosen.name} can only be read; formats to write: {writable}")
    with progress.task(f"writing {target.name}"):
        try:
            chosen.write(tree, target)
        except InputError as error:
            raise InputError(f"{target} as {chosen.name}: {error}") from error


def losses(tree: Tree, path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """Name the content of a tree that `write` would drop, such as counts."""
    return find_format(Path(path), format).losses(tree)


def find_format(path: Path, name: str | None = None) -> Format:
    """Return a format by name, or by the extension of `path`.

    Raises OptionError if it is unknown, and InputError if the file is a pickle or a zip file.
    """
    if name is not None:
        if name not in FORMATS:
            raise OptionError(f"no format {name!r}; there are {', '.join(FORMATS)}")
        return FORMATS[name]
    # An extension may have two parts, such as .json.gz
    endings = {ending: each for each in FORMATS.values() for ending in each.endings}
    ending = next(filter(path.name.endswith, endings), None)
    if ending is None:
        refuse_containers(path)
        known = ", ".join(sorted(endings))
        raise OptionError(
            f"no format has the ending of {path}; use {known}, or name a format; to make a tree "
            "from vectors or a text, build it"
        )
    return endings[ending]
