"""`hstree check`: the rules of the format that a tree file breaks."""

from __future__ import annotations

import typer

from hstree_cli.options import Quiet, TreeFile
from hstree_cli.terminal import BAD_INPUT, complain, say, showing_progress


def check(tree: TreeFile, quiet: Quiet = False) -> None:
    """Check a tree file; name every rule of the format that it breaks, one per line.

    Print the Kraft sum of the codes of a valid tree; it is 1.
    """
    from hstree.tree import Codes, Tree
    from hstree.tree.files import read_content

    with showing_progress(quiet):
        content = read_content(tree)
        broken = content.broken_rules()
        kraft = None if broken else Codes(Tree.from_content(content), cache_limit=0).kraft_sum()
    for rule in broken:
        complain(f"{tree}: {rule}")
    if broken:
        raise typer.Exit(BAD_INPUT)
    say(f"{tree}: every rule kept\nKraft sum of the codes: {kraft!r}")
