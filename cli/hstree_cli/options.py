"""Options that several commands share, and options made from the records of builders.

A command takes a group of options as one dataclass parameter; `as_typer` replaces it by the fields.
`max_codes: int = 64` in a builder's signature becomes ``--max-codes 64``, a bool the switch
``--weighted``, a Literal a choice; `random_state` is ``--seed``, which commands have themselves.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from hstree.builders import Builder, Option

#: Error of wrong usage. Typer exports only its child; the package that defines it depends on the
#: version of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]

#: What no training comes near; the library's own limits are in `hstree.data.contexts`.
MAX_DIM, MAX_CONTEXT, MAX_BATCH_SIZE, MAX_EPOCHS = 1 << 16, 1 << 12, 1 << 22, 1_000_000
MAX_WORDS = 10_000_000
#: The largest random state, as in `hstree._options`.
MAX_SEED = (1 << 32) - 1

CORPUS_KINDS = "a text file (.txt, .txt.gz), nltk:NAME or builtin:python"


# Shared options


def path_option(*flags: str, metavar: str, help: str, **more: Any) -> Any:
    """Describe an option that is a path.

    That a file cannot be read is bad input, which the library reports; Typer would call it wrong
    usage, hence ``readable=False``.
    """
    return typer.Option(*flags, metavar=metavar, help=help, readable=False, **more)


def path_argument(metavar: str, help: str) -> Any:
    """Describe a required argument that is a path; see `path_option`."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, readable=False)


CorpusName = Annotated[
    str, typer.Argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}.", show_default=False)
]
TreeFile = Annotated[Path, path_argument("TREE", "A tree: .json, .json.gz or .npz.")]
ModelFolder = Annotated[
    Path, path_argument("MODEL_DIR", "The folder of a model that `hstree evaluate --save` wrote.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
JsonFile = Annotated[
    Path | None, path_option("--json", metavar="FILE", help="Also write the results as JSON.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", min=0, max=MAX_SEED, help="Random seed.")]

_READING = "Reading a corpus"


@dataclass(frozen=True)
class Reading:
    """Options of how a corpus is read: its words."""

    min_count: Annotated[
        int,
        typer.Option(
            "--min-count",
            metavar="N",
            min=1,
            help="Replace words that occur fewer than N times by <unk>.",
            rich_help_panel=_READING,
        ),
    ] = 1
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="V",
            min=1,
            help="Keep the V most frequent words; replace the others by <unk>.",
            rich_help_panel=_READING,
        ),
    ] = None
    lower: Annotated[
        bool, typer.Option("--lower", help="Lower-case every word.", rich_help_panel=_READING)
    ] = False
    vocabulary: Annotated[
        Path | None,
        path_option(
            "--vocabulary",
            metavar="FILE",
            help="Use the words of this file (lines of word<TAB>count).",
            rich_help_panel=_READING,
        ),
    ] = None

    @property
    def selection(self) -> dict[str, Any]:
        """The options that select words by their counts: `min_count` above 1 and `max_size`."""
        min_count = {} if self.min_count == 1 else {"min_count": self.min_count}
        return min_count if self.max_size is None else {**min_count, "max_size": self.max_size}


@dataclass(frozen=True)
class HeldOut:
    """Options that name the validation and test splits; by default they are taken from CORPUS."""

    valid: Annotated[
        str | None,
        typer.Option("--valid", metavar="FILE", help="Validation corpus, not part of CORPUS."),
    ] = None
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Test corpus, not part of CORPUS."),
    ] = None


_TRAINING = "Training"

ModelName = Annotated[
    Literal["lbl", "cbow", "skipgram"],
    typer.Option(
        "--model",
        metavar="MODEL",
        help="lbl (log-bilinear), or cbow or skipgram as in word2vec, with defaults of their "
        "own: 5 epochs, batches of 1024, a rate of 0.2 (cbow) or 0.05.",
        rich_help_panel=_TRAINING,
    ),
]
Dim = Annotated[
    int,
    typer.Option(
        "--dim",
        metavar="D",
        min=1,
        max=MAX_DIM,
        help="Numbers in a word's vector.",
        rich_help_panel=_TRAINING,
    ),
]
Context = Annotated[
    int,
    typer.Option(
        "--context",
        metavar="N",
        min=1,
        max=MAX_CONTEXT,
        help="Words before the target, for lbl.",
        rich_help_panel=_TRAINING,
    ),
]
Window = Annotated[
    int,
    typer.Option(
        "--window",
        metavar="N",
        min=1,
        max=MAX_CONTEXT,
        help="Words on either side, for cbow and skipgram.",
        rich_help_panel=_TRAINING,
    ),
]
Sample = Annotated[
    float,
    typer.Option(
        "--sample",
        metavar="T",
        help="Leave out tokens of words more frequent than this share, for cbow and skipgram.",
        rich_help_panel=_TRAINING,
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full/--diagonal",
        help="Full or diagonal matrices for the places in a context.",
        rich_help_panel=_TRAINING,
    ),
]
Epochs = Annotated[
    int,
    typer.Option(
        "--epochs",
        metavar="N",
        min=0,
        max=MAX_EPOCHS,
        help="At the most; 0 scores the untrained model.",
        rich_help_panel=_TRAINING,
    ),
]
BatchSize = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        min=1,
        max=MAX_BATCH_SIZE,
        help="Positions in a minibatch.",
        rich_help_panel=_TRAINING,
    ),
]
LearningRate = Annotated[
    float,
    typer.Option(
        "--learning-rate",
        metavar="RATE",
        help="At the start.",
        rich_help_panel=_TRAINING,
    ),
]
Dropout = Annotated[
    float,
    typer.Option(
        "--dropout",
        metavar="P",
        help="Share of a context's vector left out at random.",
        rich_help_panel=_TRAINING,
    ),
]
WeightDecay = Annotated[
    float,
    typer.Option(
        "--weight-decay",
        metavar="RATE",
        help="L2 penalty on word and node vectors, for each token.",
        rich_help_panel=_TRAINING,
    ),
]


