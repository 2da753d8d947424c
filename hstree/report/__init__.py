"""The page of a comparison: one self-contained HTML file, which needs no network."""

import os
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree.errors import InputError
from hstree.experiments.results import Comparison
from hstree.report.page import make_page, render

__all__ = ["write"]


def write(comparison: Comparison, path: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison; return its path.

    A candidate is shown without its tree if the tree file is not in the folder of the comparison.
    The same comparison gives the same bytes. Raises InputError if the comparison has no folder, and
    FileFormatError if the page cannot be written.
    """
    if comparison.folder is None:
        raise InputError("this comparison has no folder with its trees; set it with in_folder(...)")
    target = Path(path)
    with progress.task(f"writing {target}"):
        html = render(make_page(comparison, comparison.folder), comparison.folder)
        with replacing(target) as file:
            file.write(html.encode())
    return target
