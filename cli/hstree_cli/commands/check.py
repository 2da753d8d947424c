"""`hstree check`: the rules of the format, and which of them a tree file breaks."""

from __future__ import annotations

import typer

from hstree_cli.examples import examples
from hstree_cli.exits import BAD_INPUT
from hstree_cli.options import Quiet, TreeFile


@examples("hstree check huffman.json")
def check(tree: TreeFile, quiet: Quiet = False) -> None:
    """Name every rule of the format that a tree file breaks, a line each.

    Print the Kraft sum of the codes of a valid tree; it is 1.
    """
    from hstree.tree import Codes, Tree
    from hstree.tree.files import read_content
    from hstree_cli.console import say
    from hstree_cli.messages import complain
    from hstree_cli.progressbar import showing_progress

    with showing_progress(quiet):
        content = read_content(tree)
        broken = content.broken_rules()
        mass = None if broken else Codes(Tree.from_content(content), cache_limit=0).kraft_sum()
    for rule in broken:
        complain(f"{tree}: {rule}")
    if broken:
        raise typer.Exit(BAD_INPUT)
    say(f"{tree}: every rule kept\nKraft sum of the codes: {mass!r}")
