"""A builder's options on the command line, made from what its function's signature says.

`max_codes: int = 64` becomes ``--max-codes 64``, a bool the switch ``--weighted``, a Literal a
choice; `random_state` is ``--seed``, which commands have of their own.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import typer
from typer.core import TyperCommand

from hstree_cli.examples import laid_out
from hstree_cli.usage import UsageError, is_unknown_option

if TYPE_CHECKING:
    from hstree.builders import Builder, Option


def flags(option: Option) -> str:
    """Return how an option is spelt; both ways where it is a switch that is on by default."""
    name = option.name.replace("_", "-")
    if option.name == "random_state":
        return "--seed"
    return f"--{name}/--no-{name}" if option.default is True else f"--{name}"


def shown_default(option: Option) -> str:
    """Return an option's default as people read it."""
    if isinstance(option.default, bool):
        return "yes" if option.default else "no"
    return "-" if option.default is None else str(option.default)


def as_typed(message: str, builder: Builder) -> str:
    """Return an error with the builder's options spelt as they are typed.

    A name with an underscore is an option's wherever it stands; any other is a plain word too, and
    is one for sure only where the message begins with it.
    """
    for option in builder.options:
        flag = flags(option).partition("/")[0]
        before = r"\b" if "_" in option.name else rf"^(?:{re.escape(builder.name)}: )?"
        message = re.sub(rf"({before}){option.name}\b(?!:)", rf"\1{flag}", message)
    return message


def for_typer(command: Callable[..., None], builder: Builder | None = None) -> Callable[..., None]:
    """Return a command's function as Typer reads it, with a builder's options.

    Parameters
    ----------
    command : callable
        Its parameter `options` receives the builder's options, by their own names.
    builder : Builder, optional
        None: no options but the command's own.
    """
    own = [] if builder is None else [o for o in builder.options if o.name != "random_state"]

    def typed(**given: Any) -> None:
        from hstree.errors import OptionError

        options = {option.name: given.pop(option.name) for option in own}
        try:
            command(**given, options=options)
        except OptionError as error:
            if builder is None:
                raise
            raise OptionError(as_typed(str(error), builder)) from error

    signature = inspect.signature(command, eval_str=True)
    kept = [p for p in signature.parameters.values() if p.name != "options"]
    if builder is not None:
        _refuse_twice(builder, {o.name for o in own} & {p.name for p in kept})
    panel = "" if builder is None else f"Options of {builder.name}"
    added = [_parameter(option, panel) for option in own]
    typed.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
    typed.__name__ = command.__name__
    typed.__doc__ = inspect.getdoc(command)
    if builder is not None:
        from rich.markup import escape

        of_method = f"{builder.name}: {builder.summary} Takes {builder.takes_text}."
        typed.__doc__ = f"{typed.__doc__}\n\n{escape(of_method)}"
    return typed


def _refuse_twice(builder: Builder, names: set[str]) -> None:
    """Refuse a builder with options that the command has itself."""
    from hstree.errors import PluginError

    if names:
        raise PluginError(
            f"the builder {builder.name!r} of the package {builder.package} cannot be used here: "
            f"its option {min(names)!r} is one of the command's own"
        )


def _parameter(option: Option, panel: str) -> inspect.Parameter:
    from rich.markup import escape

    kind: Any = Literal[option.choices] if option.choices else option.type
    if option.optional:
        kind = kind | None
    described = typer.Option(
        flags(option), help=escape(option.help), rich_help_panel=panel, readable=False
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[kind, described],
    )


class MethodCommand(TyperCommand, ABC):
    """A command with the options of the method that its arguments name.

    Attributes
    ----------
    body : callable
        The command's function; its parameter `options` receives the method's.
    method : str or None
        The method where the arguments name none.
    """

    body: ClassVar[Callable[..., None]]
    method: ClassVar[str | None] = None

    @staticmethod
    @abstractmethod
    def example(chosen: Builder) -> str:
        """Return a line to type with a method."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Read the arguments, the method's own options among them."""
        method = _named_method(args) or self.method
        if method is None:
            return super().make_context(info_name, args, *more, **extra)
        from hstree.builders import builder

        chosen = builder(method)
        one_command = typer.Typer(add_completion=False, rich_markup_mode="rich")
        examples = laid_out(self.example(chosen))
        one_command.command(epilog=examples)(for_typer(self.body, chosen))
        try:
            return typer.main.get_command(one_command).make_context(info_name, args, *more, **extra)
        except UsageError as error:
            if is_unknown_option(error):
                own = ", ".join(map(flags, chosen.options)) or "none"
                what = f"no option {error.option_name} for {method}, whose own options are: {own}"
                raise UsageError(what, error.ctx) from error
            raise


def _named_method(args: list[str]) -> str | None:
    """Return the method that the arguments name, the last one where there are several."""
    method = None
    for here, after in pairwise([*args, ""]):
        if here in ("--method", "-m"):
            method = after or None
        elif here.startswith("--method="):
            method = here.partition("=")[2]
    return method
