"""`hstree embed`: word vectors, trained as in word2vec on any tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hstree_cli import completions
from hstree_cli.options import (
    ROW_HELP,
    BatchSize,
    CorpusName,
    Dim,
    Epochs,
    Force,
    LearningRate,
    Lower,
    MaxSize,
    MinCount,
    Model,
    Quiet,
    Seconds,
    Seed,
    VocabularyFile,
    argument,
    model_options,
    option,
    selection,
)
from hstree_cli.outputs import check_file, files_of_rows
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import INTERRUPTED, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.experiments.row import Row

ENDINGS = (".vec", ".txt", ".bin", ".npy", ".kv")
#: Share of frequent words that are kept in sub-sampling, as in word2vec.
SAMPLE = 1e-3


def embed(
    corpus: CorpusName,
    row: Annotated[
        str, argument("ROW", f"{ROW_HELP} (default: huffman).", autocompletion=completions.rows)
    ] = "huffman",
    *,
    output: Annotated[
        Path,
        option(
            "--output -o",
            "word2vec text (.vec, .txt) or binary (.bin), .npy, or gensim's KeyedVectors (.kv).",
            "FILE",
        ),
    ],
    force: Force = False,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    model: Model = "cbow",
    dim: Dim = None,
    epochs: Epochs = None,
    seconds: Seconds = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train word vectors on every line of a corpus, as in word2vec.

    The words are in the order of their counts, most frequent first, with <eos> and,
    if there is one, <unk>. gensim reads .vec, .txt and .bin with load_word2vec_format
    and .kv with KeyedVectors.load. Only .npy records the text of the training, so
    that a tree built from the vectors warns of test lines among it.
    """
    from hstree._files import cache_folder
    from hstree._text import plural
    from hstree.data.vector_files import check_words
    from hstree.data.word_files import labels_path
    from hstree.errors import OptionError
    from hstree.experiments.row import Row
    from hstree.models import kind_of, new_model
    from hstree_cli.results import epochs_table

    options = {"sample": SAMPLE} | model_options(
        model, random_state=seed, dim=dim, epochs=epochs, seconds=seconds,
        batch_size=batch_size, learning_rate=learning_rate,
    )  # fmt: skip
    if kind_of(options).model.is_language_model:
        raise OptionError(
            f"--model {model} is a language model; `hstree evaluate ROW CORPUS --vectors-out FILE` "
            "writes its vectors"
        )
    one = Row.parse(row)
    sources = [corpus, vocabulary, *files_of_rows([one])]
    check_file(output, "-o", ENDINGS, force=force, reads=sources)
    if output.suffix == ".npy":
        check_file(labels_path(output), "-o", force=force, reads=sources)
    _require_gensim(output)
    with showing_progress(quiet):
        text = _text_for(one, corpus, vocabulary, lower, min_count, max_size)
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


def _text_for(
    row: Row,
    source: str,
    vocabulary: Path | None,
    lower: bool,
    min_count: int,
    max_size: int | None,
) -> Corpus:
    """Return the corpus as ids of a tree's labels, or of the words that the options choose."""
    from hstree.data.corpus import Corpus
    from hstree.errors import OptionError
    from hstree_cli.inputs import read_as, read_vocabulary, refuse_options

    if row.source is not None or not row.is_trained or row.models > 1:
        how = f"`hstree build --method '{row}' VECTORS -o tree.json`, then name tree.json"
        raise OptionError(f"{row} is not one layer that a text alone makes; {how}")
    choice = selection(min_count, max_size)
    if (tree := getattr(row, "tree", None)) is not None:
        refuse_options("the words are the tree's labels", **choice)
        return read_as(tree.labels, source, vocabulary, lower=lower)
    words = read_vocabulary(vocabulary, **choice)
    return Corpus.read(source, vocabulary=words, lower=lower, **choice)


def _write(vectors: WordVectors, output: Path) -> None:
    if output.suffix != ".kv":
        vectors.save(output)
        return
    from hstree._files import replacing
    from hstree.interop.gensim import to_keyed_vectors

    keyed = to_keyed_vectors(vectors)
    keyed.lifecycle_events = None  # which would write the time into the file
    with replacing(output) as file:  # by name, gensim writes large arrays to other files
        keyed.save(file)


def _require_gensim(output: Path) -> None:
    """Refuse a file that gensim must write if gensim is missing, before the training."""
    if output.suffix == ".kv":
        from hstree._plugins import require
        from hstree.interop.gensim import OLDEST

        require("gensim.models", "gensim", at_least=OLDEST)
