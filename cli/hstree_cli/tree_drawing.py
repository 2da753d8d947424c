"""Drawings of the top levels of a tree, and of the codes of a label."""

from collections.abc import Iterator
from itertools import chain

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree as Drawing

from hstree._text import format_number, plural
from hstree.tree import Tree
from hstree.tree.arrays import TreeArrays
from hstree.tree.branches import Branch, Branches
from hstree_cli.tables import STYLE, shortened

#: Maximum number of branches that are drawn per node.
MAX_BRANCHES = 10
#: Maximum number of codes that are drawn per label.
MAX_CODES = 8


def draw_top(branches: Branches, depth: int) -> RenderableType:
    """Draw the branches that are at most `depth` decisions from the root."""
    tree = branches.tree
    if tree.n_nodes == 0:
        return Text(f"one label and no node: {shortened(tree.labels[0])}")
    root = Drawing(Text(f"{_node(tree, 0)}  {tree.n_labels:,} labels"))
    # The nodes of a level, each with the drawing to which its branches are added
    level = [(0, root)]
    for _ in range(depth):
        below = []
        for node, node_drawing in level:
            for branch, fraction, content in _likeliest(tree, branches.of(node), MAX_BRANCHES):
                line = Text(f"{fraction}  {content}", no_wrap=True, overflow="ellipsis")
                drawing = node_drawing.add(line)
                if branch is not None and branch.node is not None:
                    below.append((branch.node, drawing))
        if not below:
            break
        level = below
    return root


def draw_codes(tree: Tree, branches: Branches, word: str, depth: int) -> Iterator[RenderableType]:
    """Yield drawings of the codes of a word, shortest first, each with up to `depth` decisions."""
    # In an untrained model, the shortest codes are the most probable ones
    label = tree.label_id(word)
    codes = sorted(tree.codes(word), key=len)
    name = shortened(word)
    counted = "" if tree.counts is None else f", counted {tree.counts[label]:,} times"
    yield Text(f"{name}: label {label}, {plural(len(codes), 'code')}{counted}")
    for number, code in enumerate(codes[:MAX_CODES], start=1):
        yield Text(f"\ncode {number} of {len(codes)}: {plural(len(code), 'decision')}")
        yield _draw_code(branches, code[:depth])
        if len(code) > depth:
            yield Text(f"... {plural(len(code) - depth, 'more decision')}; --depth shows them")
    if len(codes) > MAX_CODES:
        yield Text(f"\n... {plural(len(codes) - MAX_CODES, 'more code')}, which are not shorter")


def _draw_code(branches: Branches, decisions: list[tuple[int, int]]) -> RenderableType:
    """Draw the decisions of a code: the chosen branch and the most probable other branches."""
    tree = branches.tree
    rows = Table(**STYLE)
    # On a narrow terminal, only the last column is wrapped
    rows.add_column("node", overflow="fold", max_width=24, no_wrap=True)
    for name in ("branch", "fraction"):
        rows.add_column(name, justify="right", overflow="fold", no_wrap=True)
    rows.add_column("content", overflow="fold")
    # The branch of the code in bold, then the most probable other branches of the node
    for node, taken in decisions:
        others = branches.of(node)
        chosen = others.pop(taken)
        lines = chain(_likeliest(tree, [chosen], 1), _likeliest(tree, others, 2))
        for branch, fraction, content in lines:
            number = "..." if branch is None else str(tree.edge_branch[branch.edge])
            line = Text(content, no_wrap=True, overflow="ellipsis")
            if branch is chosen:
                rows.add_row(Text(_node(tree, node)), f"> {number}", fraction, line, style="bold")
            else:
                rows.add_row("", number, fraction, line)
    return rows


def _likeliest(
    tree: TreeArrays, branches: list[Branch], n: int
) -> Iterator[tuple[Branch | None, str, str]]:
    """Yield the n most probable branches, each with its fraction of the counts and its content.

    If a node has at most n branches, they keep their order. The content is the node below a branch
    and its most frequent words. The last entry stands for all other branches; its branch is None.
    """
    if len(branches) > n:
        branches = sorted(branches, key=lambda branch: (-branch.fraction, branch.edge))
    for branch in branches[:n]:
        content = " ".join(map(shortened, branch.words))
        if branch.node is not None:
            leaves = plural(branch.leaves, "leaf", "leaves")
            content = f"{_node(tree, branch.node)}  {leaves}: {content}"
        yield branch, f"{format_number(100 * branch.fraction)}%", content
    if rest := branches[n:]:
        fraction = sum(branch.fraction for branch in rest)
        yield None, f"{format_number(100 * fraction)}%", f"{len(rest):,} more branches"


def _node(tree: TreeArrays, node: int) -> str:
    name = None if tree.names is None else tree.names[node]
    return f"node {node}" if name is None else f"node {node} {shortened(name)}"
