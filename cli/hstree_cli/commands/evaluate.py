"""`hstree evaluate`: what a tree buys. Trains a model on it and prints perplexity."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.examples import examples
from hstree_cli.exits import INTERRUPTED
from hstree_cli.options import (
    CORPUS_KINDS,
    BatchSize,
    Context,
    Dim,
    Dropout,
    Epochs,
    Full,
    JsonFile,
    LearningRate,
    Lower,
    MaxSize,
    MinCount,
    ModelName,
    Quiet,
    Sample,
    Seed,
    TestText,
    ValidText,
    VocabularyFile,
    WeightDecay,
    Window,
)
from hstree_cli.usage import UsageError

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.models.base import TreeModel

#: Options that mean nothing to a model that is already trained.
_OF_TRAINING = (
    "valid",
    "test",
    "model",
    "dim",
    "context",
    "window",
    "sample",
    "full",
    "epochs",
    "batch_size",
    "learning_rate",
    "dropout",
    "weight_decay",
    "seed",
    "save",
)


@examples(
    "hstree evaluate huffman.json corpus.txt --json result.json --save model",
    "hstree evaluate model other.txt --no-train",
)
def evaluate(
    ctx: typer.Context,
    tree: Annotated[
        Path,
        typer.Argument(
            metavar="TREE",
            help="A tree; with --no-train, a model's folder.",
            show_default=False,
            readable=False,
        ),
    ],
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}.", show_default=False)
    ],
    valid: ValidText = None,
    test: TestText = None,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Score a saved model on every line of CORPUS.")
    ] = False,
    model: ModelName = "lbl",
    dim: Dim = 100,
    context: Context = 5,
    window: Window = 5,
    sample: Sample = 0.0,
    full: Full = False,
    epochs: Epochs = 20,
    batch_size: BatchSize = 256,
    learning_rate: LearningRate = 0.1,
    dropout: Dropout = 0.35,
    weight_decay: WeightDecay = 1.5e-5,
    seed: Seed = 0,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="MODEL_DIR", help="Keep the trained model.", readable=False),
    ] = None,
    vectors_out: Annotated[
        Path | None,
        typer.Option(
            "--vectors-out",
            metavar="FILE.npy",
            help="Write each word's mean predicted vector, from which trees can be built.",
            readable=False,
        ),
    ] = None,
    json: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Train a model on a tree and print its perplexity.

    Without --valid and --test, the last 10% of CORPUS's lines are the test part
    and the 10% before them the validation part; with one of them, the other is
    the last 10%. The tree's labels are the vocabulary. Ctrl-C keeps the best
    weights so far. cbow and skipgram predict a word from words on both sides:
    their perplexity compares with no language model's.
    """
    from hstree._files import write_json
    from hstree.data.vector_files.npy import labels_path
    from hstree.errors import HstreeError
    from hstree.models.files import FILES
    from hstree_cli.messages import warn
    from hstree_cli.models import model_options
    from hstree_cli.outputs import check_file, check_folder, written
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin
    from hstree_cli.scores import print_evaluation

    options = model_options(
        ctx,
        model=model,
        dim=dim,
        context=context,
        full=full,
        window=window,
        sample=sample,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        dropout=dropout,
        weight_decay=weight_decay,
        seed=seed,
    )
    reading = {
        "lower": lower,
        "vocabulary": vocabulary,
        "min_count": min_count,
        "max_size": max_size,
    }
    _check_kind(ctx, tree, no_train)
    read = [tree, *(tree / name for name in FILES), corpus, valid, test, vocabulary]
    if json is not None:
        check_file(json, "--json", apart_from=read)
    if vectors_out is not None:
        check_file(vectors_out, "--vectors-out", (".npy",), apart_from=[*read, json])
        check_file(labels_path(vectors_out), "--vectors-out", apart_from=[*read, json])
    if save is not None:
        check_folder(save, "--save", FILES, apart_from=[*read, json])

    unsaved = save

    def keep(trained: TreeModel[Any]) -> None:
        """Save the model before it is scored; what fails is tried again, and named, at the end."""
        nonlocal unsaved
        if save is not None:
            with suppress(HstreeError, OSError):
                trained.save(save)
                unsaved = None

    with showing_progress(quiet):
        if no_train:
            loaded, text, figures = _score(tree, corpus, reading)
        else:
            loaded, text, figures = _train(tree, (corpus, valid, test), reading, options, keep)
    with written(
        (unsaved, loaded.save),
        (json, lambda path: write_json(path, figures)),
        (vectors_out, lambda path: _save_vectors(loaded, text, path, quiet)),
    ):
        print_evaluation(figures, origin(text))
    if figures.get("interrupted"):
        warn("interrupted: these figures are of the best weights so far")
        raise typer.Exit(INTERRUPTED)


def _save_vectors(model: TreeModel[Any], text: Corpus, path: Path, quiet: bool) -> None:
    from hstree_cli.progressbar import showing_progress

    with showing_progress(quiet):
        model.mean_predicted_vectors(text).save(path)


def _check_kind(ctx: typer.Context, tree: Path, no_train: bool) -> None:
    """Refuse a model's folder where a tree is wanted, and options that training alone has.

    Raises
    ------
    UsageError
    """
    if tree.is_dir() and not no_train:
        raise UsageError(
            f"{tree} is a folder: add --no-train to score the model in it, "
            f"or train anew on {tree / 'tree.json'}",
            ctx,
        )
    if tree.is_file() and no_train:
        raise UsageError(
            f"--no-train wants a model's folder, as --save makes one, and {tree} is a file; "
            "--epochs 0 scores the untrained model on a tree",
            ctx,
        )
    if no_train:
        sources = {name: ctx.get_parameter_source(name) for name in _OF_TRAINING}
        given = [name for name, source in sources.items() if source and source.name != "DEFAULT"]
        if given:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise UsageError(f"{flags}: not with --no-train, which trains nothing", ctx)


def _train(
    path: Path,
    sources: tuple[str, str | None, str | None],
    reading: dict[str, Any],
    options: dict[str, Any],
    keep: Callable[[TreeModel[Any]], None],
) -> tuple[TreeModel[Any], Corpus, dict[str, Any]]:
    """Train on a tree; return the model, the text that it was trained on, and the figures."""
    from hstree.experiments.evaluation import evaluate
    from hstree.tree import load
    from hstree_cli.reading import Reader, warn_of_seen_lines

    tree = load(path)
    splits = Reader(tree, **reading).splits(*sources)
    warn_of_seen_lines(splits, {"": tree})
    found = evaluate(tree, splits, trained=keep, **options)
    return found.model, found.splits.train, found.as_dict()


def _score(
    path: Path, source: str, reading: dict[str, Any]
) -> tuple[TreeModel[Any], Corpus, dict[str, Any]]:
    """Score a saved model; return it, the text, and the figures."""
    from hstree.experiments.evaluation import score_saved
    from hstree.models.base import load
    from hstree_cli.messages import warn
    from hstree_cli.reading import Reader

    model = load(path)
    text = Reader(model.tree, **reading).text(source)
    figures = score_saved(model, text)
    if figures["seen"] is not None:
        warn(figures["seen"])
    return model, text, figures
