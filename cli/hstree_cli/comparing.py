"""What `hstree compare` and `hstree demo` share: compare, print, and say how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hstree_cli.exits import INTERRUPTED

if TYPE_CHECKING:
    from hstree.evaluation import Parts


def run_comparison(parts: Parts, output: Path, quiet: bool, **what: Any) -> None:
    """Compare in a folder, and print what was found.

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
