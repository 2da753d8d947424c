"""Commands that train: evaluate, bootstrap and embed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli import options as opt
from hstree_cli.options import argument, option
from hstree_cli.outputs import Output, check_outputs, written
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import INTERRUPTED, going_on_in, say, showing_training, warn

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.experiments.compare import Evaluation
    from hstree.experiments.results import Comparison
    from hstree.experiments.row import Row

ROUNDS_HELP = (
    'Rows of the rounds after the first, built from vectors: gmm, "classes cluster_by=vectors" '
    "(default: gmm); the last is that of all later rounds."
)
VECTOR_ENDINGS = (".vec", ".txt", ".bin", ".npy", ".kv")
#: Share of frequent words that are kept in sub-sampling, as in word2vec.
SAMPLE = 1e-3


def evaluate(
    ctx: typer.Context,
    row: Annotated[str, argument("ROW", f"{opt.ROW_HELP}.", autocompletion=opt.row_names)],
    corpus: opt.CorpusName,
    *,
    save: Annotated[Path | None, option("--save", "Save the trained model.", "MODEL_DIR")] = None,
    vectors_out: Annotated[
        Path | None, option("--vectors-out", "Write each word's mean predicted vector.", "FILE.npy")
    ] = None,
    json: opt.JsonFile = None, force: opt.Force = False,
    valid: opt.Valid = None, test: opt.Test = None, min_count: opt.MinCount = 1,
    lower: opt.Lower = False, text: opt.AsText = False, vocabulary: opt.VocabularyFile = None,
    epochs: opt.Epochs = None, seconds: opt.Seconds = None, seed: opt.Seed = 0,
    model: opt.Model = "lbl", dim: opt.Dim = None, context: opt.Width = None,
    batch_size: opt.BatchSize = None, learning_rate: opt.Rate = None, dropout: opt.Dropout = None,
) -> None:  # fmt: skip
    """Train a model with one tree or output layer and print its perplexity.

    By default, the last 10% of CORPUS's lines are the test split and the 10% before
    them the validation split; with --valid or --test alone, the other is the last
    10%. A tree's labels are the vocabulary; other rows are over the words of the
    training split. It trains for at most 20 epochs; Ctrl-C keeps the best weights so
    far, and the same command goes on. `hstree score` scores a saved model.
    """
    from hstree._files import cache_folder, hash_of
    from hstree.errors import HstreeError
    from hstree.experiments.compare import evaluate as train
    from hstree.experiments.row import Row
    from hstree.models.files import TREE_FILES
    from hstree_cli.inputs import (
        is_model,
        is_tree,
        limited,
        read_splits,
        refuse_swapped,
        trees_of,
    )
    from hstree_cli.results import print_evaluation

    refuse_swapped(ctx, Path(row), corpus, lambda path: is_tree(path) or is_model(path))
    if is_model(Path(row)):
        how = f"`hstree score {row} {corpus}` scores it"
        raise opt.UsageError(f"{row} is a trained model; {how}", ctx)
    options = opt.model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout,
    )  # fmt: skip
    stop = opt.stopping_rule(epochs, seconds)
    one = Row.parse(row)
    check_outputs(
        Output("--json", json),
        Output("--vectors-out", vectors_out, (".npy",)),
        Output("--save", save, holds=tuple(TREE_FILES)),
        reads=[corpus, valid, test, vocabulary, *one.files],
        force=force,
    )
    unsaved = save

    def keep(trained: Any) -> None:
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

    with showing_training():
        trees, choice = trees_of([one]), opt.selection(min_count)
        ways: dict[str, Any] = {"lower": lower, "text": text}
        if trees:  # whose labels are the vocabulary, also where fewer words are read
            splits = read_splits(corpus, valid, test, **ways, trees=trees)
            splits = limited(splits, vocabulary, **choice)
        else:
            chosen = {"vocabulary": vocabulary, **choice}
            splits = read_splits(corpus, valid, test, **ways, **chosen)
        texts = [part.record for part in splits]
        key = hash_of({"row": str(one), "texts": texts, "stop": str(stop), **options})
        work = cache_folder() / "evaluations" / key[:16]
        evaluation = train(one, splits, stop=stop, folder=work, trained=keep, **options)
    with written(
        (unsaved, evaluation.model.save),
        (json, lambda path: save_figures(evaluation, path)),
        (vectors_out, lambda path: _save_mean_vectors(evaluation, splits.train, path)),
    ):
        print_evaluation(evaluation)
    if evaluation.interrupted:
        raise typer.Exit(INTERRUPTED)
    shutil.rmtree(work, ignore_errors=True)  # from which a stopped training would go on


def save_figures(evaluation: Evaluation, path: Path) -> None:
    """Write the figures of an evaluation: a comparison of one row."""
    from hstree.experiments.results import FORMAT, VERSION, write_struct

    write_struct(path, evaluation.comparison, format=FORMAT, version=VERSION)


def _save_mean_vectors(evaluation: Evaluation, train: Corpus, path: Path) -> None:
    model = evaluation.model
    with showing_training():
        model.mean_predicted_vectors(model.reencode(train)).save(path)


def bootstrap(
    corpus: opt.CorpusName,
    rows: Annotated[
        list[str] | None, argument("ROW", ROUNDS_HELP, autocompletion=opt.builder_names)
    ] = None,
    *,
    output: Annotated[Path, option("--output -o", "Folder for every round.", "DIR")],
    rounds: Annotated[
        int | None, option("--rounds", "Trees after the first (one for each ROW).", "N", min=1)
    ] = None,
    first: Annotated[
        str, option("--first", "Row without vectors.", "ROW", autocompletion=opt.builder_names)
    ] = "random",
    warm_start: Annotated[
        bool, option("--warm-start", "Begin later rounds with the best model's word vectors.")
    ] = False,
    force: opt.Replace = False, valid: opt.Valid = None, test: opt.Test = None,
    min_count: opt.MinCount = 1, lower: opt.Lower = False, text: opt.AsText = False,
    epochs: opt.Epochs = None, seconds: opt.Seconds = None, seed: opt.Seed = 0,
    model: opt.Model = "lbl", dim: opt.Dim = None, context: opt.Width = None,
    batch_size: opt.BatchSize = None, learning_rate: opt.Rate = None, dropout: opt.Dropout = None,
) -> None:  # fmt: skip
    """Grow trees from the word vectors of a model that was trained on a tree before.

    A random tree is trained first; its words' mean predicted vectors make the next
    tree, which is trained in turn. The vectors are those of the best model so far.
    The rounds are rows of an ordinary comparison in DIR, whose page `hstree report`
    writes. Finished rounds are not done again.
    """
    from hstree.experiments.bootstrap import bootstrap as rounds_of
    from hstree.experiments.row import Row
    from hstree.report import PAGE, write
    from hstree_cli.inputs import read_splits
    from hstree_cli.results import print_comparison

    options = opt.model_options(
        model, random_state=seed, dim=dim, context=context, batch_size=batch_size,
        learning_rate=learning_rate, dropout=dropout,
    )  # fmt: skip
    named = [Row.parse(text) for text in rows or ["gmm"]]
    reads = [corpus, valid, test, *(file for one in named for file in one.files)]
    check_outputs(Output("-o", output, holds=()), reads=reads)
    so_far: list[Comparison] = []
    with going_on_in(output):
        how = {"lower": lower, "text": text, **opt.selection(min_count)}
        splits = read_splits(corpus, valid, test, **how)
        for _ in rounds_of(
            splits, output, named, rounds=rounds, first=first, warm_start=warm_start,
            stop=opt.stopping_rule(epochs, seconds), force=force, updated=so_far.append, **options,
        ):  # fmt: skip
            write(output)
    print_comparison(so_far[-1], output / PAGE)


def embed(
    corpus: opt.CorpusName,
    row: Annotated[
        str, argument("ROW", f"{opt.ROW_HELP} (default: huffman).", autocompletion=opt.row_names)
    ] = "huffman",
    *,
    output: Annotated[
        Path, option("--output -o", "A .vec, .txt, .bin, .npy, or gensim's .kv.", "FILE")
    ],
    force: opt.Force = False, seed: opt.Seed = 0,
    min_count: opt.MinCount = 1, max_size: opt.MaxSize = None, lower: opt.Lower = False,
    as_text: opt.AsText = False, vocabulary: opt.VocabularyFile = None,
    model: opt.Model = "cbow", dim: opt.Dim = None, batch_size: opt.BatchSize = None,
    learning_rate: opt.Rate = None, epochs: opt.Epochs = None, seconds: opt.Seconds = None,
) -> None:  # fmt: skip
    """Train word vectors on every line of a corpus, as in word2vec.

    The words are in the order of their counts, most frequent first, with <eos> and,
    if there is one, <unk>. gensim reads .vec, .txt and .bin with load_word2vec_format
    and .kv with KeyedVectors.load. Only .npy records the text of the training, so
    that a tree built from the vectors warns of test lines among it.
    """
    from hstree._files import cache_folder
    from hstree._text import plural
    from hstree.data.vector_files import check_words
    from hstree.experiments.row import Row
    from hstree.models import new_model
    from hstree_cli.results import epochs_table

    options = {"sample": SAMPLE} | opt.model_options(
        model, random_state=seed, dim=dim, epochs=epochs, seconds=seconds,
        batch_size=batch_size, learning_rate=learning_rate,
    )  # fmt: skip
    one = Row.parse(row)
    _check_embedding(one, options)
    reads = [corpus, vocabulary, *one.files]
    check_outputs(Output("-o", output, VECTOR_ENDINGS), reads=reads, force=force)
    _require_gensim(output)
    with showing_training():
        how = {"lower": lower, "text": as_text}
        text = _text_for(one, corpus, vocabulary, opt.selection(min_count, max_size), how)
        spec = one.spec(text.counted_vocabulary(), one.build(text, seed, None))
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), spec.labels)
        trained = new_model(spec, **options).fit(text, checkpoints=cache_folder() / "checkpoints")
        if trained.history_.interrupted:
            warn("interrupted: these vectors are of the weights so far, which are written now")
        vectors = trained.vectors(text)
        _write(vectors, output)
        trained.remove_checkpoints()
    history = trained.history_
    if history.epochs:
        say(epochs_table(history.epochs))
    rows = [
        ("perplexity", f"of each {trained.predicts}, while training"),
        ("model", f"{trained.name} over {one}, {plural(len(spec.labels), 'label')}"),
        ("vectors", f"{len(vectors):,} of {vectors.dimension} numbers"),
        ("written", str(output)),
    ]
    say(facts([*corpus_facts(text), *rows]))
    if history.interrupted:
        raise typer.Exit(INTERRUPTED)


def _check_embedding(row: Row, options: dict[str, Any]) -> None:
    """Refuse models of a language, and rows that a text alone does not make."""
    from hstree.errors import OptionError
    from hstree.models import kind_of

    if kind_of(options).model.is_language_model:
        raise OptionError(
            f"--model {options['model']} is a language model; `hstree evaluate ROW CORPUS "
            "--vectors-out FILE` writes its vectors"
        )
    if row.source is not None or not row.is_trained or row.models > 1:
        how = f"`hstree build --method '{row}' VECTORS -o tree.json`, then name tree.json"
        raise OptionError(f"{row} is not one layer that a text alone makes; {how}")


def _text_for(
    row: Row, source: str, vocabulary: Path | None, choice: dict[str, Any], how: dict[str, Any]
) -> Corpus:
    """Return the corpus as ids of a tree's labels, or of the words that the options choose."""
    from hstree.data.corpus import Corpus
    from hstree_cli.inputs import read_as, read_vocabulary, refuse_options, trees_of

    for tree in trees_of([row]).values():
        refuse_options("the words are the tree's labels", **choice)
        return read_as(tree.labels, source, vocabulary, **how)
    words = read_vocabulary(vocabulary, **choice)
    return Corpus.read(source, vocabulary=words, unk=None, **how, **choice)


def _write(vectors: WordVectors, output: Path) -> None:
    if output.suffix != ".kv":
        vectors.save(output)
        return
    from hstree.interop.gensim import save_keyed_vectors

    save_keyed_vectors(vectors, output)


def _require_gensim(output: Path) -> None:
    """Refuse a file that gensim must write if gensim is missing, before the training."""
    if output.suffix == ".kv":
        from hstree._plugins import require
        from hstree.interop.gensim import OLDEST

        require("gensim.models", "gensim", at_least=OLDEST)
