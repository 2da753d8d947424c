"""Commands whose options depend on the builder and the model that their arguments name.

Options are made from the records of builders and models: ``max_codes: int = 64`` is
``--max-codes 64``, a bool the switch ``--weighted``, a Literal a choice; `random_state` is
``--seed``, which the commands have themselves.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_type_hints

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from hstree_cli.arguments import find_builder
from hstree_cli.options import EXAMPLES, UsageError, flag

if TYPE_CHECKING:
    from hstree._options import Option
    from hstree.builders import Builder


# Options from records

#: Names of switches in their off position, other than ``--no-NAME``.
_OFF = {"full": "--diagonal"}


def flags(option: Option) -> str:
    """Return how an option is typed; both forms of a switch that is on or has a name for off."""
    on = flag(option.name)
    off = _OFF.get(option.name, f"--no-{on[2:]}" if option.default is True else None)
    return on if off is None else f"{on}/{off}"


def shown_default(option: Option) -> str:
    """Return an option's default as people read it."""
    if isinstance(option.default, bool):
        return "yes" if option.default else "no"
    return "-" if option.default is None else str(option.default)


def with_flags(text: str, options: Iterable[Option]) -> str:
    """Spell the options that a text names as they are typed: "max_codes" becomes --max-codes.

    A name without an underscore may be an English word; one in quotes or in a path is a value.
    """
    names = {option.name for option in options if "_" in option.name}
    bare = r"(?<![\w'\"./-])[a-z]+(?:_[a-z]+)+(?![\w'\"/-]|\.\w)"
    return re.sub(bare, lambda name: flag(name[0]) if name[0] in names else name[0], text)


def unknown_option(typed: str, owner: str, options: Iterable[Option]) -> str:
    """Return the message for an option that a builder does not have."""
    from hstree._options import suggestion

    known = list(map(flags, options))
    hint = suggestion(typed, [name for names in known for name in names.split("/")])
    return f"no option {typed} for {owner}; {hint}its own options are: {', '.join(known) or 'none'}"


def _parameter(option: Option, panel: str, known: Iterable[Option]) -> inspect.Parameter:
    """Return a parameter that Typer reads as the option; the library checks its range."""
    kind: Any = Literal[option.choices] if option.choices else option.type
    if option.optional:
        kind = kind | None
    described = typer.Option(
        flags(option), metavar=_metavar(option), help=escape(with_flags(option.help, known)),
        rich_help_panel=panel, readable=False, parser=_parser(option),
    )  # fmt: skip
    return _keyword(option.name, option.default, Annotated[kind, described])


