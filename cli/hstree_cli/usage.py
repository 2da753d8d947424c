"""Help pages, and messages about wrong usage."""

import sys
from typing import Any

import typer
from typer import rich_utils
from typer.core import TyperCommand, TyperGroup

#: Exceptions about wrong usage: in a module of Typer, or of click under older versions of Typer.
_exceptions: Any = sys.modules[typer.BadParameter.__module__]
#: Base class of all exceptions about wrong usage.
UsageError: Any = _exceptions.UsageError

# Typer pads both sides of every column, even of empty columns, which costs too much of 60 columns.
rich_utils.STYLE_OPTIONS_TABLE_PADDING = (0, 1, 0, 0)  # type: ignore[assignment]


class _HelpPages:
    """Help pages that show no value for switches."""

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
    """Return what is wrong with the command line, and what to type or to read instead."""
    reason = _reason(error)
    if error.ctx is None:
        return f"{reason}; see `hstree --help`"
    command = error.ctx.command
    path = error.ctx.command_path
    if not isinstance(command, Command):  # the program itself
        return f"{reason}; see `{path} --help`"

    # Typer has no exception of its own for an argument too many.
    is_extra_argument = type(error) is UsageError
    is_unknown_option = isinstance(error, _exceptions.NoSuchOption)
    if is_unknown_option and _is_program_option(error.option_name, error.ctx):
        name = error.option_name
        return f"{name} goes before the command: `hstree {name} {command.name} ...`"

    # Options of a method that are typed as options of the command, or as arguments.
    is_method_option = is_extra_argument and "=" in error.message
    if is_unknown_option and not error.possibilities:
        is_method_option = True
    if is_method_option and any(param.name == "method" for param in command.params):
        return f'{reason}; options of a method belong to its text: --method "gmm epsilon=0.4"'

    if is_extra_argument or is_unknown_option or isinstance(error, _exceptions.MissingParameter):
        return f"{reason}; type `{' '.join([path, *_required(command)])}`"
    return f"{reason}; see `{path} --help`"


def _reason(error: Any) -> str:
    """Return what is wrong, with the option or argument as it is typed."""
    if isinstance(error, _exceptions.NoSuchOption):
        close = " or ".join(error.possibilities or ())
        hint = f"; did you mean {close}?" if close else ""
        return f"there is no option {error.option_name}{hint}"
    if isinstance(error, _exceptions.MissingParameter):
        return f"{_typed_name(error.param)} is missing"
    message = str(error.message).rstrip(".")
    if isinstance(error, _exceptions.BadParameter) and error.param is not None:
        return f"{_typed_name(error.param)}: {message}"
    return message


def _is_program_option(name: str, ctx: Any) -> bool:
    """Return whether an option belongs to the program, not to its commands."""
    return any(name in param.opts for param in ctx.find_root().command.params)


def _required(command: Any) -> list[str]:
    """Return the arguments and the required options of a command, as its help names them."""
    parts = []
    for param in command.params:
        if param.param_type_name == "argument":
            part = param.metavar if param.required else f"[{param.metavar}]"
            parts.append(f"{part}..." if param.nargs < 0 else part)
        elif param.required:
            parts.append(f"{param.opts[0]} {param.metavar}")
    return parts


def _typed_name(param: Any) -> str:
    """Return an option's flag, or the name of an argument."""
    return str(param.metavar if param.param_type_name == "argument" else param.opts[0])
