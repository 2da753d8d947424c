"""Options and arguments that several commands share, and what is made of them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from hstree_cli import completions

if TYPE_CHECKING:
    from hstree.experiments.results import Stop

#: Error of wrong usage. Typer exports only its child; the package that defines it depends on the
#: version of Typer.
UsageError: Any = typer.BadParameter.__bases__[0]

CORPUS_KINDS = "a text (.txt, .gz, .xz, .bz2), a folder of texts, nltk:NAME or builtin:python"
ROW_HELP = (
    'A row: a builder ("gmm epsilon=0.4"), with a layer ("gmm + ngrams"), an output layer '
    '("sampled samples=500"), a tree file'
)


def option(flags: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Describe an option; several flags are separated by spaces.

    That a file cannot be read is bad input, which the library reports; Typer would call it wrong
    usage, hence ``readable=False``.
    """
    return typer.Option(*flags.split(), help=help, metavar=metavar, readable=False, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Describe an argument; see `option`."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, readable=False, **more)


def _training(flags: str, help: str, metavar: str, **more: Any) -> Any:
    return option(flags, help, metavar, rich_help_panel="Training", show_default=False, **more)


def _reading(flags: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return option(flags, help, metavar, rich_help_panel="Reading a corpus", **more)


CorpusName = Annotated[str, argument("CORPUS", f"A corpus: {CORPUS_KINDS}; - for stdin.")]
TreeFile = Annotated[Path, argument("TREE", "A tree: .json, .json.gz or .npz.")]
ModelFolder = Annotated[
    Path, argument("MODEL_DIR", "The folder of a model that `hstree evaluate --save` wrote.")
]
With = Annotated[
    list[Path] | None,
    option("--with", "Another model, whose probabilities are averaged; repeatable.", "MODEL_DIR"),
]
Quiet = Annotated[bool, option("--quiet -q", "Show no progress.")]
Force = Annotated[bool, option("--force", "Replace existing files.")]
Replace = Annotated[
    bool, option("--force", "Replace a comparison of another text, model or rule in DIR.")
]
JsonFile = Annotated[Path | None, option("--json", "Also write the results as JSON.", "FILE")]
TrainSplitOnly = Annotated[
    bool,
    option(
        "--train-split-only",
        "Read only the lines of the corpus that `hstree evaluate` trains on: the first 80%.",
    ),
]

# Reading a corpus

MinCount = Annotated[
    int,
    _reading("--min-count", "Replace words that occur fewer than N times by <unk>.", "N", min=1),
]
MaxSize = Annotated[
    int | None,
    _reading(
        "--max-size", "Keep the V most frequent words; replace the others by <unk>.", "V", min=1
    ),
]
Lower = Annotated[bool, _reading("--lower", "Lower-case every word.")]
VocabularyFile = Annotated[
    Path | None,
    _reading("--vocabulary", "Use the words of this file (lines of word<TAB>count).", "FILE"),
]
Valid = Annotated[str | None, _reading("--valid", "Validation corpus, not part of CORPUS.", "FILE")]
Test = Annotated[str | None, _reading("--test", "Test corpus, not part of CORPUS.", "FILE")]


def selection(min_count: int, max_size: int | None = None) -> dict[str, Any]:
    """Return the options that select words by their counts: `min_count` above 1 and `max_size`."""
    chosen = {} if min_count == 1 else {"min_count": min_count}
    return chosen if max_size is None else {**chosen, "max_size": max_size}


# Training


def _check_seed(seed: int) -> int:
    # Not by `min` and `max`: help pages would give the range more room than the help.
    from hstree._options import RandomState

    if seed not in (legal := get_args(RandomState)[1]):
        raise typer.BadParameter(f"{seed} is not {legal}")
    return seed


Seed = Annotated[int, option("--seed", "Random seed.", "S", callback=_check_seed)]
Model = Annotated[
    str,
    option(
        "--model",
        'Model to train, with its options, as in "cbow window=5".',
        "MODEL",
        rich_help_panel="Training",
        autocompletion=completions.models,
    ),
]
Epochs = Annotated[int | None, _training("--epochs", "Train for at most N epochs.", "N", min=0)]
Seconds = Annotated[
    float | None, _training("--seconds", "Train each row until S seconds from the text.", "S")
]
Minutes = Annotated[
    float | None,
    _training(
        "--minutes",
        "Train all rows equally long, then the better half on, M minutes in all (default: 10).",
        "M",
    ),
]
Dim = Annotated[int | None, _training("--dim", "Length of the word vectors.", "D")]
Width = Annotated[int | None, _training("--context", "Number of words before the target.", "N")]
BatchSize = Annotated[int | None, _training("--batch-size", "Positions in a minibatch.", "B")]
LearningRate = Annotated[
    float | None, _training("--learning-rate", "Learning rate at the start.", "X")
]
Dropout = Annotated[
    float | None, _training("--dropout", "Share of the hidden vectors left out.", "P")
]
WeightDecay = Annotated[float | None, _training("--weight-decay", "Decay of vectors.", "X")]


def flag(name: str) -> str:
    """Return an option's Python name as it is typed: ``--max-size`` for "max_size"."""
    return "--seed" if name == "random_state" else f"--{name.replace('_', '-')}"


def model_options(model: str, **typed: Any) -> dict[str, Any]:
    """Return the options of `hstree.models.new_model` from ``--model`` and plain options.

    Those that are None were not typed. Raises OptionError for one that the model does not have.
    """
    from hstree._options import parse_options, refuse_flags
    from hstree.errors import OptionError
    from hstree.models import MODELS

    name, *pairs = shlex.split(model) or [""]
    refuse_flags(model, [name, *pairs])
    kind = MODELS.get(name)
    values = parse_options(name, kind.options, pairs)
    known = {option.name for option in kind.options}
    for option, value in typed.items():
        if value is None:
            continue
        if option not in known:
            raise OptionError(f"the model {name} has no option {flag(option)}; leave it out")
        values[option] = value
    return {"model": name, **values}


def stopping_rule(
    epochs: int | None, seconds: float | None, minutes: float | None = None
) -> Stop | None:
    """Return the rule that was typed, None without one; several are refused."""
    from hstree.errors import OptionError
    from hstree.experiments import results

    if sum(rule is not None for rule in (epochs, seconds, minutes)) > 1:
        raise OptionError("--epochs, --seconds and --minutes are different rules; give one of them")
    for name, value in (("--seconds", seconds), ("--minutes", minutes)):
        if value is not None and not 0 < value < 1e9:
            raise OptionError(f"{name} is {value:g}; it must be above 0")
    if epochs is not None:
        return results.Epochs(epochs)
    if seconds is not None:
        return results.Seconds(seconds=seconds)
    return None if minutes is None else results.Halving(minutes=minutes)


def builder_of(method: str, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the builder and the values of its options that ``--method`` spells.

    Raises OptionError when there is none of the name, or an option cannot have its value.
    """
    from hstree._options import parse_options, refuse_flags
    from hstree.builders import builder
    from hstree.errors import OptionError

    tokens = shlex.split(method)
    refuse_flags(method, tokens)
    name, *pairs = tokens or [""]
    if "+" in pairs:
        raise OptionError(
            f"{method!r} names a layer, too, and a tree has none; `hstree compare CORPUS "
            f"{method!r} -o DIR` trains with it"
        )
    chosen = builder(name)
    options = parse_options(name, chosen.options, pairs)
    if any(option.name == "random_state" for option in chosen.options):
        options.setdefault("random_state", seed)
    return chosen, options
