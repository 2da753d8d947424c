"""`hstree report`: a page to look at, made of what `hstree compare` left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import Quiet


@examples("hstree report ptb", "hstree report ptb -o ptb.html")
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="What `hstree compare` left.", show_default=False, readable=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page; DIR/report.html by default.",
            readable=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page with a comparison's table, plots and trees.

    It opens in any browser and asks nothing of a network. It needs the
    "report" extra; without it, the message says how to install that.
    """
    from hstree.experiments.results import JSON
    from hstree.report import PAGE, write
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_file
    from hstree_cli.progressbar import showing_progress

    target = folder / PAGE if output is None else output
    if output is not None:
        read = [folder / JSON, *folder.glob("runs/*/*/tree.json")]
        check_file(output, "-o", (".html", ".htm"), apart_from=read)
    with showing_progress(quiet):
        page = write(folder, target)
    say(facts([("written", f"{page}, {page.stat().st_size / 1e6:.1f} MB: open it in a browser")]))
