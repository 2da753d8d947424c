"""Trees of taxonomies: the content of a tree from each shape of input.

Each shape has one reader, which returns an `Outline`, and `collapse` makes a tree from it. Where
shapes look alike, an explicit rule decides (``docs/taxonomies.md``); the tree's meta and
`hstree.progress` name it.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hstree import progress
from hstree._files import read_text
from hstree._text import brief, quoted
from hstree.errors import InputError, naming
from hstree.tree.content import Content
from hstree.tree.taxonomy.collapse import tree_content
from hstree.tree.taxonomy.graphs import read_graph
from hstree.tree.taxonomy.mappings import read_mapping
from hstree.tree.taxonomy.newick import read_newick
from hstree.tree.taxonomy.outline import Outline
from hstree.tree.taxonomy.tables import read_array, read_csv, read_rows

#: Readers of files by their endings.
READERS: dict[str, Callable[[str], Outline]] = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".nwk": read_newick,
    ".newick": read_newick,
}
_SHAPES = (
    "a nested dict, {child: parent}, {node: its children}, edges, a DataFrame, a .csv or .nwk "
    "file, Newick text, or a networkx.DiGraph"
)


def read_taxonomy(source: Any) -> Content:
    """Return the content of a tree; see `Tree.from_taxonomy`."""
    # A text is Newick, or the name of a file
    is_newick = isinstance(source, str) and (
        source.lstrip()[:1] == "(" or source.rstrip().endswith(";")
    )
    if isinstance(source, str | os.PathLike) and not is_newick:
        name = os.fspath(source)
        reader = READERS.get(Path(name).suffix)
        if reader is None:
            raise InputError(
                f"{quoted(name)} is neither Newick text, which ends in a semicolon, nor the name "
                f"of a file in {', '.join(READERS)}; other trees: hstree.formats.read"
            )
        content = read_file(source, reader)
    else:
        content = tree_content(_read_outline(source))
    # Where forms look alike, say which one it was taken for
    if rule := content.meta["input"].get("read_as"):
        progress.say(f"taxonomy read as {rule}")
    return content


def read_file(path: str | os.PathLike[str], reader: Callable[[str], Outline]) -> Content:
    """Return the content of the tree of a file, whose text goes to a reader."""
    text = read_text(path)
    with naming(path):
        return tree_content(reader(text), {"kind": "taxonomy file", "name": Path(path).name})


def _read_outline(source: Any) -> Outline:
    """Read a taxonomy in memory by the reader of its type."""
    if isinstance(source, str):
        return read_newick(source)
    if isinstance(source, Mapping):
        return read_mapping(source)
    if hasattr(source, "is_directed"):
        return read_graph(source)
    if isinstance(source, set | frozenset):
        raise InputError("a set of edges has no order; give a list, such as sorted(edges)")
    if hasattr(source, "__array__"):
        return read_array(source)
    if isinstance(source, Iterable):
        return read_rows(source)
    raise InputError(f"{quoted(brief(source))} is no taxonomy; give {_SHAPES}")
