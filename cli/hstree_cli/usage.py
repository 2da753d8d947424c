"""Help pages, and messages about wrong usage."""

from typing import Any

import typer
from typer import rich_utils
from typer.core import TyperCommand, TyperGroup

#: Base class of exceptions about wrong usage. Older versions of Typer have click's.
UsageError: Any = typer.BadParameter.__base__

# Typer pads both sides of every column, even if empty, which wastes space in 60 columns.
rich_utils.STYLE_OPTIONS_TABLE_PADDING = (0, 1, 0, 0)  # type: ignore[assignment]


class _HelpPages:
    """Help pages that show no metavar for switches."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            if getattr(param, "is_flag", False):
                param.metavar = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_HelpPages, TyperCommand):
    """A command of the program."""


class Group(_HelpPages, TyperGroup):
    """The program."""


def usage_message(error: Any) -> str:
    """Return a message that states what is wrong and what to type or read instead."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if error.ctx is None:
        return f"{message}; see `hstree --help`"
    path = error.ctx.command_path
    name = getattr(error, "option_name", None)
    if any(name in param.opts for param in error.ctx.find_root().command.params):
        return f"{message}; it goes before the command: `hstree {name} {error.ctx.info_name} ...`"
    return f"{message}; see `{path} --help`"
