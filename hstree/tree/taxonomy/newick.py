"""Taxonomies from Newick text, such as ``((cat,dog)animal,'a plant');``."""

import re
from collections.abc import Iterator

from hstree._text import quoted
from hstree.errors import InputError
from hstree.tree.taxonomy.outline import Outline

#: A token of Newick, or what is skipped: blanks, comments and branch lengths.
_TOKEN = re.compile(
    r"""(?P<skipped>\s+|\[[^\]]*\]|:\s*[-+.\w]+)"""
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),;]|[^\s(),:;\[\]'"][^(),:;\[\]]*"""
)
#: Tokens after which an item is complete.
_ENDS = (")", ",", ";")


def read_newick(text: str) -> Outline:
    """Read one tree in Newick; branch lengths and comments are skipped.

    Names may be in single or double quotes, which are doubled inside; underscores stay. The
    semicolon at the end may be missing.
    """
    outline = Outline("newick")
    # Nodes whose brackets are open, from the root down
    open_nodes: list[int] = []
    # Item that has just been read, until the comma or bracket after it
    item = -1
    previous = ""
    for at, token in _tokens(text):
        if problem := _find_problem(previous, token, item, is_open=bool(open_nodes)):
            raise InputError(f"Newick, character {at + 1}, {quoted(token)}: {problem}")
        parent = open_nodes[-1] if open_nodes else -1
        if token == "(":
            open_nodes.append(outline.add(None, parent))
        elif token == ")":
            item = open_nodes.pop()
        elif token in _ENDS:
            item = -1
        elif previous == ")":
            outline.names[item] = _unquote(token) or None
        else:
            item = outline.add(_unquote(token) or None, parent)
        previous = token
    if open_nodes or not outline.names:
        raise InputError("Newick: more brackets are opened than closed, or there is no tree")
    return outline


def _find_problem(previous: str, token: str, item: int, *, is_open: bool) -> str:
    """Say why a token cannot follow the previous one; "" where it can.

    `item` is the item that has just been read, -1 for none, and `is_open` whether a bracket is
    open.
    """
    ends_item = token in _ENDS
    if previous == ";":
        return "another tree after the semicolon; give one"
    if ends_item and item < 0:
        return "a leaf has no name"
    if ends_item and (token == ";") == is_open:
        return "more brackets are opened than closed, or closed than opened"
    if not ends_item and item >= 0 and (previous != ")" or token == "("):
        return "a comma is missing"
    return ""


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of Newick and where they begin."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InputError(
                f"Newick, character {at + 1}, {quoted(text[at:])}: a quote or comment that does "
                "not end, or a colon without a length"
            )
        # White space, comments and lengths of branches are no tokens
        if match["skipped"] is None:
            yield at, match[0].strip()
        at = match.end()


def _unquote(token: str) -> str:
    """Return the name in quotes, in which two quotes are one."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "'\"" else token
