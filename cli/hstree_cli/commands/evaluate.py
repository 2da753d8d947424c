"""`hstree evaluate`: the perplexity of a model trained with one output layer."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli import completions
from hstree_cli.arguments import is_model, is_tree, refuse_swapped
from hstree_cli.options import (
    ROW_HELP,
    BatchSize,
    CorpusName,
    Dim,
    Dropout,
    Epochs,
    Force,
    JsonFile,
    LearningRate,
    Lower,
    MinCount,
    Model,
    Quiet,
    Seconds,
    Seed,
    Test,
    UsageError,
    Valid,
    VocabularyFile,
    WeightDecay,
    Width,
    argument,
    model_options,
    option,
    selection,
    stopping_rule,
)
from hstree_cli.outputs import check_file, check_folder, files_of_rows, written
from hstree_cli.terminal import INTERRUPTED, showing_progress, warn

if TYPE_CHECKING:
    from hstree.experiments.compare import Evaluation
    from hstree.models import Model as TrainedModel


def evaluate(
    ctx: typer.Context,
    row: Annotated[str, argument("ROW", f"{ROW_HELP}.", autocompletion=completions.rows)],
    corpus: CorpusName,
    *,
    save: Annotated[Path | None, option("--save", "Save the trained model.", "MODEL_DIR")] = None,
    vectors_out: Annotated[
        Path | None,
        option("--vectors-out", "Write each word's mean predicted vector.", "FILE.npy"),
    ] = None,
    json: JsonFile = None,
    force: Force = False,
    valid: Valid = None,
    test: Test = None,
    min_count: MinCount = 1,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    epochs: Epochs = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    model: Model = "lbl",
    dim: Dim = None,
    context: Width = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    dropout: Dropout = None,
    weight_decay: WeightDecay = None,
    quiet: Quiet = False,
) -> None:
    """Train a model with one tree or output layer and print its perplexity.

    By default, the last 10% of CORPUS's lines are the test split and the 10% before
    them the validation split; with --valid or --test alone, the other is the last
    10%. A tree's labels are the vocabulary; other rows are over the words of the
    training split. It trains for at most 20 epochs; Ctrl-C keeps the best weights so
    far, and the same command goes on. `hstree score` scores a saved model.
    """
    from hstree._files import cache_folder, hash_of
    from hstree.data.word_files import labels_path
    from hstree.errors import HstreeError
    from hstree.experiments.compare import evaluate as train
    from hstree.experiments.row import Row
    from hstree.models.files import TREE_FILES
    from hstree_cli.commands.compare import trees_of
    from hstree_cli.inputs import limited, read_splits, read_vocabulary, warn_of_trees
    from hstree_cli.results import print_evaluation

    refuse_swapped(ctx, Path(row), corpus, lambda path: is_tree(path) or is_model(path))
    if is_model(Path(row)):
        raise UsageError(f"{row} is a trained model; `hstree score {row} {corpus}` scores it", ctx)
    options = model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout, weight_decay=weight_decay,
    )  # fmt: skip
    stop = stopping_rule(epochs, seconds)
    one = Row.parse(row)
    reads = [corpus, valid, test, vocabulary, *files_of_rows([one])]
    check_file(json, "--json", force=force, reads=reads)
    if vectors_out is not None:
        apart: dict[str, Any] = {"force": force, "reads": reads, "beside": [json]}
        check_file(vectors_out, "--vectors-out", (".npy",), **apart)
        check_file(labels_path(vectors_out), "--vectors-out", **apart)
    check_folder(save, "--save", TREE_FILES, force=force, reads=reads, beside=[json])
    unsaved = save

    def keep(trained: TrainedModel[Any]) -> None:
        """Save the model before it is scored; a failure is tried again, and named, at the end."""
        nonlocal unsaved
        if trained.history_.interrupted:
            warn(
                "interrupted: these figures are of the best weights so far, which takes a moment "
                "(Ctrl-C again ends at once); the same command goes on"
            )
        if save is not None:
            with suppress(HstreeError, OSError):
                trained.save(save)
                unsaved = None

    with showing_progress(quiet):
        trees, choice = trees_of([one]), selection(min_count)
        words = read_vocabulary(vocabulary, **choice)
        if trees:  # whose labels are the vocabulary, also where fewer words are read
            splits = read_splits(corpus, valid, test, lower=lower, trees=[*trees.values()])
            splits = limited(splits, words, choice or {"vocabulary": vocabulary})
            warn_of_trees(dict.fromkeys([""], *trees.values()), splits)
        else:
            splits = read_splits(corpus, valid, test, lower=lower, vocabulary=words, **choice)
        texts = [part.record for part in splits.as_dict().values()]
        key = hash_of({"row": str(one), "texts": texts, "stop": str(stop), **options})
        work = cache_folder() / "evaluations" / key[:16]
        evaluation = train(one, splits, stop=stop, folder=work, trained=keep, **options)
    fitted = evaluation.model
    with written(
        (unsaved, fitted.save),
        (json, lambda path: save_figures(evaluation, path)),
        (vectors_out, lambda path: _save_vectors(fitted, splits.train, path)),
    ):
        print_evaluation(evaluation)
    if evaluation.interrupted:
        raise typer.Exit(INTERRUPTED)
    _remove(work)


def save_figures(evaluation: Evaluation, path: Path) -> None:
    """Write the figures of an evaluation: a comparison of one row."""
    from hstree.experiments.results import FORMAT, VERSION, write_struct

    write_struct(path, evaluation.comparison, format=FORMAT, version=VERSION)


def _save_vectors(model: TrainedModel[Any], train: Any, path: Path) -> None:
    """Write the mean predicted vectors of a model."""
    with showing_progress():
        model.mean_predicted_vectors(model.reencode(train)).save(path)


def _remove(folder: Path) -> None:
    """Remove what an evaluation that has ended kept to go on from."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
