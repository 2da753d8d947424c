"""A page of a comparison: one self-contained HTML file, which needs no network.

Its plots need the ``report`` extra, which nothing else does.
"""

import os
from collections.abc import Callable
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree._optional import require
from hstree.experiments import results, survey

__all__ = ["PAGE", "SURVEY_PAGE", "write", "write_survey"]

#: Names of the pages in the folders of a comparison and of a survey.
PAGE, SURVEY_PAGE = "report.html", "survey.html"


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
    _require()
    from hstree.report.page import page_of

    comparison = results.load(folder)
    return _written(Path(output or Path(folder, PAGE)), lambda: page_of(comparison, Path(folder)))


def write_survey(
    folder: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Path:
    """Write the page of a survey, by default ``survey.html`` in its folder; as `write` does."""
    _require()
    from hstree.report.survey_page import survey_page_of

    found = survey.load(folder)
    return _written(Path(output or Path(folder, SURVEY_PAGE)), lambda: survey_page_of(found))


def _require() -> None:
    require("jinja2", "report")
    require("bokeh", "report", at_least="3.4")


def _written(target: Path, page_of: Callable[[], str]) -> Path:
    with progress.task(f"writing {target}"):
        page = page_of()
        with replacing(target) as file:
            file.write(page.encode())
    return target
