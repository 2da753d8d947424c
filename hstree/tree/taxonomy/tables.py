"""Taxonomies from rows: pairs of parents and children, columns of levels, and CSV files.

A list of pairs contains edges. A table (a DataFrame or a file) contains parents and children, or
levels. Rows that are not pairs contain levels.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

import numpy as np

from hstree._text import brief, quoted
from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing
from hstree.tree.taxonomy.outline import Outline, read_edges

#: Titles of a column of parents, in addition to those that contain "parent". The other of the two
#: columns then has the children.
PARENT_TITLES = ("source", "from", "broader")
#: Text representations of missing values in pandas and NumPy.
MISSING_AS_TEXT = ("nan", "NaN", "<NA>", "NaT")

#: Rows of a table below the titles, each with its number for messages.
Rows = Sequence[tuple[int, Sequence[Any]]]


def read_array(values: Any) -> Outline:
    """Read an array or a DataFrame of pairs or of levels; columns have titles."""
    titles = list(map(str, getattr(values, "columns", ())))
    index = getattr(values, "index", None)
    if titles and index is not None and (index.name or index.dtype.kind not in "iu"):
        raise InputError(
            "the DataFrame has an index beside its columns; make it a column with reset_index(), "
            "or drop it with reset_index(drop=True)"
        )
    array = np.asarray(values, object) if titles else np.ma.asarray(values)
    # Masked values become None
    rows: list[Any] = array.tolist()
    return read_rows(rows if array.ndim else [rows], titles)


def read_rows(source: Iterable[Any], titles: Sequence[str] = ()) -> Outline:
    """Read rows: a table if there are titles, edges if all rows are pairs, otherwise levels."""
    # Rows with their numbers, for messages
    rows: list[tuple[int, Sequence[Any]]] = []
    for number, row in enumerate(source):
        if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str | bytes):
            raise InputError(
                f"item {number} is {quoted(brief(row))}, no pair (parent, child); give only pairs"
            )
        rows.append((number, list(row)))
    if not rows:
        raise InputError("the taxonomy has no edge; give pairs (parent, child)")
    if titles:
        return _read_table(rows, titles)
    if all(len(row) == 2 for _, row in rows):
        edges = [(row[0], row[1]) for _, row in rows]
        return read_edges(edges, "edges", "pairs (parent, child)")
    outline = _read_levels(rows, "levels")
    outline.read_as = "levels from the top down; the last name of a row is its class"
    return outline


def read_csv(text: str) -> Outline:
    """Read the text of a table; the most frequent separator in its first line is used.

    The first line has titles, unless one of its cells occurs again below.
    """
    first_line = re.sub('"[^"]*"', "", text.partition("\n")[0])
    delimiter = max(",;\t|", key=first_line.count)
    lines = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    # Non-empty rows, with stripped cells
    rows = []
    try:
        for line in lines:
            cells = [cell.strip() for cell in line]
            if any(cells):
                rows.append((lines.line_num, cells))
    except csv.Error as error:
        raise InputError(f"line {lines.line_num}: {error}; correct the quotes") from error
    if not rows:
        raise InputError("the file is empty; give parents and children, or columns of levels")

    # The first row has titles if none of its cells occurs again
    first_row = rows[0][1]
    cells_below = {cell for _, row in rows[1:] for cell in row} - {""}
    repeated = next((cell for cell in first_row if cell in cells_below), None)
    if repeated is not None:
        outline = _read_table(rows, ())
        outline.read_as += f"; without titles, since {repeated!r} of line 1 occurs again"
        return outline
    for number, row in rows:
        if len(row) > len(first_row):
            raise InputError(
                f"line {number} has {len(row)} cells, and there are {len(first_row)} titles; quote "
                "names that contain the separator"
            )
    outline = _read_table(rows[1:], first_row)
    titles = ", ".join(map(repr, first_row))
    outline.read_as += f"; titles are {titles}, since none occurs again"
    return outline


def _is_parent_title(title: str) -> bool:
    """Return whether a column with this title holds parents."""
    plain = title.strip().lower()
    return "parent" in plain or plain in PARENT_TITLES


def _read_table(rows: Rows, titles: Sequence[str]) -> Outline:
    """Read two columns of parents and children, or columns of levels.

    Two columns are parents and children if a title says so, or if a name is in both columns and no
    row has the same name twice.
    """
    width = max((len(row) for _, row in rows), default=0)
    if width < 2:
        size = "one column" if width else "no row"
        raise InputError(f"the table has {size}; give parents and children, or columns of levels")
    parent_titles = [title for title in titles if _is_parent_title(title)]
    if parent_titles and (width != 2 or len(parent_titles) > 1):
        raise InputError(
            f"the table has a column {parent_titles[0]!r} and {width} columns; keep the columns of "
            "parents and children only"
        )
    # Two columns are parents and children if a title says so, or if a name is in both
    if width == 2:
        pairs = [(row[0], row[1] if len(row) == 2 else None) for _, row in rows]
        if parent_titles:
            if _is_parent_title(titles[1]):
                pairs = [(below, above) for above, below in pairs]
            rule = f"parents and children, by the title {parent_titles[0]!r}"
            return read_edges(pairs, "table", rule)
        if (shared := _find_shared_name(pairs)) is not None:
            rule = f"parents and children, since {shared!r} is in both columns"
            return read_edges(pairs, "table", rule)
    # Otherwise, columns are levels
    outline = _read_levels(rows, "table")
    columns = " > ".join(titles) if titles else f"{width} columns"
    outline.read_as = f"levels from the top down, {columns}; the last name of a row is its class"
    return outline


def _find_shared_name(pairs: Sequence[tuple[Any, Any]]) -> str | None:
    """Return a name that is in both columns; None if a row has the same name twice."""
    names = [[None if is_missing(cell) else class_name(cell) for cell in pair] for pair in pairs]
    if any(above == below for above, below in names):
        return None
    children = {below for _, below in names}
    return next((above for above, _ in names if above is not None and above in children), None)


def _read_levels(rows: Rows, kind: str) -> Outline:
    """Read rows of names from the top down, under one root; ignore empty cells at the end.

    Rows may repeat, for example if each row is a sample.
    """
    outline = Outline(kind)
    root = outline.add(None, -1)
    items: dict[tuple[int, str], int] = {}
    paths = dict[tuple[str, ...], None]()
    for number, row in rows:
        path = _row_path(number, row)
        paths[path] = None
        # An item is identified by its parent and its name
        item = root
        for name in path:
            key = (item, name)
            if key not in items:
                items[key] = outline.add(name, item)
            item = items[key]
    # Refuse a column of ids above the classes, since each id would have one child
    long_paths = [path for path in paths if len(path) > 1]
    if len(long_paths) > 2 and len({path[0] for path in long_paths}) == len(long_paths):
        raise InputError(
            f"the first column has another value in each row ({quoted(long_paths[0][0])}, "
            f"{quoted(long_paths[1][0])}, ...), like ids or classes; give levels from the top "
            "down without ids, or use the builder flat for a tree without levels"
        )
    return outline


def _row_path(number: int, row: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of a row. Raises InputError for empty cells before the last name."""
    try:
        cells = [None if is_missing(cell) else class_name(cell) for cell in row]
    except InputError as error:
        raise InputError(f"row {number}: {error}") from error
    # The last levels of a short branch are empty
    while cells and cells[-1] is None:
        cells.pop()
    path = tuple(cell for cell in cells if cell is not None)
    if len(path) < len(cells):
        raise InputError(
            f"row {number} has an empty cell before its last name; fill it, or leave out the "
            "levels below"
        )
    if missing := set(MISSING_AS_TEXT).intersection(path):
        raise InputError(
            f"row {number} has the cell {min(missing)!r}, which means a missing value; leave the "
            "cell empty, or rename a class of this name"
        )
    return path
