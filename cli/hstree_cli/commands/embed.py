"""`hstree embed`: word vectors, trained as in word2vec over any tree."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hstree_cli.examples import examples
from hstree_cli.exits import INTERRUPTED
from hstree_cli.options import (
    CORPUS_KINDS,
    BatchSize,
    Dim,
    Epochs,
    Force,
    Lower,
    MaxSize,
    MinCount,
    Quiet,
    Sample,
    Seed,
    VocabularyFile,
    Window,
)

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.tree import Tree

ENDINGS = (".vec", ".txt", ".bin", ".npy", ".kv")


@examples(
    "hstree embed corpus.txt --tree gmm.json -o vectors.vec",
    "hstree embed corpus.txt --model skipgram --min-count 5 -o vectors.bin",
)
def embed(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="word2vec text (.vec, .txt) or binary (.bin), .npy, or gensim's "
            "KeyedVectors (.kv).",
            show_default=False,
            readable=False,
        ),
    ],
    tree: Annotated[
        Path | None,
        typer.Option(
            "--tree", metavar="TREE", help="Huffman's over the corpus without it.", readable=False
        ),
    ] = None,
    model: Annotated[
        Literal["cbow", "skipgram"],
        typer.Option(
            "--model",
            metavar="MODEL",
            help="cbow, from the mean of a window; skipgram, from each of its words.",
            rich_help_panel="Training",
        ),
    ] = "cbow",
    dim: Dim = 100,
    window: Window = 5,
    sample: Sample = 1e-3,
    epochs: Epochs = 5,
    batch_size: BatchSize = 1024,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            "--learning-rate",
            metavar="RATE",
            help="At the start; 0.2 for cbow and 0.05 for skipgram without it.",
            rich_help_panel="Training",
        ),
    ] = None,
    seed: Seed = 0,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train word vectors on every line of a corpus, as in word2vec.

    The words come by their counts, the most frequent first, <eos> (and <unk>)
    among them. gensim reads .vec, .txt and .bin by load_word2vec_format, .kv by
    KeyedVectors.load. Only .npy records the text that they were trained on, so
    that trees built from them warn of a test part among it.
    """
    from hstree.data.vector_files.npy import labels_path
    from hstree.data.vector_files.writing import check_words
    from hstree.models.word2vec import Word2Vec
    from hstree_cli.console import facts, say
    from hstree_cli.messages import warn
    from hstree_cli.outputs import check_file
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import corpus_facts
    from hstree_cli.scores import epochs_table

    read = [corpus, tree, vocabulary]
    check_file(output, "-o", ENDINGS, force=force, apart_from=read)
    if output.suffix == ".npy":
        check_file(labels_path(output), "-o", force=force, apart_from=read)
    _require_gensim(output)
    reading = {
        "lower": lower,
        "vocabulary": vocabulary,
        "min_count": min_count,
        "max_size": max_size,
    }
    with showing_progress(quiet):
        grown, text = _tree_and_text(tree, corpus, reading)
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), grown.labels)
        trained = Word2Vec(
            grown,
            dim,
            window,
            model=model,
            sample=sample,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            random_state=seed,
        ).fit(text)
        vectors = trained.vectors(text)
        _write(vectors, output)
    history = trained.history_
    if history.epochs:
        say(epochs_table([asdict(epoch) for epoch in history.epochs]))
    said = f"of each {trained.predicts}, while training"
    made = f"{model} over {grown.meta.get('method') or tree}, {grown.n_nodes:,} nodes"
    shape = f"{len(vectors):,} of {vectors.dimension} numbers"
    lines = [("perplexity", said), ("model", made), ("vectors", shape), ("written", str(output))]
    say(facts([*corpus_facts(text), *lines]))
    if history.interrupted:
        warn("interrupted: these vectors are of the weights so far")
        raise typer.Exit(INTERRUPTED)


def _require_gensim(output: Path) -> None:
    """Refuse a file that gensim alone can write where it is missing, before anything is trained."""
    if output.suffix == ".kv":
        from hstree._optional import require
        from hstree.interop.gensim import OLDEST

        require("gensim.models", "gensim", at_least=OLDEST)


def _tree_and_text(path: Path | None, source: str, reading: dict[str, Any]) -> tuple[Tree, Corpus]:
    """Return the tree, or Huffman's over the corpus, and the corpus through its labels."""
    from hstree.builders import build
    from hstree.data.corpus import Corpus
    from hstree.tree import load
    from hstree_cli.reading import Reader, vocabulary_of

    if path is not None:
        tree = load(path)
        return tree, Reader(tree, **reading).text(source)
    words = vocabulary_of(reading["vocabulary"])
    text = Corpus.read(source, **{**reading, "vocabulary": words})
    return build("huffman", text), text


def _write(vectors: WordVectors, output: Path) -> None:
    if output.suffix != ".kv":
        vectors.save(output)
        return
    from hstree._files import replacing
    from hstree.interop.gensim import to_keyed_vectors

    keyed = to_keyed_vectors(vectors)
    keyed.lifecycle_events = None  # else the time goes into the file
    with replacing(output) as file:  # given a name, gensim writes large arrays to other files
        keyed.save(file)
