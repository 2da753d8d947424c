"""What `hstree compare` and `hstree demo` share: compare, print, write the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hstree_cli.exits import INTERRUPTED

if TYPE_CHECKING:
    from hstree.evaluation import Parts


def run_comparison(parts: Parts, output: Path, quiet: bool, **what: Any) -> None:
    """Compare in a folder, print what was found, and write a page of it.

    Parameters
    ----------
    parts : Parts
    output : Path
    quiet : bool
        Show no progress.
    **what
        Methods, trees, baselines, seeds and options, as `hstree.comparison.compare` takes them.

    Raises
    ------
    typer.Exit
        After Ctrl-C, having said what is kept.
    """
    from hstree.comparison import compare
    from hstree_cli.comparison_table import print_comparison
    from hstree_cli.console import say
    from hstree_cli.messages import complain
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin

    try:
        with showing_progress(quiet):
            found = compare(parts, output, **what)
    except KeyboardInterrupt:
        complain(
            f"interrupted; every finished run is kept in {output / 'runs'}, "
            "and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    print_comparison(found, origin(parts.train), f"{output}/")
    with showing_progress(quiet):
        said = _write_page(output)
    say(f"\n{said}")


def _write_page(output: Path) -> str:
    """Write the page where its plots can be drawn; say where it is, or why there is none."""
    from hstree.errors import MissingExtraError
    from hstree.report import write

    try:
        return f"A page to look at: {write(output)}"
    except MissingExtraError as error:
        return f"There is no page to look at: {error}; then `hstree report {output}`"
