"""Tables of a taxonomy: columns of parents and children, or of levels. Read, not written.

`Tree.from_taxonomy` reads the same, and other forms.
"""

from pathlib import Path

from hstree.formats.base import Format
from hstree.tree import Tree
from hstree.tree.outlines import of_csv
from hstree.tree.taxonomy import TABLES, read_file


def _read(path: Path, labels: Path | None) -> Tree:
    return Tree(**vars(read_file(path, of_csv)))


FORMAT = Format("taxonomy", TABLES, ("names",), None, _read)
