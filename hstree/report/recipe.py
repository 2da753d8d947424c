"""How to get the chosen row: what it is, the command that makes it, its files, and Python."""

import shlex
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hstree._options import spelled
from hstree.builders import builder
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import HstreeError
from hstree.experiments.results import WORDS, Comparison, Epochs, RowResult, Seconds
from hstree.experiments.row import BuilderRow, Row, Several, TreeRow
from hstree.models import kind_of
from hstree.models.base import DEFAULT_MODEL

#: Options of a model that are options of the commands, too.
_SHARED = ("dim", "context", "batch_size", "learning_rate", "dropout", "weight_decay")


class Recipe(Struct, frozen=True):
    """What somebody needs who wants to use a row."""

    sentence: str  #: what the row is
    command: str | None  #: shell command that makes it, in the comparison's folder, where known
    tree_file: str | None  #: path of its tree in that folder
    models: list[str]  #: paths of the folders of its trained models
    python: str  #: lines that put it into a PyTorch model, or load what was trained


def recipe_of(row: RowResult, comparison: Comparison, folder: Path) -> Recipe:
    """Return the recipe of a trained row of a comparison in `folder`."""
    models = [f"{job.folder}/model" for job in row.jobs[: row.models]]
    if row.models > 1:
        loaded = "".join(f"    hstree.load_model({model!r}),\n" for model in models)
        python = f"import hstree\nmodel = hstree.Ensemble([\n{loaded}])"
    elif row.is_flat:
        layer = f"layer = torch.nn.Linear(d, {comparison.vocabulary.size:_})"
        python = f"import torch\n{layer}  # and cross-entropy, without a tree"
    elif row.kind == "tree" and row.layer is None:
        python = (
            "import hstree\n"
            "from hstree.interop.torch import HierarchicalSoftmax\n"
            f"tree = hstree.load({row.tree_file!r})\n"
            "layer = HierarchicalSoftmax(tree, in_features=d)"
        )
    else:
        python = f"import hstree\nmodel = hstree.load_model({models[0]!r})  # in NumPy"
    command, corpus = None, str(comparison.corpus["train"].get("name") or "")
    if corpus and (folder / WORDS).exists():
        with suppress(HstreeError):  # a builder or layer that is not installed here
            command = shlex.join(_command(Row.parse(row.name), row, corpus, comparison))
    return Recipe(how_made(row), command, row.tree_file, models, python)


def how_made(figures: RowResult) -> str:
    """Say what a row is; of a tree from a file, with the options that it was built with."""
    try:
        row = Row.parse(figures.name).single
    except HstreeError:  # a builder or layer that is not installed here
        return figures.summary
    if isinstance(row, TreeRow):
        options = ", ".join(f"{name}={value}" for name, value in figures.options.items())
        return f"{figures.summary} With {options}." if options else figures.summary
    if row.source is None:
        return figures.summary
    return (
        f"{figures.summary} Built from each word\u2019s mean predicted vector under the same model "
        f"trained on a {row.source} tree."
    )


def _command(row: Row, figures: RowResult, corpus: str, comparison: Comparison) -> list[str]:
    """Return the command that builds a row's tree again, or trains its layer."""
    training = _training(figures, comparison)
    if isinstance(row, Several):
        return ["hstree", "compare", corpus, str(row), *training, "-o", "again"]
    if not isinstance(row, BuilderRow) or row.layer is not None:
        typed = str(row)
        if isinstance(row, TreeRow):
            layer = "" if row.layer is None else f" + {row.layer}"
            typed = shlex.quote(str(figures.tree_file)) + layer
        return ["hstree", "evaluate", typed, corpus, *training, "--save", "model"]
    made_by, values, seed = builder(row.method), dict(row.options), comparison.seeds[0]
    vectors, seeded = values.pop("vectors_file", None), []
    if "random_state=" not in str(row) and values.pop("random_state", None) is not None:
        seeded = ["--seed", str(seed)] if seed else []
    if row.source is not None:
        vectors = f"vectors/{row.source.folder}/seed-{seed}/vectors.npy"
    inputs = [WORDS]
    if made_by.takes is WordVectors:
        inputs = [str(vectors), *(["--vocabulary", WORDS] if row.source is None else [])]
    elif made_by.takes is Corpus:
        is_one_text = len({source.get("sha256") for source in comparison.corpus.values()}) == 1
        only = ["--train-split-only"] if is_one_text else []
        inputs = [corpus, *only, "--vocabulary", WORDS]
        values["vectors_file"] = vectors
    method = spelled(row.method, made_by.options, values)
    return ["hstree", "build", "--method", method, *inputs, *seeded, "-o", "tree.json"]


def _training(figures: RowResult, comparison: Comparison) -> list[str]:
    """Return the options of the text, the model and the rule that differ from their defaults."""
    sources = comparison.corpus
    # the vocabulary, unless it is all words of the training split
    unseen = [band.words for band in comparison.bands if band.least == 0]
    is_default = bool(comparison.bands) and not any(unseen) and not comparison.oov["train"]
    typed = [] if is_default else ["--vocabulary", WORDS]
    for split in ("valid", "test"):
        if sources[split].get("sha256") != sources["train"].get("sha256"):
            typed += [f"--{split}", str(sources[split].get("name"))]
    kind, seed = kind_of(comparison.options), comparison.seeds[0]
    others = [option for option in kind.options if option.name not in _SHARED]
    values = {name: value for name, value in comparison.options.items() if value is not None}
    model = spelled(kind.name, others, values)
    if model != DEFAULT_MODEL:
        typed += ["--model", model]
    for option in kind.options:
        value = values.get(option.name, option.default)
        if option.name in _SHARED and value != option.default:
            typed += [f"--{option.name.replace('_', '-')}", str(value)]
    typed += ["--seed", str(seed)] if seed else []
    match comparison.stop:
        case Epochs(epochs=epochs):
            return typed if epochs == Epochs().epochs else [*typed, "--epochs", str(epochs)]
        case Seconds(seconds=seconds):
            return [*typed, "--seconds", f"{seconds:g}"]
    seconds = (figures.steps.total or 0.0) / figures.models
    return [*typed, "--seconds", str(max(round(seconds), 1))]
