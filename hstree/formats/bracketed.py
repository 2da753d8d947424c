"""A tree as text in brackets, what Newick and nested lists have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hstree.tree import Tree


def bracketed(
    tree: Tree, brackets: tuple[str, str], leaf: Sequence[str], name: Callable[[int], str]
) -> str:
    """Write a tree as its children in brackets, each of them in turn, with commas between.

    Parameters
    ----------
    tree : Tree
    brackets : tuple of str
        The opening and the closing one.
    leaf : sequence of str, length V
        What stands for each label.
    name : callable
        Gives what follows the closing bracket of a node.

    Notes
    -----
    O(E), with a stack of its own: a chain may be as deep as it likes.
    """
    if tree.n_nodes == 0:
        return leaf[0]
    opening, closing = brackets
    start, child = tree.child_start.tolist(), tree.child.tolist()
    pieces: list[str] = []
    # Below zero a label, else a node; a text is what follows what is already written.
    waiting: list[int | str] = [0]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif item < 0:
            pieces.append(leaf[~item])
        else:
            pieces.append(opening)
            waiting.append(closing + name(item))
            children = child[start[item] : start[item + 1]]
            for place, below in enumerate(reversed(children)):
                waiting += [below] if place == 0 else [",", below]
    return "".join(pieces)
