"""Options that several commands share.

A command takes a group of options as one dataclass parameter, which
`registered_options.as_typer` replaces by its fields.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus

#: Error of wrong usage. Typer exports only its child; the package that defines it depends on the
#: version of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]

CORPUS_KINDS = (
    "a text file (.txt, .txt.gz), a folder of them, - (standard input), nltk:NAME or builtin:python"
)


def flag(name: str) -> str:
    """Return an option's Python name as it is typed: ``--max-size`` for "max_size"."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def option(flags: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Describe an option; several flags are separated by spaces.

    That a file cannot be read is bad input, which the library reports; Typer would call it wrong
    usage, hence ``readable=False``.
    """
    return typer.Option(*flags.split(), help=help, metavar=metavar, readable=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Describe an argument; see `option`."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, readable=False, **more)


CorpusName = Annotated[str, argument("CORPUS", f"A corpus: {CORPUS_KINDS}.")]
TreeFile = Annotated[Path, argument("TREE", "A tree: .json, .json.gz or .npz.")]
ModelFolder = Annotated[
    Path,
    argument(
        "MODEL_DIR",
        "The folder of a model that `hstree evaluate --save` wrote, or of an ensemble.",
    ),
]
Quiet = Annotated[bool, option("--quiet -q", "Show no progress.")]
Force = Annotated[bool, option("--force", "Replace existing files.")]
TrainSplitOnly = Annotated[
    bool,
    option(
        "--train-split-only",
        "Read only the lines of the corpus that `hstree evaluate` trains on: the first 80%.",
    ),
]
NoUnk = Annotated[
    bool, option("--no-unk", "Leave <unk> out, which stands for the words of other texts.")
]
JsonFile = Annotated[Path | None, option("--json", "Also write the results as JSON.", "FILE")]


def share(text: str | float) -> float:
    """Return a share that is typed as a percentage or a fraction: "3%", "0.03".

    Examples
    --------
    >>> share("3%"), share("0.5")
    (0.03, 0.5)
    """
    if isinstance(text, float):
        return text
    number, is_percent = text.removesuffix("%"), text.endswith("%")
    try:
        value = float(number) / (100 if is_percent else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is not a share, such as 3% or 0.03")
    return value


def lines(text: str | float) -> float:
    """Return a number of lines, or a share of them below 1: "1000", "10%", "0.1".

    Examples
    --------
    >>> lines("1000"), lines("10%")
    (1000.0, 0.1)
    """
    if isinstance(text, float):
        return text
    value = float(text) if text.isdecimal() else share(text)
    if value <= 0 or (value > 1 and not text.isdecimal()):
        raise typer.BadParameter(f"{text!r} is not a number of lines or a share of them")
    return value


Within = Annotated[
    float,
    option(
        "--within",
        "Choose the fastest row whose validation perplexity is at most this share above the "
        "lowest, such as 3%.",
        "SHARE",
        parser=share,
    ),
]
Only = Annotated[
    bool, option("--only", "Show only the rows that are named here, not the others of DIR.")
]
Replace = Annotated[
    bool, option("--force", "Replace a comparison of another text, model or budget in DIR.")
]


def _check_seed(seed: int) -> int:
    # Not by `min` and `max`: help pages would give the range more room than the help.
    from hstree._options import RandomState

    if seed not in (legal := get_args(RandomState)[1]):
        raise typer.BadParameter(f"{seed} is not {legal}")
    return seed


Seed = Annotated[int, option("--seed", "Random seed.", "S", callback=_check_seed)]

_reading = partial(option, rich_help_panel="Reading a corpus")


@dataclass(frozen=True)
class Reading:
    """Options of how a corpus is read: its words."""

    min_count: Annotated[
        int,
        _reading(
            "--min-count", "Replace words that occur fewer than N times by <unk>.", "N", min=1
        ),
    ] = 1
    max_size: Annotated[
        int | None,
        _reading(
            "--max-size", "Keep the V most frequent words; replace the others by <unk>.", "V", min=1
        ),
    ] = None
    lower: Annotated[bool, _reading("--lower", "Lower-case every word.")] = False
    text: Annotated[
        bool, _reading("--text", "Read files as text even if they look like something else.")
    ] = False
    vocabulary: Annotated[
        Path | None,
        _reading(
            "--vocabulary",
            "Use the words of this file: word<TAB>count lines, .csv or .parquet.",
            "FILE",
        ),
    ] = None

    @property
    def selection(self) -> dict[str, Any]:
        """The options that select words by their counts: `min_count` above 1 and `max_size`."""
        min_count = {} if self.min_count == 1 else {"min_count": self.min_count}
        return min_count if self.max_size is None else {**min_count, "max_size": self.max_size}


@dataclass(frozen=True)
class HeldOut:
    """Options that choose the splits; validation and test are by default taken from CORPUS."""

    valid: Annotated[
        str | None, option("--valid", "Validation corpus, not part of CORPUS.", "FILE")
    ] = None
    test: Annotated[str | None, option("--test", "Test corpus, not part of CORPUS.", "FILE")] = None
    lines: Annotated[
        float | None,
        option(
            "--lines",
            "Read only the first lines of CORPUS: their number, or a share such as 10%.",
            "N|SHARE",
            parser=lines,
        ),
    ] = None

    def part(self, corpus: Corpus) -> Corpus:
        """Return the lines of a corpus that `lines` chooses, one at least."""
        if self.lines is None:
            return corpus
        number = self.lines if self.lines >= 1 else self.lines * corpus.n_lines
        return corpus.select_lines(0, min(corpus.n_lines, max(1, round(number))))


@dataclass(frozen=True)
class Budget:
    """Options of how long a command with several trainings may take."""

    minutes: Annotated[
        float | None,
        option("--minutes", "Fit the epochs, or the rows, to this time for everything.", "N"),
    ] = None
    plan: Annotated[
        bool, option("--plan", "Print what would be done and how long it takes, and stop.")
    ] = False


@dataclass(frozen=True)
class Resuming:
    """Options of how a stopped command goes on."""

    checkpoint_minutes: Annotated[
        float,
        option(
            "--checkpoint-minutes",
            "Save the state of a training this often; a stopped command goes on from it.",
            "N",
            min=0,
        ),
    ] = 5.0
    fresh: Annotated[
        bool, option("--fresh", "Start anew, not where the same command was stopped.")
    ] = False

    @contextmanager
    def applied(self, kept: Iterable[Path] = ()) -> Iterator[None]:
        """Train in the body with these options; remove the folders `kept` first to start anew."""
        from hstree.training.checkpoints import defaults

        if self.fresh:
            for folder in kept:
                shutil.rmtree(folder, ignore_errors=True)
        with defaults(minutes=self.checkpoint_minutes, fresh=self.fresh):
            yield

    @staticmethod
    def folder() -> Path:
        """Return where states of trainings are kept that have no folder of their own."""
        from hstree._files import cache_folder

        return cache_folder() / "checkpoints"


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

#: Command lines at the ends of the commands' help pages.
EXAMPLES: dict[Callable[..., Any], tuple[str, ...]] = {}


def examples(*lines: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that attaches examples to a command's function."""

    def attach(command: CommandFunction) -> CommandFunction:
        EXAMPLES[command] = lines
        return command

    return attach
