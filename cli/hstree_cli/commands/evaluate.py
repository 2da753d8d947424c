"""`hstree evaluate`: the perplexity of a model trained with a tree or another output layer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.arguments import is_model, is_tree, refuse_swapped
from hstree_cli.completions import layers
from hstree_cli.options import (
    CORPUS_KINDS,
    Force,
    HeldOut,
    JsonFile,
    Quiet,
    Reading,
    Resuming,
    UsageError,
    argument,
    examples,
    flag,
    option,
)
from hstree_cli.outputs import check_file, check_folder, files_named, written
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import origin
from hstree_cli.terminal import INTERRUPTED, showing_progress, warn

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.experiments.evaluation import Splits
    from hstree.experiments.results import RunResult
    from hstree.layers.registry import LayerSpec
    from hstree.models import Model

    Evaluated = tuple[Model[Any], Corpus, RunResult]

#: Parameters that go with --no-train.
_FOR_SCORING = {
    *("tree", "corpus", "no_train", "vectors_out", "json", "force", "quiet"),
    *(field.name for field in fields(Reading)),
}


@examples(
    "hstree evaluate huffman.json corpus.txt --json result.json --save model",
    'hstree evaluate --layer "sampled --samples 500" corpus.txt --save model',
    "hstree evaluate model other.txt --no-train",
)
def evaluate(
    ctx: typer.Context,
    tree: Annotated[
        Path | None,
        argument("TREE", "A tree; with --no-train, a model's folder; none with most layers."),
    ] = None,
    corpus: Annotated[str | None, argument("CORPUS", f"A corpus: {CORPUS_KINDS}.")] = None,
    *,
    layer: Annotated[
        str | None,
        option(
            "--layer",
            'Output layer with its options, as in "sampled --samples 500" (default: tree).',
            "LAYER",
            autocompletion=layers,
        ),
    ] = None,
    held_out: HeldOut,
    no_train: Annotated[
        bool, option("--no-train", "Score a saved model on every line of CORPUS.")
    ] = False,
    training: Annotated[dict[str, Any], ModelOptions()],
    reading: Reading,
    resuming: Resuming,
    save: Annotated[Path | None, option("--save", "Save the trained model.", "MODEL_DIR")] = None,
    vectors_out: Annotated[
        Path | None,
        option(
            "--vectors-out",
            "Write each word's mean predicted vector, from which trees can be built.",
            "FILE.npy",
        ),
    ] = None,
    json: JsonFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train a model with a tree or another output layer and print its perplexity.

    By default, the last 10% of CORPUS's lines are the test split and the 10% before
    them the validation split; with --valid or --test alone, the other is the last
    10%. The tree's labels are the vocabulary; layers without a tree are over the
    words of the training split. Ctrl-C keeps the best weights so far.
    cbow and skipgram predict a word from words on both sides: do not compare their
    perplexity with a language model's.
    """
    from hstree._files import write_json
    from hstree.data.word_files import labels_path
    from hstree.errors import HstreeError
    from hstree.experiments.evaluation import evaluate as train
    from hstree.layers.registry import TREE_LAYER
    from hstree.models.files import TREE_FILES
    from hstree.tree import Tree
    from hstree.tree.files import ENDINGS
    from hstree_cli.method_strings import parse_layer
    from hstree_cli.result_tables import print_evaluation

    kind, layer_options, _ = parse_layer(
        layer or TREE_LAYER,
        "`hstree build --method {} CORPUS -o tree.json`, then `hstree evaluate tree.json CORPUS`",
    )
    has_tree = no_train or kind.takes is Tree
    if tree is not None and has_tree:
        refuse_swapped(ctx, tree, corpus, lambda path: is_tree(path) or is_model(path))
    if tree is None or (has_tree and corpus is None):
        if tree is not None and not (no_train or tree.is_dir() or tree.name.endswith(ENDINGS)):
            raise UsageError(
                f"{tree} is read as the tree: give a tree before the corpus, or --layer LAYER "
                "(`hstree layers` lists them)",
                ctx,
            )
        missing = "TREE" if has_tree and tree is None else "CORPUS"
        raise UsageError(f"Missing argument '{missing}'", ctx)
    if not has_tree and corpus is not None:
        raise UsageError(f"--layer {kind.name} is over the words of CORPUS; give no tree", ctx)
    text_name = corpus or str(tree)
    _check_kind(ctx, tree, no_train)
    sources = [
        *(tree, corpus, held_out.valid, held_out.test, reading.vocabulary),
        *files_named(layer_options),
    ]
    check_file(json, "--json", force=force, reads=sources)
    if vectors_out is not None:
        apart: dict[str, Any] = {"force": force, "reads": sources, "beside": [json]}
        check_file(vectors_out, "--vectors-out", (".npy",), **apart)
        check_file(labels_path(vectors_out), "--vectors-out", **apart)
    check_folder(save, "--save", TREE_FILES, force=force, reads=sources, beside=[json])

    unsaved = save

    def keep(trained: Model[Any]) -> None:
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
        if no_train:
            model, text, results = _score(tree, text_name, reading)
        else:
            output, splits = (
                _over_tree(tree, kind.name, layer_options, text_name, held_out, reading)
                if has_tree
                else _over_words(kind.name, layer_options, text_name, held_out, reading)
            )
            with resuming.applied():
                evaluation = train(
                    output, splits, trained=keep, checkpoints=resuming.folder(), **training
                )
            model, text, results = evaluation.model, evaluation.splits.train, evaluation.result
    with written(
        (unsaved, model.save),
        (json, lambda path: write_json(path, results.as_dict())),
        (vectors_out, lambda path: _save_vectors(model, text, path, quiet)),
    ):
        print_evaluation(results, origin(text))
    if not results.interrupted:
        model.remove_checkpoints()
    else:
        raise typer.Exit(INTERRUPTED)


