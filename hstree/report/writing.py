"""From a comparison's folder to its page, and nothing of how the page looks."""

from __future__ import annotations

import os
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree._optional import require
from hstree.experiments import results

#: What the page is called, in the comparison's folder.
PAGE = "report.html"


def write(folder: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a comparison.

    Parameters
    ----------
    folder : path
        What `hstree compare` left: ``results.json`` and the trees that it names.
    output : path, optional
        The page; ``report.html`` in `folder` without.

    Returns
    -------
    Path
        Of the page. The same folder gives the same bytes.

    Raises
    ------
    MissingExtraError
        When the plotting library is not installed.
    FileFormatError
        When `folder` holds no results or not its trees, or the page cannot be written.
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