@dataclass(frozen=True)
class Training:
    """Options of a model and its training."""

    model: ModelName = "lbl"
    dim: Dim = 100
    context: Context = 5
    window: Window = 5
    sample: Sample = 0.0
    full: Full = False
    epochs: Epochs = 20
    batch_size: BatchSize = 256
    learning_rate: LearningRate = 0.1
    dropout: Dropout = 0.35
    weight_decay: WeightDecay = 1.5e-5
    seed: Seed = 0


# Options of models

#: Parameters that some models have and the others do not.
_OWN = {
    "lbl": ("context", "full", "dropout", "weight_decay"),
    "cbow": ("window", "sample"),
    "skipgram": ("window", "sample"),
}
#: Parameters that a command names otherwise than the library.
_NAMES = {"seed": "random_state"}


def model_options(ctx: typer.Context, training: Training) -> dict[str, Any]:
    """Return the options of `hstree.models.new_model`.

    Those of the log-bilinear model are the command's, with its defaults. For another model,
    whose defaults are others, they are those that were given.

    Parameters
    ----------
    ctx : typer.Context
        Of a command with all of these parameters.
    training : Training

    Raises
    ------
    UsageError
        When an option was given that the model does not have.
    OptionError
        When one has a value that it cannot have: before anything is read.
    """
    from hstree.models import config_of

    values = asdict(training)
    model = values.pop("model")
    given = {name for name in values if _is_given(ctx, name)}
    foreign = {name for own in _OWN.values() for name in own} - set(_OWN[model])
    if wrong := sorted(given & foreign):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        others = " and ".join(kind for kind, own in _OWN.items() if wrong[0] in own)
        raise UsageError(f"{flags}: not with --model {model}, but with {others}", ctx)
    wanted = values.keys() - foreign if model == "lbl" else given
    options = {_NAMES.get(name, name): values[name] for name in values if name in wanted}
    if model != "lbl":
        options["model"] = model
    config_of(options)
    return options


def typed_flags(ctx: typer.Context, *options: str | type[DataclassInstance]) -> list[str]:
    """Return those options, by name or as groups, that were typed on the command line."""
    names: list[str] = []
    for option in options:
        names += [option] if isinstance(option, str) else [field.name for field in fields(option)]
    return [flag(name) for name in names if _is_given(ctx, name)]


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


# Options of builders


def flag(name: str) -> str:
    """Return an option's Python name as it is typed: ``--max-size`` for "max_size"."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def flags(option: Option) -> str:
    """Return how an option is typed; both forms of a switch that is on by default."""
    typed = flag(option.name)
    return f"{typed}/--no-{typed[2:]}" if option.default is True else typed


def shown_default(option: Option) -> str:
    """Return an option's default as people read it."""
    if isinstance(option.default, bool):
        return "yes" if option.default else "no"
    return "-" if option.default is None else str(option.default)


def as_typer(command: Callable[..., None], builder: Builder | None = None) -> Callable[..., None]:
    """Return a command's function as Typer reads it, with a builder's options.

    Parameters
    ----------
    command : callable
        A parameter annotated with a dataclass is replaced by the options that are its fields. The
        parameter `options` receives the builder's options, by their Python names.
    builder : Builder, optional
    """
    signature = inspect.signature(command, eval_str=True)
    own = [] if builder is None else [o for o in builder.options if o.name != "random_state"]
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name == "options":
            groups["options"] = (dict, [option.name for option in own])
        elif isinstance(group := parameter.annotation, type) and is_dataclass(group):
            groups[parameter.name] = (group, [field.name for field in fields(group)])
            parameters += _fields(group)
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
    if builder is not None:
        _refuse_twice(builder, {o.name for o in own} & {p.name for p in parameters})
        parameters += [_parameter(option, f"Options of {builder.name}") for option in own]

    def typed(**values: Any) -> None:
        for name, (make, names) in groups.items():
            values[name] = make(**{name: values.pop(name) for name in names})
        command(**values)

    typed.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    typed.__name__ = command.__name__
    # Lines of a paragraph joined, so that they wrap at the width of the terminal.
    typed.__doc__ = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command) or "")
    if builder is not None:
        from rich.markup import escape

        about = f"{builder.name}: {builder.summary} Takes {builder.takes_text}."
        typed.__doc__ += f"\n\n{escape(about)}"
    return typed


def _fields(group: type[DataclassInstance]) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


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
        examples = help_epilog(self.example(chosen))
        one_command.command(epilog=examples)(as_typer(self.body, chosen))
        try:
            return typer.main.get_command(one_command).make_context(info_name, args, *more, **extra)
        except UsageError as error:
            if type(error).__name__ == "NoSuchOption":
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


# Examples of help pages

Command = TypeVar("Command", bound=Callable[..., Any])

_EPILOGS: dict[Callable[..., Any], str] = {}


def examples(*lines: str) -> Callable[[Command], Command]:
    """Return a decorator that attaches examples to a command's function."""

    def attach(command: Command) -> Command:
        _EPILOGS[command] = help_epilog(*lines)
        return command

    return attach


def epilog(command: Callable[..., Any]) -> str:
    """Return the end of a command's help page: its examples."""
    return _EPILOGS[command]


def help_epilog(*lines: str) -> str:
    """Return examples as the end of a help page."""
    title = "Example" if len(lines) == 1 else "Examples"
    return "\n\n".join([f"[bold]{title}:[/bold]", *lines])
