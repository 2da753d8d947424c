"""Options and arguments that several commands share."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hstree.experiments.results import Stop

#: Options whose name on the command line differs from their name in Python.
TYPED = {"random_state": "seed", "n_jobs": "jobs"}
#: Training options that are not options of a model under the same name.
NOT_OF_MODELS = {"model", "seed", "epochs", "seconds"}
CORPUS_KINDS = (
    "a text file (.txt, .gz, .xz, .bz2, .zst), a folder, a pattern such as '*.txt', nltk:NAME, "
    "builtin:python, or - for standard input"
)
CANDIDATE_HELP = (
    'Candidate: a builder ("gmm epsilon=0.4"), a builder with a layer ("gmm + ngrams"), an '
    'output layer ("sampled samples=500")'
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
    """Describe an option whose flags are separated by spaces.

    With ``readable=False``, Typer does not check files. The library reports an unreadable file as
    bad input, Typer would report wrong usage.
    """
    return typer.Option(*flags.split(), help=help, metavar=metavar, readable=False, **more)


argument: Any = functools.partial(typer.Argument, show_default=False, readable=False)
_training = functools.partial(option, rich_help_panel="Training", show_default=False)
_reading = functools.partial(option, rich_help_panel="Reading a corpus")

CorpusName = Annotated[str, argument(metavar="CORPUS", help=f"Corpus: {CORPUS_KINDS}.")]
TreeFile = Annotated[Path, argument(metavar="TREE", help="Tree file (.json, .json.gz or .npz).")]
ModelFolder = Annotated[
    Path, argument(metavar="MODEL_DIR", help="Folder written by `hstree evaluate --save`.")
]
With = Annotated[
    list[Path] | None,
    option("--with", "Average probabilities with this model (repeatable).", "MODEL_DIR"),
]
Force = Annotated[bool, option("--force", "Replace existing files.")]
Replace = Annotated[bool, option("--force", "Replace a comparison in DIR that has other settings.")]
JsonFile = Annotated[Path | None, option("--json", "Also write the results as JSON.", "FILE")]
Jobs = Annotated[
    int | None,
    option("--jobs -j", "Number of parallel processes (-1: all cores).", "N"),
]
Scheduler = Annotated[
    str | None,
    option("--scheduler", "Run jobs on a Dask cluster (tcp://HOST:8786).", "ADDRESS"),
]
Seed = Annotated[int, option("--seed", "Random seed.", "S", min=0)]

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
    int | None,
    _reading("--max-size", "Map all but the V most frequent words to <unk>.", "V", min=1),
]
Lower = Annotated[bool, _reading("--lower", "Convert all words to lower case.")]
VocabularyFile = Annotated[
    Path | None,
    _reading("--vocabulary", "Use the words in a file written by `hstree vocab`.", "FILE"),
]
AsText = Annotated[bool, _reading("--text", "Read files as text, regardless of their extensions.")]

# Training

Model = Annotated[
    str,
    option(
        "--model",
        'Model with its options, such as "cbow window=5".',
        "MODEL",
        autocompletion=model_names,
        rich_help_panel="Training",
    ),
]
Epochs = Annotated[int | None, _training("--epochs", "Maximum number of epochs.", "N", min=0)]
Seconds = Annotated[
    float | None,
    _training("--seconds", "Maximum training time in seconds per candidate.", "S"),
]
Dim = Annotated[int | None, _training("--dim", "Dimensionality of the word vectors.", "D")]
BatchSize = Annotated[int | None, _training("--batch-size", "Number of tokens per batch.", "B")]
LearningRate = Annotated[float | None, _training("--learning-rate", "Highest learning rate.", "X")]


# Classes of options


@dataclass(frozen=True)
class WordOptions:
    """Options that choose the words of one corpus."""

    min_count: MinCount = None
    max_size: MaxSize = None
    lower: Lower = False
    text: AsText = False


@dataclass(frozen=True)
class CorpusOptions(WordOptions):
    """Options of commands that read the words of one corpus, or of its training split."""

    train_split_only: Annotated[
        bool,
        _reading(
            "--train-split-only", "Read only the first 80%, as `hstree evaluate` for training."
        ),
    ] = False
    no_unk: Annotated[bool, _reading("--no-unk", "Do not add <unk> for unknown words.")] = False


@dataclass(frozen=True)
class SplitOptions:
    """Options of commands that train on one part of a corpus and test on another."""

    valid: Annotated[
        str | None, _reading("--valid", "Validation corpus (default: a part of CORPUS).", "FILE")
    ] = None
    test: Annotated[
        str | None, _reading("--test", "Test corpus (default: a part of CORPUS).", "FILE")
    ] = None
    min_count: MinCount = None
    lower: Lower = False
    text: AsText = False
    vocabulary: VocabularyFile = None

    @property
    def files(self) -> list[object]:
        """The inputs that these options name."""
        return [self.valid, self.test, self.vocabulary]


@dataclass(frozen=True)
class VectorTrainingOptions:
    """Options of commands that train word vectors."""

    epochs: Epochs = None
    seconds: Seconds = None
    seed: Seed = 0
    model: Model = "cbow"
    dim: Dim = None
    batch_size: BatchSize = None
    learning_rate: LearningRate = None

    def model_options(self, **more: Any) -> dict[str, Any]:
        """Return these options and `more` as options of `hstree.models.new_model`.

        An option that is None was not typed. Raises OptionError if the model has no such option.
        """
        from hstree._options import parse_options, typed_words
        from hstree.errors import OptionError
        from hstree.models import MODELS

        name, *pairs = typed_words(self.model) or [""]
        known = MODELS.get(name).options
        values = parse_options(name, known, pairs)
        # Options of the command line replace those with the same name in --model
        typed = {key: value for key, value in vars(self).items() if key not in NOT_OF_MODELS}
        for key, value in {**typed, "random_state": self.seed, **more}.items():
            if value is not None and all(option.name != key for option in known):
                raise OptionError(f"the model {name} has no option {flag(key)}; remove it")
            if value is not None:
                values[key] = value
        return {"model": name, **values}


@dataclass(frozen=True)
class TrainingOptions(VectorTrainingOptions):
    """Options of commands that train language models."""

    model: Model = "lbl"
    context: Annotated[
        int | None, _training("--context", "Number of context words before the target.", "N")
    ] = None
    dropout: Annotated[float | None, _training("--dropout", "Dropout probability.", "P")] = None
    rates: Annotated[
        str | None,
        _training(
            "--rates",
            "Learning rates to choose from, such as 0.03,0.1,0.3 (PyTorch models).",
            "X,X",
        ),
    ] = None
    device: Annotated[
        str | None,
        _training("--device", "Device for PyTorch models: auto, cpu, cuda, cuda:1, mps.", "NAME"),
    ] = None

    def stopping_rule(self, minutes: float | None = None) -> "Stop | None":
        """Return the stopping rule, or None if none was typed; refuse more than one."""
        from hstree.errors import OptionError
        from hstree.experiments.results import Epochs, Halving, Seconds

        rules = (self.epochs, self.seconds, minutes)
        if sum(rule is not None for rule in rules) > 1:
            raise OptionError("--epochs, --seconds and --minutes cannot be combined; use one")
        for name, value in (("--seconds", self.seconds), ("--minutes", minutes)):
            if value is not None and not 0 < value < 1e9:
                raise OptionError(f"{name} is {value:g}; it must be above 0")
        if self.epochs is not None:
            return Epochs(epochs=self.epochs)
        if self.seconds is not None:
            return Seconds(seconds=self.seconds)
        return None if minutes is None else Halving(minutes=minutes)


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is a class of options by the fields of the class.

    Typer then sees every field as an option, and the command receives one object per class.
    """
    signature = inspect.signature(command, eval_str=True)
    classes: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if not is_dataclass(parameter.annotation):
            parameters.append(parameter)
            continue
        classes[name] = parameter.annotation
        for field in inspect.signature(classes[name]).parameters.values():
            parameters.append(field.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, options in classes.items():
            typed = {field.name: values.pop(field.name) for field in fields(options)}
            values[name] = options(**typed)
        command(**values)

    # Some versions of Typer read the signature, others the annotations
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


# Values of options


def flag(name: str) -> str:
    """Return the flag of an option: ``--max-size`` for "max_size"."""
    return f"--{TYPED.get(name, name).replace('_', '-')}"
