"""A page of a comparison: one self-contained HTML file, which needs no network.

Its plots need the ``report`` extra, which nothing else does.
"""

import os
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree._optional import require
from hstree.experiments import results

__all__ = ["PAGE", "write"]

#: Name of the page in the comparison's folder.
PAGE = "report.html"


def write(folder: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a comparison; the same folder gives the same bytes.

    Parameters
    ----------
    folder : path
        A comparison's folder, with ``results.json`` and the trees that it names.
    output : path, optional
        File to write; by default ``report.html`` in `folder`.

    Returns
    -------
    Path
        Path of the page.

    Raises
    ------
    MissingExtraError
        When the plotting library is not installed.
    FileFormatError
        When `folder` lacks results or a tree of theirs, or the page cannot be written.
    """
    require("jinja2", "report")
    require("bokeh", "report", at_least="3.4")
    from hstree.report.page import page_of

    comparison = results.load(folder)
    target = Path(folder, PAGE) if output is None else Path(output)
    with progress.task(f"writing {target}"):
        page = page_of(comparison, Path(folder))
        with replacing(target) as file:
            file.write(page.encode())
    return target
