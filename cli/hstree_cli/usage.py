"""Wrong usage: what Typer raises for it, and how it is put in one line."""

from __future__ import annotations

from typing import Any

import typer

#: Typer hands out this class only by its child; which package defines it depends on the version.
UsageError: Any = typer.BadParameter.__bases__[0]


def is_unknown_option(error: Exception) -> bool:
    """Say whether wrong usage is an option that the command does not have."""
    return type(error).__name__ == "NoSuchOption"


def explained(error: Any) -> str:
    """Say what is wrong, and where the right usage is described."""
    message = error.format_message().strip().rstrip(".")
    command = error.ctx.command_path if error.ctx else "hstree"
    return f"{message}; see `{command} --help`"
