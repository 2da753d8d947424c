"""Counts with their nouns, and quotations, for messages and tables."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count and its noun, whose plural adds an s by default.

    Examples
    --------
    >>> plural(1, "tree"), plural(2000, "word"), plural(3, "leaf", "leaves")
    ('1 tree', '2,000 words', '3 leaves')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line; the type of the error if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def named_error(error: BaseException) -> str:
    """Return the type and the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def quoted(text: str, width: int = 40) -> str:
    """Quote a text, shortened to `width` characters.

    Examples
    --------
    >>> quoted("an example", 4)
    "'an e...'"
    """
    return repr(text if len(text) <= width else f"{text[:width]}...")
