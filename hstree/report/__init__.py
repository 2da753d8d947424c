"""A page of a comparison: one self-contained HTML file, which needs no network."""

import os
from html import escape
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree.experiments.results import Comparison
from hstree.report.answer import verdict_of
from hstree.report.figure import links_of, styles_of
from hstree.report.page import markup, page_of
from hstree.report.plots import plots_of

__all__ = ["PAGE", "in_notebook", "verdict_of", "write"]

#: Name of the page in the folder of a comparison.
PAGE = "report.html"


def write(comparison: Comparison, folder: Path, output: str | os.PathLike[str]) -> Path:
    """Write the page of a comparison, whose trees are in `folder`; return its path.

    A candidate whose tree file is missing is shown without its tree. The same comparison gives the
    same bytes. Raises FileFormatError when the page cannot be written.
    """
    target = Path(output)
    with progress.task(f"writing {target}"):
        page = markup(page_of(comparison, folder), folder)
        with replacing(target) as file:
            file.write(page.encode())
    return target


def in_notebook(comparison: Comparison) -> str:
    """Return the first screen of the page and the main columns as HTML of a notebook."""
    verdict, picture = "<br>".join(map(escape, verdict_of(comparison).lines())), ""
    for figure in plots_of(comparison)[:1]:
        svg, _ = links_of(figure, styles_of(comparison.candidates, comparison.best))
        picture = f'<img src="{svg.href}" alt="{escape(figure.title)}" width="600">'
    return f"<p>{verdict}</p>{picture}{comparison.table()._repr_html_()}"
