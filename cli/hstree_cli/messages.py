"""Warnings and errors: one line each, on standard error."""

from __future__ import annotations

import sys


def complain(what: str) -> None:
    """Print an error: one line on standard error."""
    print(f"hstree: error: {printable(' '.join(what.split()))}", file=sys.stderr)


def warn(what: str) -> None:
    """Print a warning: one line on standard error."""
    print(f"hstree: warning: {printable(' '.join(what.split()))}", file=sys.stderr)


def printable(text: str) -> str:
    """Return a text with nothing in it that would move the cursor or colour the screen."""
    return text if text.isprintable() else repr(text)[1:-1]
