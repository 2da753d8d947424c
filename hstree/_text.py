"""Numbers, nouns and quotations in messages and tables."""

from __future__ import annotations


def number(value: float | None, digits: int = 2, *, missing: str = "-") -> str:
    """Format a number with thousands separators; `missing` for None and NaN.

    Examples
    --------
    >>> number(1234.5), number(9876, 0), number(None)
    ('1,234.50', '9,876', '-')
    """
    return missing if value is None or value != value else f"{value:,.{digits}f}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count and its noun, whose plural adds an s by default.

    Examples
    --------
    >>> plural(1, "tree"), plural(2000, "word"), plural(3, "leaf", "leaves")
    ('1 tree', '2,000 words', '3 leaves')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def quoted(text: str, width: int = 40) -> str:
    """Quote a text, shortened to `width` characters.

    Examples
    --------
    >>> quoted("an example", 4)
    "'an e...'"
    """
    return repr(text if len(text) <= width else f"{text[:width]}...")
