"""Recipe for the chosen candidate: the command that trains it, its files, and Python code."""

import shlex
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hstree._options import spelled
from hstree.data.vocabulary import Vocabulary, automatic_count
from hstree.errors import HstreeError
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import WORDS, CandidateResult, Comparison, Epochs, Seconds
from hstree.experiments.store import MODEL
from hstree.models import kind_of
from hstree.models.base import DEFAULT_MODEL


class Recipe(Struct, frozen=True):
    """Files and commands to use a candidate. Paths are relative to the folder of the comparison."""

    description: str
    command: str | None  #: shell command that trains it in that folder; None if unknown
    tree_file: str | None
    models: list[str]  #: folders of the trained models
    python: str  #: code for PyTorch, or code that loads the trained models


def make_recipe(result: CandidateResult, comparison: Comparison, folder: Path) -> Recipe:
    """Return the recipe for a trained candidate in a comparison in `folder`."""
    models = [f"{job.folder}/{MODEL}" for job in result.jobs[: result.models]]
    command = None
    corpus = str(comparison.corpus["train"].get("name") or "")
    if corpus and (folder / WORDS).exists():
        with suppress(HstreeError):  # a builder or layer that is not installed here
            command = shlex.join(_command(result, corpus, comparison, folder))
    backend = kind_of(comparison.options).model.backend
    python = _python_code(result, models, comparison.vocabulary.size, backend)
    return Recipe(describe(result), command, result.tree_file, models, python)


def describe(result: CandidateResult) -> str:
    """Describe a candidate; a tree file is described with the options of its builder."""
    try:
        candidate = Candidate.parse(result.name).single
    except HstreeError:  # a builder or layer that is not installed here
        return result.summary
    if candidate.tree is not None:
        options = ", ".join(f"{name}={value}" for name, value in result.options.items())
        return f"{result.summary} With {options}." if options else result.summary
    if candidate.source is None:
        return result.summary
    return (
        f"{result.summary} Built from the mean predicted vector of each word, which the same model "
        f"learned with a {candidate.source} tree."
    )


def _python_code(result: CandidateResult, models: list[str], n_words: int, backend: str) -> str:
    """Return Python code that creates a PyTorch layer or loads the trained models."""
    if result.models > 1:
        loaded = "".join(f"    hstree.load_model({model!r}),\n" for model in models)
        return f"import hstree\nmodel = hstree.Ensemble([\n{loaded}])"
    if result.is_flat:
        layer = f"layer = torch.nn.Linear(d, {n_words:_})"
        return f"import torch\n{layer}  # with the cross-entropy loss"
    if result.has_tree and result.layer is None:
        return (
            "import hstree\n"
            "from hstree.interop.torch import HierarchicalSoftmax\n"
            f"tree = hstree.load({result.tree_file!r})\n"
            "layer = HierarchicalSoftmax(tree, in_features=d)"
        )
    return f"import hstree\nmodel = hstree.load_model({models[0]!r})  # in {backend}"


def _command(
    result: CandidateResult, corpus: str, comparison: Comparison, folder: Path
) -> list[str]:
    """Return the command that trains a candidate again, without default options."""
    candidate = Candidate.parse(result.name)
    options: list[str] = []

    # The vocabulary of a tree file is its labels; otherwise it may be the default selection
    if candidate.single.tree is None and not _has_default_words(comparison, folder):
        options += ["--vocabulary", WORDS]
    train = comparison.corpus["train"]
    for split in ("valid", "test"):
        source = comparison.corpus[split]
        if source.get("sha256") != train.get("sha256"):
            options += [f"--{split}", str(source.get("name"))]
    if train.get("lower"):
        options.append("--lower")

    kind = kind_of(comparison.options)
    values = {name: value for name, value in comparison.options.items() if value is not None}
    model = spelled(kind.name, kind.options, values)
    if model != DEFAULT_MODEL:
        options += ["--model", model]
    seed = comparison.seeds[0]
    if seed:
        options += ["--seed", str(seed)]
    options += _stopping_options(result, comparison)

    if candidate.models > 1:
        return ["hstree", "compare", corpus, candidate.name, *options, "-o", "again"]
    name = candidate.name
    if candidate.tree is not None:
        layer = "" if candidate.layer is None else f" + {candidate.layer}"
        name = shlex.quote(str(result.tree_file)) + layer
    return ["hstree", "evaluate", name, corpus, *options, "--save", "model"]


def _stopping_options(result: CandidateResult, comparison: Comparison) -> list[str]:
    """Return the options for the training time of a candidate."""
    match comparison.stop:
        case Epochs(epochs=epochs) if epochs == Epochs().epochs:
            return []
        case Epochs(epochs=epochs):
            return ["--epochs", str(epochs)]
        case Seconds(seconds=seconds):
            return ["--seconds", f"{seconds:g}"]
        case _:  # halving: the seconds of one model
            seconds = (result.timings.total or 0.0) / result.models
            return ["--seconds", str(max(round(seconds), 1))]


def _has_default_words(comparison: Comparison, folder: Path) -> bool:
    """Return whether the vocabulary is the default selection from the training split."""
    words = Vocabulary.from_file(folder / WORDS)
    min_count = automatic_count(words.words, words.counts)
    return comparison.oov["train"] == 0 and int(words.counts.min()) >= min_count
