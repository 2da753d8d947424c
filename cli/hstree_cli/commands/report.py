"""`hstree report`: the page of a comparison."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.options import Quiet, UsageError, argument, option
from hstree_cli.outputs import check_file
from hstree_cli.tables import facts
from hstree_cli.terminal import say, showing_progress

#: Seconds between two looks at a comparison's file.
POLL = 1.0


def report(
    ctx: typer.Context,
    folder: Annotated[
        Path, argument("DIR", "The folder that `hstree compare` wrote, or results.json in it.")
    ],
    output: Annotated[
        Path | None, option("--output -o", "The page (default: DIR/report.html).", "FILE")
    ] = None,
    follow: Annotated[
        bool, option("--follow", "Write the page again after each row until none is pending.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page with a comparison's table, plots and trees.

    It opens in any browser and needs no network. A comparison that still runs has a
    page, too, which names the rows that are pending.
    """
    from hstree.experiments import results
    from hstree.report import write

    if folder.is_file():
        if folder.name != results.JSON:
            raise UsageError(
                f"{folder} is a file; give the folder that `hstree compare` wrote, or "
                f"{results.JSON} in it",
                ctx,
            )
        folder = folder.parent
    if output is not None:
        reads = [folder / name for name in (results.JSON, "runs", "trees")]
        check_file(output, "-o", (".html", ".htm"), reads=reads)

    def write_page() -> None:
        with showing_progress(quiet):
            page = write(folder, output)
        size = page.stat().st_size / 1e6
        say(facts([("written", f"{page}, {size:.1f} MB: open it in a browser")]))

    write_page()
    if follow:
        for pending in _rows_ended(folder / results.JSON):
            write_page()
            say(facts([("pending", ", ".join(pending) or "none")]))


def _rows_ended(file: Path) -> Iterator[list[str]]:
    """Yield the names of the pending rows whenever the results change, until none is."""
    from hstree.experiments import results

    pending, last = results.load(file).pending, _changed(file)
    while pending:
        time.sleep(POLL)
        if (now := _changed(file)) != last:
            pending, last = results.load(file).pending, now
            yield pending


def _changed(file: Path) -> tuple[int, int]:
    """Return what differs between two versions of a file, which is renamed."""
    status = file.stat()
    return status.st_mtime_ns, status.st_ino
