"""How to get the chosen candidate: what it is, the command that makes it, its files, and Python."""

import shlex
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hstree._options import spelled
from hstree.data.vocabulary import Vocabulary, automatic_count
from hstree.errors import HstreeError
from hstree.experiments.candidate import Candidate, EnsembleCandidate, TreeCandidate
from hstree.experiments.results import WORDS, CandidateResult, Comparison, Epochs, Seconds
from hstree.models import kind_of
from hstree.models.base import DEFAULT_MODEL


class Recipe(Struct, frozen=True):
    """What somebody needs who wants to use a candidate."""

    sentence: str  #: what the candidate is
    command: str | None  #: shell command that trains it, in the comparison's folder, where known
    tree_file: str | None  #: path of its tree in that folder
    models: list[str]  #: paths of the folders of its trained models
    python: str  #: lines that put it into a PyTorch model, or load what was trained


def recipe_of(candidate: CandidateResult, comparison: Comparison, folder: Path) -> Recipe:
    """Return the recipe of a trained candidate of a comparison in `folder`."""
    models = [f"{job.folder}/model" for job in candidate.jobs[: candidate.models]]
    if candidate.models > 1:
        loaded = "".join(f"    hstree.load_model({model!r}),\n" for model in models)
        python = f"import hstree\nmodel = hstree.Ensemble([\n{loaded}])"
    elif candidate.is_flat:
        layer = f"layer = torch.nn.Linear(d, {comparison.vocabulary.size:_})"
        python = f"import torch\n{layer}  # and cross-entropy, without a tree"
    elif candidate.kind == "tree" and candidate.layer is None:
        python = (
            "import hstree\n"
            "from hstree.interop.torch import HierarchicalSoftmax\n"
            f"tree = hstree.load({candidate.tree_file!r})\n"
            "layer = HierarchicalSoftmax(tree, in_features=d)"
        )
    else:
        python = f"import hstree\nmodel = hstree.load_model({models[0]!r})  # in NumPy"
    command, corpus = None, str(comparison.corpus["train"].get("name") or "")
    if corpus and (folder / WORDS).exists():
        with suppress(HstreeError):  # a builder or layer that is not installed here
            parsed = Candidate.parse(candidate.name)
            command = shlex.join(_command(parsed, candidate, corpus, comparison, folder))
    return Recipe(describe(candidate), command, candidate.tree_file, models, python)


def describe(figures: CandidateResult) -> str:
    """Say what a candidate is; of a tree from a file, with the options that it was built with."""
    try:
        candidate = Candidate.parse(figures.name).single
    except HstreeError:  # a builder or layer that is not installed here
        return figures.summary
    if isinstance(candidate, TreeCandidate):
        options = ", ".join(f"{name}={value}" for name, value in figures.options.items())
        return f"{figures.summary} With {options}." if options else figures.summary
    if candidate.source is None:
        return figures.summary
    return (
        f"{figures.summary} Built from each word\u2019s mean predicted vector under the same model "
        f"trained on a {candidate.source} tree."
    )


def _keeps_all_words(comparison: Comparison, folder: Path) -> bool:
    """Return whether all words of the training split are kept, and would be by default."""
    words = Vocabulary.from_file(folder / WORDS)
    least = automatic_count(words.words, words.counts)
    return comparison.oov["train"] == 0 and int(words.counts.min()) >= least


def _command(
    candidate: Candidate,
    figures: CandidateResult,
    corpus: str,
    comparison: Comparison,
    folder: Path,
) -> list[str]:
    """Return the command that trains a candidate again, without options that are defaults."""
    sources, typed = comparison.corpus, list[str]()
    # the vocabulary, unless it is the tree's labels, or the one that is chosen by default
    if not isinstance(candidate.single, TreeCandidate) and not _keeps_all_words(comparison, folder):
        typed += ["--vocabulary", WORDS]
    for split in ("valid", "test"):
        if sources[split].get("sha256") != sources["train"].get("sha256"):
            typed += [f"--{split}", str(sources[split].get("name"))]
    typed += ["--lower"] if sources["train"].get("lower") else []
    kind, seed = kind_of(comparison.options), comparison.seeds[0]
    values = {name: value for name, value in comparison.options.items() if value is not None}
    model = spelled(kind.name, kind.options, values)
    typed += ["--model", model] if model != DEFAULT_MODEL else []
    typed += ["--seed", str(seed)] if seed else []
    match comparison.stop:
        case Epochs(epochs=epochs):
            typed += ["--epochs", str(epochs)] if epochs != Epochs().epochs else []
        case Seconds(seconds=seconds):
            typed += ["--seconds", f"{seconds:g}"]
        case _:  # what the candidate had of the halving
            seconds = (figures.steps.total or 0.0) / figures.models
            typed += ["--seconds", str(max(round(seconds), 1))]
    if isinstance(candidate, EnsembleCandidate):
        return ["hstree", "compare", corpus, candidate.name, *typed, "-o", "again"]
    name = candidate.name
    if isinstance(candidate, TreeCandidate):
        layer = "" if candidate.layer is None else f" + {candidate.layer}"
        name = shlex.quote(str(figures.tree_file)) + layer
    return ["hstree", "evaluate", name, corpus, *typed, "--save", "model"]
