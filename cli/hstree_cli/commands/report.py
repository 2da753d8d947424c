"""`hstree report`: the page of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hstree_cli.options import Quiet, argument, examples, option
from hstree_cli.outputs import check_file
from hstree_cli.tables import facts
from hstree_cli.terminal import say, showing_progress


@examples("hstree report ptb", "hstree report ptb -o ptb.html")
def report(
    folder: Annotated[Path, argument("DIR", "The folder that `hstree compare` or `survey` wrote.")],
    output: Annotated[
        Path | None,
        option("--output -o", "The page (default: DIR/report.html or survey.html).", "FILE"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page with a comparison's table, plots and trees.

    It opens in any browser and needs no network. Writing it needs the "report"
    extra; without it, the message says how to install that.
    """
    from hstree.experiments import results, survey
    from hstree.report import write, write_survey

    is_survey = (folder / survey.JSON).exists() and not (folder / results.JSON).exists()
    if output is not None:
        sources = [folder / results.JSON, folder / survey.JSON, *folder.glob("runs/*/*/tree.json")]
        check_file(output, "-o", (".html", ".htm"), apart_from=sources)
    with showing_progress(quiet):
        page = write_survey(folder, output) if is_survey else write(folder, output)
    say(facts([("written", f"{page}, {page.stat().st_size / 1e6:.1f} MB: open it in a browser")]))
