"""A tree in a terminal: its top, and the codes of a label."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from hstree.errors import InputError
from hstree.tree.codes import Codes
from hstree_cli.console import count, figure, shortened

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hstree.tree import Tree
    from hstree.tree.branches import Branch, Branches

#: Branches of a node, and codes of a label, that are drawn; of the rest it is said how many.
BRANCHES, CODES = 10, 8


def label_of(tree: Tree, word: str) -> int:
    """Return the id of a label.

    Raises
    ------
    InputError
        When there is none of that name; the message names some that are near.
    """
    if word in tree.labels:
        return int(tree.labels.index(word))
    close = get_close_matches(word, tree.labels, n=3)
    hint = f"; near it are {', '.join(map(repr, close))}" if close else ""
    raise InputError(f"{word!r} is none of the tree's {tree.n_labels:,} labels{hint}")


def top_of(branches: Branches, depth: int) -> RenderableType:
    """Draw the branches that are at most `depth` decisions from the root."""
    tree = branches.tree
    if tree.n_nodes == 0:
        return Text(f"one label and no node: {shortened(tree.labels[0])}")
    drawing = Drawing(Text(f"{_node(tree, 0)}  {count(tree.n_labels)} labels"))
    level = [(0, drawing)]
    for _ in range(depth):
        below = []
        for node, at in level:
            likeliest, others = _likeliest(branches.of(node))
            for branch in likeliest:
                drawn = at.add(_line(f"{_share(branch.share)}  {_holds(tree, branch)}"))
                if branch.node is not None:
                    below.append((branch.node, drawn))
            if others:
                rest = _share(sum(branch.share for branch in others))
                at.add(_line(f"{rest}  {count(len(others))} more branches"))
        if not below:
            break
        level = below
    return drawing


def codes_of(branches: Branches, label: int, depth: int) -> Iterator[RenderableType]:
    """Draw the codes of a label, each to `depth` decisions; the shortest first."""
    tree = branches.tree
    codes = sorted(Codes(tree, cache_limit=0).of(label), key=len)
    name = shortened(tree.labels[label])
    counted = "" if tree.counts is None else f", counted {count(int(tree.counts[label]))} times"
    yield Text(f"{name}: label {label}, {_several(len(codes), 'code')}{counted}")
    for number, code in enumerate(codes[:CODES], start=1):
        yield Text(f"\ncode {number} of {len(codes)}: {_several(len(code), 'decision')}")
        yield _code(branches, code[:depth])
        if len(code) > depth:
            yield Text(f"... {_several(len(code) - depth, 'more decision')}; --depth shows them")
    if len(codes) > CODES:
        yield Text(f"\n... {_several(len(codes) - CODES, 'more code')}, none of them shorter")


def _code(branches: Branches, decisions: list[tuple[int, int]]) -> RenderableType:
    """Draw the decisions of a code: the branch taken, and what the others hold."""
    tree = branches.tree
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column("node", no_wrap=True, max_width=24)
    drawn.add_column("branch", justify="right", no_wrap=True)
    drawn.add_column("share", justify="right", no_wrap=True)
    drawn.add_column("holds")  # the one that gives way where the terminal is narrow
    for node, taken in decisions:
        every = branches.of(node)
        mine, others = every[taken], every[:taken] + every[taken + 1 :]
        drawn.add_row(
            Text(_node(tree, node)),
            f"> {taken}",
            _share(mine.share),
            _line(_holds(tree, mine)),
            style="bold",
        )
        shown, rest = _likeliest(others, 2)
        for branch in shown:
            number = tree.edge_branch[branch.edge]
            drawn.add_row("", str(number), _share(branch.share), _line(_holds(tree, branch)))
        if rest:
            total = _share(sum(branch.share for branch in rest))
            drawn.add_row("", "...", total, f"{count(len(rest))} more branches")
    return drawn


def _likeliest(branches: list[Branch], n: int = BRANCHES) -> tuple[list[Branch], list[Branch]]:
    """Return the branches to draw, in their order where they are few, and the others."""
    if len(branches) <= n:
        return branches, []
    by_share = sorted(branches, key=lambda branch: (-branch.share, branch.edge))
    return by_share[:n], by_share[n:]


def _holds(tree: Tree, branch: Branch) -> str:
    """Say what a branch leads to, and its most frequent words."""
    if branch.node is None:
        return shortened(branch.words[0])
    words = " ".join(shortened(word) for word in branch.words)
    return f"{_node(tree, branch.node)}  {_several(branch.leaves, 'leaf', 'leaves')}: {words}"


def _node(tree: Tree, node: int) -> str:
    name = None if tree.names is None else tree.names[node]
    return f"node {node}" if name is None else f"node {node} {shortened(name)}"


def _share(part: float) -> str:
    return f"{figure(100 * part)}%"


def _several(number: int, one: str, many: str | None = None) -> str:
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
