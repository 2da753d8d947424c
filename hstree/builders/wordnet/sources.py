"""Sources of WordNet: the table in hstree, or another table."""

from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from hstree._files import open_regular, unpacking_reader
from hstree._text import strict_text
from hstree.builders.wordnet.taxonomy import Taxonomy
from hstree.errors import explained


@cache
def built_in() -> Taxonomy:
    """Return the WordNet 3.0 in hstree. It is read once, which takes about a second."""
    with as_file(files("hstree.builders.wordnet").joinpath("wordnet30.tsv.xz")) as path:
        return _read_table(path)


def open_taxonomy(source: str = "builtin") -> Taxonomy:
    """Read a WordNet: "builtin", or the file name of a table.

    Raises InputError when the file cannot be read, and FileFormatError when it is not a table.
    """
    return built_in() if source == "builtin" else _read_table(Path(source))


def _read_table(path: Path) -> Taxonomy:
    remedy = "make a table with scripts/make_wordnet_table.py"
    with explained(f"read the WordNet {path}", remedy=remedy), open_regular(path) as file:
        return Taxonomy(strict_text(unpacking_reader(file, ".xz")(-1), str(path)))