def _check_kind(ctx: typer.Context, tree: Path, no_train: bool) -> None:
    """Refuse a model's folder in place of a tree, and training options with --no-train."""
    from hstree.models.ensemble import is_ensemble

    if is_ensemble(tree):
        raise UsageError(f"{tree} is an ensemble: score it with `hstree score {tree} TEXT`", ctx)
    if tree.is_dir() and not no_train:
        raise UsageError(
            f"{tree} is a folder: add --no-train to score the model in it{_anew(tree)}", ctx
        )
    if tree.is_file() and no_train:
        raise UsageError(
            f"--no-train wants a model's folder, as --save makes one, and {tree} is a file; "
            "--epochs 0 scores the untrained model on a tree",
            ctx,
        )
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    typed = [name for name, source in sources.items() if source and source.name != "DEFAULT"]
    if no_train and (others := [flag(name) for name in typed if name not in _FOR_SCORING]):
        raise UsageError(f"{', '.join(others)}: not with --no-train, which trains nothing", ctx)


def _anew(folder: Path) -> str:
    """Return how to train anew on the output layer of a model's folder, if it can be told."""
    from hstree._files import read_json
    from hstree.errors import HstreeError
    from hstree.models.files import CONFIG, TREE_FILES

    if (source := folder / TREE_FILES[1]).is_file():
        return f", or train anew on {source}"
    with suppress(HstreeError, LookupError, TypeError):
        name = read_json(folder / CONFIG, "")["layer"]["name"]
        return f", or train anew with --layer {name}"
    return ""


def _over_tree(
    path: Path,
    layer: str,
    options: dict[str, Any],
    corpus: str,
    held_out: HeldOut,
    reading: Reading,
) -> tuple[LayerSpec, Splits]:
    """Read a tree and the splits as ids of its labels; return a layer over it, and these."""
    from hstree.layers import layer_spec
    from hstree.tree import load
    from hstree_cli.inputs import LabelReader, warn_of_seen_lines

    tree = load(path)
    splits = LabelReader(tree, reading).splits(corpus, held_out)
    warn_of_seen_lines(splits, {"": tree})
    return layer_spec(tree, layer, **options), splits


def _over_words(
    layer: str, options: dict[str, Any], corpus: str, held_out: HeldOut, reading: Reading
) -> tuple[LayerSpec, Splits]:
    """Read the splits; return a layer over the words of the training split, and these."""
    from hstree.layers import layer_spec
    from hstree_cli.inputs import read_splits, read_vocabulary, warn_of_seen_lines

    splits = read_splits(corpus, held_out, reading, read_vocabulary(reading))
    warn_of_seen_lines(splits, {})
    return layer_spec(splits.train.counted_vocabulary(), layer, **options), splits


def _score(path: Path, source: str, reading: Reading) -> Evaluated:
    """Score a saved model; return it, the text and the results."""
    from hstree.experiments.evaluation import score_saved
    from hstree.models import load
    from hstree_cli.inputs import LabelReader

    model = load(path)
    text = LabelReader(model.spec, reading).text(source)
    results = score_saved(model, text)
    if results.seen is not None:
        warn(results.seen)
    return model, text, results


def _save_vectors(model: Model[Any], text: Corpus, path: Path, quiet: bool) -> None:
    with showing_progress(quiet):
        model.mean_predicted_vectors(text).save(path)
