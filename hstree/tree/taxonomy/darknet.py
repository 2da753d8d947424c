"""Taxonomies from ``.tree`` files of darknet: lines of a name and the number of its parent's line.

Lines are numbered from 0, and -1 is no parent.
"""

import re

from hstree._text import quoted
from hstree.errors import InputError
from hstree.tree.taxonomy.outline import Outline

_LINE = re.compile(r"(\S+)[ \t]+(-1|[0-9]{1,9})")


def read_darknet(text: str) -> Outline:
    """Read the text of a ``.tree`` file; several items without a parent get a root."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError("the file is empty; give lines of a name and its parent's line, from 0")
    outline = Outline("darknet")
    for number, line in lines:
        match = _LINE.fullmatch(line.strip())
        parent = -1 if match is None else int(match[2])
        if match is None or parent >= len(lines):
            raise InputError(
                f"line {number}: expected a name and the number of its parent's line, from 0 to "
                f"{len(lines) - 1:,}, or -1, found {quoted(line)}; Newick is read as .nwk, a table "
                "as .csv"
            )
        outline.add(match[1], parent)
    roots = [item for item, parent in enumerate(outline.parents) if parent < 0]
    if len(roots) > 1:
        root = outline.add(None, -1)
        for item in roots:
            outline.parents[item] = root
    return outline
