"""Output of the benchmarks: the environment, then rows as a markdown table or as JSON.

    arguments = table.parser(__doc__).parse_args()
    table.report("trees", rows, arguments.json)

Rows are mappings of column to figure; all have the columns of the first, or some of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hstree._files import write_json
from hstree._version import __version__

Row = Mapping[str, Any]

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a command line with ``--json FILE``, for a benchmark to add its own options to."""
    command = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON too")
    return command


def environment() -> dict[str, Any]:
    """Return what figures depend on: versions, and the cores that this process may use."""
    facts: dict[str, Any] = {"hstree": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    facts["cores"] = len(os.sched_getaffinity(0))
    return facts


def markdown(rows: Sequence[Row]) -> str:
    """Lay rows out as a markdown table, aligned for eyes too; numbers to the right.

    >>> print(markdown([{"tree": "flat", "seconds": 1.5}, {"tree": "huffman", "seconds": 0.25}]))
    | tree    | seconds |
    |:--------|--------:|
    | flat    |    1.50 |
    | huffman |   0.250 |
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numeric = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        f"{'-' * (width + 1)}:" if right else f":{'-' * (width + 1)}"
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([line(columns), f"|{'|'.join(rule)}|", *map(line, cells)])


def report(name: str, rows: Iterable[Row], json_path: Path | None = None) -> None:
    """Print a benchmark's table, and write it as JSON where asked.

    Rows may be a generator that measures as it goes; each is told on standard error as it comes.
    """
    measured = []
    for row in rows:
        measured.append(row)
        print(", ".join(f"{key} {_cell(value)}" for key, value in row.items()), file=sys.stderr)
    where = environment()
    print(f"`python -m benchmarks.{name}`: {', '.join(f'{k} {v}' for k, v in where.items())}\n")
    print(markdown(measured))
    if json_path is not None:
        write_json(json_path, {"benchmark": name, "environment": where, "rows": measured})


def _cell(value: Any) -> str:
    """Write one figure with about three digits, and none that mean nothing."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if type(value) is int else str(value)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"
