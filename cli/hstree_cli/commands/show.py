"""`hstree show`: the top of a tree, or the codes of a word."""

from __future__ import annotations

from typing import Annotated

from hstree_cli.options import Quiet, TreeFile, option
from hstree_cli.terminal import say, showing_progress


def show(
    tree: TreeFile,
    word: Annotated[str | None, option("--word", "Show the codes of this word.", "W")] = None,
    depth: Annotated[
        int | None,
        option(
            "--depth", "Number of decisions from the root (default: 3; with --word 40).", "D", min=1
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the top of a tree, or the codes of a word.

    Each branch has its share of the counts, its leaves and its most frequent words.
    """
    from hstree.tree import load
    from hstree.tree.branches import Branches
    from hstree_cli.tree_drawing import draw_codes, draw_top, label_id

    with showing_progress(quiet):
        branches = Branches(load(tree))
        if word is None:
            views = [draw_top(branches, depth or 3)]
        else:
            views = list(draw_codes(branches, label_id(branches.tree, word), depth or 40))
    for view in views:
        say(view)