def _parser(option: Option) -> Callable[[str], Any] | None:
    """Return what reads a number or a word; None for an option that Typer can read."""
    if not option.word:
        return None

    def parse(text: str) -> Any:
        try:
            return option.parsed(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not {option.expected}.") from None

    return parse


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _metavar(option: Option) -> str | None:
    """Return the type of a number and its range, as Typer shows those; None for Typer's own."""
    interval = option.range
    if interval is None or option.name == "random_state":
        return None
    kind = f"{option.type.__name__}|{option.word}" if option.word else option.type.__name__
    low = "" if interval.min is None else f"{interval.min:g}<{'=' * (not interval.exclude_min)}"
    high = "" if interval.max is None else f"<{'=' * (not interval.exclude_max)}{interval.max}"
    if not high:
        low, high = "", f">{'=' * (not interval.exclude_min)}{interval.min:g}"
    return f"<{kind}> [{low}x{high}]"


# Parameters of commands that receive such options

_TRAINING = "Training"


@dataclass(frozen=True)
class Choice:
    """The builder or the model that the arguments name, and its options."""

    name: str
    summary: str
    #: The options as Typer reads them.
    parameters: Sequence[inspect.Parameter]
    #: From their values by name to what the command receives.
    collect: Callable[[dict[str, Any]], Any]
    #: From an option that it does not have to what to say of it, or None.
    unknown: Callable[[str], str | None]
    #: A command line for the help page.
    example: str | None = None


@dataclass(frozen=True)
class BuilderOptions:
    """Annotation of a parameter that receives the options of the builder ``--method`` names."""

    #: From the builder to a command line for the help page.
    example: Callable[[Builder], str]
    #: The method without ``--method``.
    default: str | None = None

    def choose(self, arguments: Sequence[str]) -> Choice | None:
        """Return the builder that the arguments name, or the default; None if there is neither."""
        name = _value_of(arguments, "--method", "-m") or self.default
        if name is None:
            return None
        chosen = find_builder(name, "train with it by `hstree evaluate --layer {} CORPUS`")
        parameters = [
            _parameter(option, f"Options of {chosen.name}", chosen.options)
            for option in chosen.options
            if option.name != "random_state"
        ]
        summary = f"{chosen.name}: {chosen.summary} Takes {chosen.takes_text}."
        unknown = partial(unknown_option, owner=name, options=chosen.options)
        return Choice(chosen.name, summary, parameters, dict, unknown, self.example(chosen))


@dataclass(frozen=True)
class ModelOptions:
    """Annotation of a parameter that receives the options of the model ``--model`` names.

    They are a dict for `hstree.models.new_model`.
    """

    #: The model without ``--model``; None for the library's default.
    default: str | None = None
    #: Whether there is no ``--model``.
    fixed: bool = False
    #: Whether ``--model`` may name a language model.
    language_models: bool = True
    #: Defaults that differ from the model's own.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Names of options that the command does not have.
    without: frozenset[str] = frozenset()

    def choose(self, arguments: Sequence[str]) -> Choice:
        """Return the model that the arguments name, or the default."""
        from hstree.models import MODELS, config_of
        from hstree.models.base import DEFAULT_MODEL

        default = self.default or DEFAULT_MODEL
        name = default if self.fixed else _value_of(arguments, "--model") or default
        kind = MODELS.get(name)
        parameters, models = [], MODELS.all().values()
        if not self.fixed:
            with_text = self.language_models
            names = [m.name for m in models if with_text or not m.model.is_language_model]
            if name not in names:
                raise UsageError(f"--model {name}: choose {' or '.join(names)} here")
            help = f"Model to train: {', '.join(names)}; the options below are those of this one."
            model = typer.Option(
                "--model", help=help, metavar="MODEL", rich_help_panel=_TRAINING,
                autocompletion=lambda: names,
            )  # fmt: skip
            parameters.append(_keyword("model", default, Annotated[str, model]))
        for option in kind.options:
            if option.name in self.without:
                continue
            value = self.defaults.get(option.name, option.default)
            summary = f"{option.help.partition('. ')[0].rstrip('.')}."
            shown = replace(option, default=value, help=summary)
            parameters.append(_parameter(shown, _TRAINING, kind.options))

        def collect(values: dict[str, Any]) -> dict[str, Any]:
            return config_of({**values, "model": name})

        def unknown(option: str) -> str | None:
            names = [m.name for m in models if option in "/".join(map(flags, m.options)).split("/")]
            text = f"{option}: not with --model {name}, but with {' and '.join(names)}"
            return text if names and name not in names and not self.fixed else None

        return Choice(kind.name, f"{kind.name}: {kind.summary}", parameters, collect, unknown)


def _value_of(arguments: Sequence[str], *names: str) -> str | None:
    """Return the value of an option in unparsed arguments, the last one if it is repeated."""
    value = None
    for here, after in pairwise([*arguments, ""]):
        if here in names:
            value = after or None
        elif here.startswith(tuple(f"{name}=" for name in names if name.startswith("--"))):
            value = here.partition("=")[2]
    return value


# Commands


def as_typer(
    command: Callable[..., None], choices: Mapping[str, Choice] | None = None
) -> Callable[..., None]:
    """Return a command's function as Typer reads it.

    A parameter annotated with a dataclass is replaced by the options that are its fields, one
    annotated with `BuilderOptions` or `ModelOptions` by those of the choice of its name.
    """
    choices = choices or {}
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    registered: list[inspect.Parameter] = []
    groups: dict[str, tuple[Callable[[dict[str, Any]], Any], list[str]]] = {}
    for name, parameter in signature.parameters.items():
        group = parameter.annotation
        if isinstance(group, type) and is_dataclass(group):
            hints = get_type_hints(group, include_extras=True)
            parameters += [_keyword(f.name, f.default, hints[f.name]) for f in fields(group)]
            groups[name] = (_from_fields(group), [f.name for f in fields(group)])
        elif _registered(parameter) is None:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        elif (choice := choices.get(name)) is None:
            groups[name] = (dict, [])
        else:
            registered += choice.parameters
            groups[name] = (choice.collect, [option.name for option in choice.parameters])
    parameters += registered
    every_name = [parameter.name for parameter in parameters]
    for choice in choices.values():
        for name in (parameter.name for parameter in choice.parameters):
            if every_name.count(name) > 1:  # only with another package's builder or model
                from hstree.errors import PluginError

                reason = f"its option {name!r} is one of the command's own"
                raise PluginError(f"{choice.name} cannot be used here: {reason}")

    def typed(**values: Any) -> None:
        for name, (collect, names) in groups.items():
            values[name] = collect({name: values.pop(name) for name in names})
        command(**values)

    typed.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    typed.__name__ = command.__name__
    # The lines of a paragraph joined, so that they wrap at the width of the terminal.
    paragraphs = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
    summaries = (escape(choice.summary) for choice in choices.values())
    typed.__doc__ = "\n\n".join([paragraphs, *summaries])
    return typed


def _registered(parameter: inspect.Parameter) -> BuilderOptions | ModelOptions | None:
    """Return the registered options that a parameter is annotated with."""
    notes = getattr(parameter.annotation, "__metadata__", ())
    return next((n for n in notes if isinstance(n, BuilderOptions | ModelOptions)), None)


def _from_fields(group: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda values: group(**values)


def _without_metavars(params: list[Any]) -> list[Any]:
    """Leave out the value "<bool>" that Typer shows for switches, which take none."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


class Group(TyperGroup):
    """The program, whose help page shows switches without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of ``--help`` among them."""
        return _without_metavars(super().get_params(ctx))


class CompleteCommand(TyperCommand):
    """A command with all its options, whose help page shows switches without a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, those of ``--help`` among them."""
        return _without_metavars(super().get_params(ctx))


class Command(TyperCommand):
    """A command whose options are made when it runs, from its function and its arguments."""

    body: ClassVar[Callable[..., None]]

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Read the arguments, the options of the builder and model that they name among them."""
        choices: dict[str, Choice] = {}
        completing = extra.get("resilient_parsing", False)
        try:
            for name, parameter in inspect.signature(self.body, eval_str=True).parameters.items():
                if options := _registered(parameter):
                    # A shell that completes a line is not told what is wrong with it so far.
                    with suppress(*([Exception] if completing else [])):
                        if choice := options.choose(args):
                            choices[name] = choice
            lines = [choice.example for choice in choices.values() if choice.example is not None]
            lines = lines or list(EXAMPLES[self.body])
            title = f"[bold]Example{'s' * (len(lines) > 1)}:[/bold]"
            complete = typer.Typer(add_completion=False, rich_markup_mode="rich")
            epilog = "\n\n".join([title, *lines])
            complete.command(cls=CompleteCommand, epilog=epilog)(as_typer(self.body, choices))
            return typer.main.get_command(complete).make_context(info_name, args, *more, **extra)
        except UsageError as error:
            error.ctx = error.ctx or self.context_class(self, info_name=info_name, **extra)
            if type(error).__name__ == "NoSuchOption":
                for choice in choices.values():
                    if message := choice.unknown(error.option_name):
                        raise UsageError(message, error.ctx) from error
            raise


def register(app: typer.Typer, command: Callable[..., None], panel: str) -> None:
    """Add a command to a panel of an app's help page, for which its options are not made."""

    def described() -> None:
        pass

    described.__name__, described.__doc__ = command.__name__, command.__doc__
    complete = type("_Command", (Command,), {"body": staticmethod(command)})
    app.command(cls=complete, rich_help_panel=panel)(described)
