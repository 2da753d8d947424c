"""How to get the chosen row: what it is, the command that makes it, its files, and PyTorch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hstree._options import Option
from hstree.builders.registry import builder
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import HstreeError
from hstree.experiments.entries import method_of
from hstree.experiments.results import Comparison
from hstree.experiments.work import RANDOM
from hstree.layers.registry import LAYERS
from hstree.models import kind_of
from hstree.report.table import PageRow

#: Files of a run: the words' vectors, and the words with their training counts.
_VECTORS, _WORDS = "vectors.npy", "vectors.labels.tsv"
#: Folder of an ensemble that the command of its row makes.
ENSEMBLE = "ensemble"
_IN_NUMPY = "# The PyTorch module is a tree's alone; this is the trained model, in NumPy:\n"


@dataclass(frozen=True)
class Recipe:
    """What somebody needs who wants to use a row.

    Attributes
    ----------
    sentence : str
        What the method is.
    command : str or None
        Shell command that makes it, in the comparison's folder; None where it is not known.
    tree_file : str or None
        Path of the tree in the comparison's folder; None for a layer without one.
    model : str
        Path of the trained model's folder.
    python : str
        Lines of Python that put it into a PyTorch model, or load the trained one.
    """

    sentence: str
    command: str | None
    tree_file: str | None
    model: str
    python: str


def recipe_of(row: PageRow, results: Comparison, folder: Path) -> Recipe:
    """Return the recipe of a trained row of a comparison in `folder`."""
    models = [f"{run.folder}/model" for run in row.result.runs[: row.result.models]]
    if len(models) > 1:
        return Recipe(
            sentence=how_made(row),
            command=_in_lines(["hstree", "ensemble", *models, "-o", ENSEMBLE]),
            tree_file=None,
            model=ENSEMBLE,
            python=f"{_IN_NUMPY}import hstree\nmodel = hstree.load_model({ENSEMBLE!r})",
        )
    model = models[0]
    if row.is_flat:
        size = results.vocabulary.size
        python = (
            "import torch\n"
            f"layer = torch.nn.Linear(d, {size:_})  # and cross-entropy, without a tree"
        )
    elif row.is_tree and row.result.layer is None:
        python = (
            "import hstree\n"
            "from hstree.interop.torch import HierarchicalSoftmax\n"
            f"tree = hstree.load({row.result.tree_file!r})\n"
            "layer = HierarchicalSoftmax(tree, in_features=d)"
        )
    else:
        python = f"{_IN_NUMPY}import hstree\nmodel = hstree.load_model({model!r})"
    return Recipe(
        sentence=how_made(row),
        command=_command(row, results, folder),
        tree_file=row.result.tree_file,
        model=model,
        python=python,
    )


def how_made(row: PageRow) -> str:
    """Say what the method of a row is, and with which options it was used."""
    method = row.result.method
    if method is None:
        return "Read from a tree file that does not say how it was made."
    # The row of a tree that the comparison built is called as its method is typed.
    typed = row.name.removeprefix(f"{row.result.models} x ")
    built_here, from_vectors = typed.split()[:1] == [method], False
    try:
        if row.is_tree:
            made_by = builder(method)
            summary, from_vectors = made_by.summary, made_by.takes is WordVectors
        else:
            summary = LAYERS.get(method).summary
    except HstreeError:
        summary = f"Built by {method}."
    options = _in_words(row.result.options)
    text = f"{summary} With {options}." if options else summary
    if from_vectors and built_here:
        text += (
            " Built from each word\u2019s mean predicted vector under the same model trained on "
            "a random tree."
        )
    if (layer := row.result.layer) is not None:
        with suppress(HstreeError):
            text += f" Over it: {LAYERS.get(layer.name).summary}"
        text += f" With {_in_words(layer.options)}." if layer.options else ""
    if (models := row.result.models) > 1:
        text = f"The mean probability of {models} models, each trained by itself. {text}"
    return text


def _in_words(options: Mapping[str, Any]) -> str:
    """Return the options that are set, as a list for a sentence."""
    return ", ".join(
        name if value is True else f"{name} {value}"
        for name, value in options.items()
        if value is not None and value is not False
    )


def _command(row: PageRow, results: Comparison, folder: Path) -> str | None:
    """Return the command that builds a row's tree again, or trains its layer."""
    method = row.result.method
    corpus = results.corpus["train"].get("name")
    words = f"{row.result.runs[0].folder}/{_WORDS}"
    if method is None or not corpus or not (folder / words).exists():
        return None
    reading = ["--vocabulary", words]
    try:
        if not row.is_tree:
            named = [method, *_options(LAYERS.get(method).options, row.result.options)]
            command = ["hstree", "evaluate", "--layer", shlex.join(named), str(corpus)]
            return _in_lines([*command, *reading, *_training(results)])
        made_by = builder(method)
        command = ["hstree", "build", "--method", method]
        command += _options(made_by.options, row.result.options)
    except HstreeError:
        return None
    if made_by.takes is Corpus:
        if _is_one_text(results):
            reading.append("--train-split-only")
        command += [str(corpus), *reading]
    elif made_by.takes is WordVectors:
        vectors = _vectors_of(row, results, folder)
        if vectors is None:
            return None
        command.append(vectors)
    else:
        command.append(words)
    build = _in_lines([*command, "-o", "tree.json"])
    if (layer := row.result.layer) is None:
        return build
    try:
        over = [layer.name, *_options(LAYERS.get(layer.name).options, layer.options)]
    except HstreeError:
        return None
    train = ["hstree", "evaluate", "tree.json", str(corpus), "--layer", shlex.join(over)]
    return f"{build}\n{_in_lines([*train, *_training(results)])}"


def _training(results: Comparison) -> list[str]:
    """Return the options of the comparison's model, as they are typed."""
    budget = {**results.options, "random_state": results.options["seeds"][0]}
    model = kind_of(budget)
    return ["--model", model.name, *_options(model.options, budget)]


def _vectors_of(row: PageRow, results: Comparison, folder: Path) -> str | None:
    """Return the path of the vectors that a row's tree was built from; None if not kept."""
    record, source = row.result.entry.get("vectors_from"), RANDOM
    if record is not None:
        source = method_of(record)
    vectors = f"runs/{source.slug}/seed-{results.options['seeds'][0]}/{_VECTORS}"
    return vectors if (folder / vectors).exists() else None


def _in_lines(command: Sequence[str]) -> str:
    """Return a shell command with its options on lines of their own."""
    text = shlex.join(command[:2])
    for part in command[2:]:
        text += f" \\\n  {part}" if part.startswith("-") else f" {shlex.quote(part)}"
    return text


def _is_one_text(results: Comparison) -> bool:
    """Return whether the three splits are lines of one text."""
    return len({source.get("sha256") for source in results.corpus.values()}) == 1


def _options(known: Sequence[Option], values: Mapping[str, Any]) -> list[str]:
    """Return the options that differ from their defaults, as they are typed."""
    typed: list[str] = []
    for option in known:
        value = values.get(option.name, option.default)
        name = "seed" if option.name == "random_state" else option.name.replace("_", "-")
        if value is None or value == option.default:
            continue
        if isinstance(value, bool):
            typed.append(f"--{name}" if value else f"--no-{name}")
        else:
            typed += [f"--{name}", str(value)]
    return typed
