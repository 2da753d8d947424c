"""Options that several commands share.

A command takes a group of options as one dataclass parameter, which `commands.as_typer` replaces by
its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

#: Error of wrong usage. Typer exports only its child; the package that defines it depends on the
#: version of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]

MAX_WORDS = 10_000_000
#: The largest random state, as in `hstree._options`.
MAX_SEED = (1 << 32) - 1

CORPUS_KINDS = "a text file (.txt, .txt.gz), nltk:NAME or builtin:python"


def flag(name: str) -> str:
    """Return an option's Python name as it is typed: ``--max-size`` for "max_size"."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


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


def _check_seed(seed: int) -> int:
    # Not by `min` and `max`: help pages would give the range more room than the help.
    if not 0 <= seed <= MAX_SEED:
        raise typer.BadParameter(f"{seed} is not from 0 to {MAX_SEED}")
    return seed


Seed = Annotated[
    int, typer.Option("--seed", metavar="S", callback=_check_seed, help="Random seed.")
]

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


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

_EPILOGS: dict[Callable[..., Any], str] = {}


def examples(*lines: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that attaches examples to a command's function."""

    def attach(command: CommandFunction) -> CommandFunction:
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
