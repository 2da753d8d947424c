"""`hstree report`: the page of a comparison or survey."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.options import Quiet, UsageError, argument, examples, option
from hstree_cli.outputs import check_file
from hstree_cli.tables import facts
from hstree_cli.terminal import say, showing_progress

#: Seconds between two looks at a comparison's file.
POLL = 1.0


@examples("hstree report ptb", "hstree report ptb -o ptb.html", "hstree report ptb --follow")
def report(
    ctx: typer.Context,
    folder: Annotated[
        Path,
        argument(
            "DIR",
            "The folder that `hstree compare` or `survey` wrote, or the .json file in it.",
        ),
    ],
    output: Annotated[
        Path | None,
        option("--output -o", "The page (default: DIR/report.html or survey.html).", "FILE"),
    ] = None,
    follow: Annotated[
        bool, option("--follow", "Write the page again after each row until none is pending.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page with a comparison's table, plots and trees.

    It opens in any browser and needs no network. A comparison or survey that still
    runs has a page, too, which names the rows that are pending.
    """
    from hstree.experiments import results, survey
    from hstree.report import write, write_survey

    is_survey = (folder / survey.JSON).exists() and not (folder / results.JSON).exists()
    if folder.is_file():
        if folder.name not in (results.JSON, survey.JSON):
            raise UsageError(
                f"{folder} is a file; give the folder that `hstree compare` or `survey` wrote, or "
                f"{results.JSON} or {survey.JSON} in it",
                ctx,
            )
        is_survey, folder = folder.name == survey.JSON, folder.parent
    if output is not None:
        sources = [folder / results.JSON, folder / survey.JSON, *folder.glob("runs*")]
        check_file(output, "-o", (".html", ".htm"), reads=sources)

    def write_page() -> None:
        with showing_progress(quiet):
            page = write_survey(folder, output) if is_survey else write(folder, output)
        size = page.stat().st_size / 1e6
        say(facts([("written", f"{page}, {size:.1f} MB: open it in a browser")]))

    write_page()
    if follow:
        for pending in _rows_ended(folder, is_survey):
            write_page()
            say(facts([("pending", ", ".join(pending) or "none")]))


def _rows_ended(folder: Path, is_survey: bool) -> Iterator[list[str]]:
    """Yield the names of the pending rows whenever the results change, until none is."""
    from hstree.experiments import results, survey

    file = folder / (survey.JSON if is_survey else results.JSON)

    def pending_rows() -> list[str]:
        return survey.load(file).pending if is_survey else results.load(file).pending

    pending, last = pending_rows(), _changed(file)
    while pending:
        time.sleep(POLL)
        if (now := _changed(file)) != last:
            pending, last = pending_rows(), now
            yield pending


def _changed(file: Path) -> tuple[int, int]:
    """Return what differs between two versions of a file, which is renamed."""
    status = file.stat()
    return status.st_mtime_ns, status.st_ino
