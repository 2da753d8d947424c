"""A page of a comparison: one self-contained HTML file, which needs no network."""

import os
from collections.abc import Callable
from pathlib import Path

from hstree import progress
from hstree._files import replacing
from hstree.experiments import results, survey
from hstree.experiments.results import Comparison
from hstree.report.page import page_of
from hstree.report.survey_page import survey_page_of

__all__ = ["PAGE", "SURVEY_PAGE", "write", "write_comparison", "write_survey"]

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
    FileFormatError
        When `folder` lacks results or a tree of theirs, or the page cannot be written.
    """
    return write_comparison(results.load(folder), folder, output or Path(folder, PAGE))


def write_comparison(
    comparison: Comparison, folder: str | os.PathLike[str], output: str | os.PathLike[str]
) -> Path:
    """Write the page of a comparison, whose trees are in `folder`; otherwise as `write`."""
    return _written(Path(output), lambda: page_of(comparison, Path(folder)))


def write_survey(
    folder: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Path:
    """Write the page of a survey, by default ``survey.html`` in its folder; as `write` does."""
    found = survey.load(folder)
    return _written(Path(output or Path(folder, SURVEY_PAGE)), lambda: survey_page_of(found))


def _written(target: Path, page_of: Callable[[], str]) -> Path:
    with progress.task(f"writing {target}"):
        page = page_of()
        with replacing(target) as file:
            file.write(page.encode())
    return target
