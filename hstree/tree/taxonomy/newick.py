"""Taxonomies from Newick text, such as ``((cat,dog)animal,'a plant');``."""

import re
from collections.abc import Iterator

from hstree._text import quoted
from hstree.errors import InputError
from hstree.tree.taxonomy.outline import Outline

#: A token of Newick, or skipped text: blanks, comments and branch lengths.
_TOKEN = re.compile(
    r"""(?P<skipped>\s+|\[[^\]]*\]|:\s*[-+.\w]+)"""
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),;]|[^\s(),:;\[\]'"][^(),:;\[\]]*"""
)
#: Tokens after which an item is complete.
_ENDS = (")", ",", ";")


def read_newick(text: str) -> Outline:
    """Read one tree in Newick format; skip branch lengths and comments.

    Names may be in single or double quotes; quotes inside are doubled. Underscores are kept. The
    semicolon at the end may be missing.
    """
    outline = Outline("newick")
    # Nodes whose brackets are open, from the root down
    open_nodes: list[int] = []
    # The item just read, or -1 after a comma or bracket
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
        raise InputError(
            "Newick: more brackets are opened than closed, or there is no tree; give one whole tree"
        )
    return outline


def _find_problem(previous: str, token: str, item: int, *, is_open: bool) -> str:
    """Return why a token cannot follow the previous token; "" if it can.

    `item` is the item just read (-1 for none), and `is_open` is whether a bracket is open.
    """
    ends_item = token in _ENDS
    if previous == ";":
        return "another tree after the semicolon; give one"
    if ends_item and item < 0:
        return "a leaf has no name"
    if ends_item and (token == ";") == is_open:
        return "the numbers of opening and closing brackets differ"
    if not ends_item and item >= 0 and (previous != ")" or token == "("):
        return "a comma is missing"
    return ""


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of Newick text, with their positions."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InputError(
                f"Newick, character {at + 1}, {quoted(text[at:])}: a quote or comment that does "
                "not end, or a colon without a length"
            )
        # Skip white space, comments and branch lengths
        if match["skipped"] is None:
            yield at, match[0].strip()
        at = match.end()


def _unquote(token: str) -> str:
    """Remove quotes around a name, and replace doubled quotes inside by single ones."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "'\"" else token
