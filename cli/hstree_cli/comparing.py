"""What `hstree compare` and `hstree demo` share: compare, print, write the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hstree_cli.exits import INTERRUPTED

if TYPE_CHECKING:
    from hstree.experiments.evaluation import Splits

#: What is written in the folder of a comparison.
KEPT = ("results.json", "results.csv", "report.html", "runs")


def run_comparison(splits: Splits, output: Path, quiet: bool, **what: Any) -> None:
    """Compare in a folder, print what was found, and write a page of it.

    Parameters
    ----------
    splits : Splits
    output : Path
    quiet : bool
        Show no progress.
    **what
        Methods, trees, baselines, seeds and options, as `hstree.experiments.compare` takes them.

    Raises
    ------
    typer.Exit
        After Ctrl-C, having said what is kept.
    """
    from hstree.experiments import compare
    from hstree.report import PAGE
    from hstree_cli.comparison_table import print_comparison
    from hstree_cli.console import say
    from hstree_cli.messages import complain
    from hstree_cli.outputs import written
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin

    try:
        with showing_progress(quiet):
            found = compare(splits, output, **what)
    except KeyboardInterrupt:
        complain(
            f"interrupted; every finished run is kept in {output / 'runs'}, "
            "and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    said: list[str] = []
    with written((output / PAGE, lambda _: said.append(_write_page(output, quiet)))):
        print_comparison(found, origin(splits.train), f"{output}/")
        for line in said:
            say(f"\n{line}")


def _write_page(output: Path, quiet: bool) -> str:
    """Write the page where its plots can be drawn; say where it is, or why there is none."""
    from hstree.errors import MissingExtraError
    from hstree.report import write
    from hstree_cli.messages import printable
    from hstree_cli.progressbar import showing_progress

    try:
        with showing_progress(quiet):
            return f"A page to look at: {printable(str(write(output)))}"
    except MissingExtraError as error:
        return f"There is no page to look at: {error}; then `hstree report {output}`"
