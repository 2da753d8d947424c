"""Counts with their nouns, times and quotations, for messages and tables."""

import math
import re

#: Characters that move the cursor, change colours or reorder text: C0 and C1 control characters,
#: DEL, line and paragraph separators, bidirectional embeddings, overrides and isolates; and lone
#: surrogates, which no terminal can show.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def plural(count: int, one: str, many: str | None = None) -> str:
    """Format a count and its noun, whose plural adds an s by default."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line; the type of the error if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def named_error(error: BaseException) -> str:
    """Return the type and the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def quoted(text: str, width: int = 40) -> str:
    """Quote a text, shortened to `width` characters."""
    return repr(text if len(text) <= width else f"{text[:width]}...")


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters escaped, except for those in `keep`."""
    return _UNSAFE.sub(lambda one: one[0] if one[0] in keep else repr(one[0])[1:-1], text)
