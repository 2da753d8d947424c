"""The function that writes the page of a comparison, for results that draw themselves.

`hstree.report`, which draws the page, is a room below `hstree.experiments`, whose results offer it
as a method; they must not import it. So `hstree` itself, which knows every room, names the function
here once, and it is imported when the first page is written.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

_writer = ""


def written_by(function: str) -> None:
    """Name the function ("module:attribute") that `write` calls."""
    global _writer
    _writer = function


def write(comparison: object, folder: Path, output: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison, whose trees are in `folder`, and return its path."""
    module, _, attribute = _writer.partition(":")
    path: Path = getattr(import_module(module), attribute)(comparison, folder, output)
    return path
