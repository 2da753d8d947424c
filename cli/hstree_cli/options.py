"""Options and arguments that several commands share, and what is made of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hstree.experiments.results import Stop

#: Options that are typed by another name than in Python.
TYPED = {"random_state": "seed", "n_jobs": "jobs"}
CORPUS_KINDS = (
    "a text (.txt, .gz, .xz, .bz2, .zst), a folder or '*.txt', nltk:NAME or builtin:python"
)
CANDIDATE_HELP = (
    'A candidate: a builder ("gmm epsilon=0.4"), with a layer ("gmm + ngrams"), an output layer '
    '("sampled samples=500"), a tree file'
)


# Names that a shell completes


def builder_names() -> list[str]:
    """Return the names of builders."""
    from hstree.builders.registry import BUILDERS

    return BUILDERS.names()


def model_names() -> list[str]:
    """Return the names of models."""
    from hstree.models import MODELS

    return MODELS.names()


def candidate_names() -> list[str]:
    """Return the names of builders and output layers, and of sets of candidates."""
    from hstree.layers.registry import LAYERS

    sets = ["kn5", "trees", "approximations"]
    return list(dict.fromkeys([*builder_names(), *LAYERS.names(), *sets]))


# Kinds of options


def option(flags: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Describe an option; several flags are separated by spaces.

    That a file cannot be read is bad input, which the library reports; Typer would call it wrong
    usage, hence ``readable=False``.
    """
    return typer.Option(*flags.split(), help=help, metavar=metavar, readable=False, **more)


argument: Any = partial(typer.Argument, show_default=False, readable=False)
_training = partial(option, rich_help_panel="Training", show_default=False)
_reading = partial(option, rich_help_panel="Reading a corpus")

CorpusName = Annotated[
    str, argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}; - for stdin.")
]
TreeFile = Annotated[Path, argument(metavar="TREE", help="A tree: .json, .json.gz or .npz.")]
ModelFolder = Annotated[
    Path, argument(metavar="MODEL_DIR", help="Folder that `hstree evaluate --save` wrote.")
]
With = Annotated[
    list[Path] | None, option("--with", "Average with this model, too; repeatable.", "MODEL_DIR")
]
Force = Annotated[bool, option("--force", "Replace existing files.")]
Replace = Annotated[bool, option("--force", "Replace a comparison of something else in DIR.")]
JsonFile = Annotated[Path | None, option("--json", "Also write the results as JSON.", "FILE")]

Jobs = Annotated[
    int | None,
    option("--jobs -j", "Jobs at a time, in processes of their own; -1 for all cores.", "N"),
]
Scheduler = Annotated[
    str | None, option("--scheduler", "Do jobs on a Dask cluster: tcp://HOST:8786.", "ADDRESS")
]

# Reading a corpus

MinCount = Annotated[
    int | None,
    _reading(
        "--min-count",
        "Map words that occur fewer than N times to <unk> (default: 2; 1 if the text contains "
        "<unk>).",
        "N",
        min=1,
    ),
]
MaxSize = Annotated[
    int | None, _reading("--max-size", "Read all but the V most frequent as <unk>.", "V", min=1)
]
Lower = Annotated[bool, _reading("--lower", "Lower-case every word.")]
VocabularyFile = Annotated[
    Path | None, _reading("--vocabulary", "Use the words of this file, as of `vocab`.", "FILE")
]
NoUnk = Annotated[bool, _reading("--no-unk", "Leave <unk> out, for words of other texts.")]
AsText = Annotated[
    bool, _reading("--text", "Read files as text even if they look like something else.")
]
TrainSplitOnly = Annotated[
    bool, _reading("--train-split-only", "Read what `hstree evaluate` trains on: the first 80%.")
]
Valid = Annotated[str | None, _reading("--valid", "Validation corpus, not part of CORPUS.", "FILE")]
Test = Annotated[str | None, _reading("--test", "Test corpus, not part of CORPUS.", "FILE")]


# Training


Seed = Annotated[int, option("--seed", "Random seed.", "S", min=0)]
Model = Annotated[
    str,
    option(
        "--model",
        'Model with its options, as in "cbow window=5".',
        "MODEL",
        autocompletion=model_names,
        rich_help_panel="Training",
    ),
]
Epochs = Annotated[int | None, _training("--epochs", "Train for at most N epochs.", "N", min=0)]
Seconds = Annotated[
    float | None,
    _training("--seconds", "Train for S seconds (each candidate, from the text on).", "S"),
]
Minutes = Annotated[
    float | None,
    _training(
        "--minutes", "Train all candidates equally long, then the better half again (10).", "M"
    ),
]
Dim = Annotated[int | None, _training("--dim", "Length of the word vectors.", "D")]
Width = Annotated[int | None, _training("--context", "Number of words before the target.", "N")]
BatchSize = Annotated[int | None, _training("--batch-size", "Positions in a minibatch.", "B")]
Rate = Annotated[float | None, _training("--learning-rate", "Learning rate at first.", "X")]
Dropout = Annotated[float | None, _training("--dropout", "Share of hidden numbers left out.", "P")]


def flag(name: str) -> str:
    """Return an option's Python name as it is typed: ``--max-size`` for "max_size"."""
    return f"--{TYPED.get(name, name).replace('_', '-')}"


def model_options(model: str, seed: int, **typed: Any) -> dict[str, Any]:
    """Return the options of `hstree.models.new_model` from ``--model`` and plain options.

    Those that are None were not typed. Raises OptionError for one that the model does not have.
    """
    from hstree._options import parse_options, typed_words
    from hstree.errors import OptionError
    from hstree.models import MODELS

    name, *pairs = typed_words(model) or [""]
    known = MODELS.get(name).options
    values = parse_options(name, known, pairs)
    for key, value in {"random_state": seed, **typed}.items():
        if value is not None and all(option.name != key for option in known):
            raise OptionError(f"the model {name} has no option {flag(key)}; leave it out")
        if value is not None:
            values[key] = value
    return {"model": name, **values}


def stopping_rule(
    epochs: int | None, seconds: float | None, minutes: float | None = None
) -> Stop | None:
    """Return the rule that was typed, None without one; several are refused."""
    from hstree.errors import OptionError
    from hstree.experiments.results import Epochs, Halving, Seconds

    if sum(rule is not None for rule in (epochs, seconds, minutes)) > 1:
        raise OptionError("--epochs, --seconds and --minutes are different rules; give one of them")
    for name, value in (("--seconds", seconds), ("--minutes", minutes)):
        if value is not None and not 0 < value < 1e9:
            raise OptionError(f"{name} is {value:g}; it must be above 0")
    if epochs is not None:
        return Epochs(epochs=epochs)
    if seconds is not None:
        return Seconds(seconds=seconds)
    return None if minutes is None else Halving(minutes=minutes)
