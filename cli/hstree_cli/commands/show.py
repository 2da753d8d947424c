"""`hstree show`: the top of a tree, or the codes of a word, with what each branch holds."""

from __future__ import annotations

from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import Quiet, TreeFile


@examples("hstree show huffman.json --depth 3", "hstree show huffman.json --word the")
def show(
    tree: TreeFile,
    word: Annotated[
        str | None, typer.Option("--word", metavar="W", help="Show the codes of this word.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            metavar="D",
            min=1,
            help="Decisions from the root; 3 without a word, 40 with one.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the top of a tree, or a word's codes, with what each branch holds.

    Each branch has its share of the counts, its leaves and its most frequent words.
    """
    from hstree.tree import load
    from hstree.tree.branches import Branches
    from hstree_cli.console import say
    from hstree_cli.drawing import codes_of, label_of, top_of
    from hstree_cli.progressbar import showing_progress

    with showing_progress(quiet):
        branches = Branches(load(tree))
        if word is None:
            drawn = [top_of(branches, depth or 3)]
        else:
            drawn = list(codes_of(branches, label_of(branches.tree, word), depth or 40))
    for part in drawn:
        say(part)
