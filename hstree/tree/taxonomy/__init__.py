"""Trees made from taxonomies: the content of a tree for each form of input.

Each form has a reader that returns an `Outline`, and `collapse` makes a tree from the outline. If
the form is not obvious, an explicit rule decides (``docs/taxonomies.md``); the tree's meta and
`hstree.progress` state the rule.
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

#: File extension -> reader.
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
    """Return the content of the tree of a taxonomy; see `Tree.from_taxonomy`."""
    # A string is Newick text, or the name of a file
    is_newick = isinstance(source, str) and (
        source.lstrip()[:1] == "(" or source.rstrip().endswith(";")
    )
    if isinstance(source, str | os.PathLike) and not is_newick:
        name = os.fspath(source)
        reader = READERS.get(Path(name).suffix)
        if reader is None:
            raise InputError(
                f"{quoted(name)} is neither Newick text, which ends in a semicolon, nor the name "
                f"of a file in {', '.join(READERS)}; read other trees with hstree.formats.read"
            )
        content = read_file(source, reader)
    else:
        content = tree_content(_read_outline(source))
    # Report the rule if the form was not obvious
    if rule := content.meta["input"].get("read_as"):
        progress.say(f"taxonomy read as {rule}")
    return content


def read_file(path: str | os.PathLike[str], reader: Callable[[str], Outline]) -> Content:
    """Read a file with a reader of its text; return the content of the tree."""
    text = read_text(path)
    with naming(path):
        return tree_content(reader(text), {"kind": "taxonomy file", "name": Path(path).name})


def _read_outline(source: Any) -> Outline:
    """Read a taxonomy in memory with the reader for its type."""
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
