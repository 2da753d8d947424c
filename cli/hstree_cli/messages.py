"""Warnings and errors: one line each, on standard error; and text that is safe on a terminal."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

#: Characters that move the cursor, colour the screen or change the order of what is shown: C0 and
#: C1 control characters, DEL, line and paragraph separators, bidirectional embeddings, overrides
#: and isolates; and half characters, which no terminal can show.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def complain(what: str) -> None:
    """Print an error: one line on standard error."""
    print(f"hstree: error: {printable(' '.join(what.split()))}", file=sys.stderr)


def warn(what: str) -> None:
    """Print a warning: one line on standard error."""
    print(f"hstree: warning: {printable(' '.join(what.split()))}", file=sys.stderr)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with its control characters escaped, but for those in `keep`.

    Examples
    --------
    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    return _UNSAFE.sub(lambda one: one[0] if one[0] in keep else repr(one[0])[1:-1], text)


@contextmanager
def tracebacks(wanted: bool) -> Iterator[None]:
    """Print the traceback of an error that the body raises, where that is wanted."""
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception as error:
        from hstree.errors import HstreeError

        if wanted and isinstance(error, HstreeError | OSError | MemoryError):
            sys.stderr.write(printable(traceback.format_exc(), keep="\n"))
        raise
