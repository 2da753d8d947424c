"""`hstree embed`: word vectors, trained as in word2vec on any tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.completions import layers
from hstree_cli.options import (
    CorpusName,
    Force,
    Quiet,
    Reading,
    Resuming,
    UsageError,
    examples,
    option,
)
from hstree_cli.outputs import check_file
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import INTERRUPTED, say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.layers.registry import LayerSpec

ENDINGS = (".vec", ".txt", ".bin", ".npy", ".kv")


@examples(
    "hstree embed corpus.txt --tree gmm.json -o vectors.vec",
    "hstree embed corpus.txt --model skipgram --min-count 5 -o vectors.bin",
    'hstree embed corpus.txt --layer "negative --samples 5" -o vectors.vec',
)
def embed(
    corpus: CorpusName,
    *,
    output: Annotated[
        Path,
        option(
            "--output -o",
            "word2vec text (.vec, .txt) or binary (.bin), .npy, or gensim's KeyedVectors (.kv).",
            "FILE",
        ),
    ],
    tree: Annotated[
        Path | None, option("--tree", "Tree to train on (default: Huffman tree of CORPUS).", "TREE")
    ] = None,
    layer: Annotated[
        str | None,
        option(
            "--layer",
            'Output layer instead of a tree, with its options, as in "negative --samples 5".',
            "LAYER",
            autocompletion=layers,
        ),
    ] = None,
    training: Annotated[
        dict[str, Any], ModelOptions("cbow", language_models=False, defaults={"sample": 1e-3})
    ],
    reading: Reading,
    resuming: Resuming,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Train word vectors on every line of a corpus, as in word2vec.

    The words are in the order of their counts, most frequent first, with <eos> and,
    if there is one, <unk>. gensim reads .vec, .txt and .bin with load_word2vec_format
    and .kv with KeyedVectors.load. Only .npy records the text of the training, so
    that a tree built from the vectors warns of test lines among it.
    """
    from hstree._text import plural
    from hstree.data.vector_files import check_words
    from hstree.data.word_files import labels_path
    from hstree.models import new_model
    from hstree_cli.result_tables import epochs_table

    sources = [corpus, tree, reading.vocabulary]
    if tree is not None and layer is not None:
        raise UsageError("--tree and --layer are two output layers; give one of them")
    check_file(output, "-o", ENDINGS, force=force, reads=sources)
    if output.suffix == ".npy":
        check_file(labels_path(output), "-o", force=force, reads=sources)
    _require_gensim(output)
    with showing_progress(quiet):
        spec, text = _output_and_text(tree, layer, corpus, reading)
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), spec.labels)
        with resuming.applied():
            trained = new_model(spec, **training).fit(text, checkpoints=resuming.folder())
        if trained.history_.interrupted:
            warn("interrupted: these vectors are of the weights so far, which are written now")
        vectors = trained.vectors(text)
        _write(vectors, output)
        trained.remove_checkpoints()
    history = trained.history_
    if history.epochs:
        say(epochs_table(history.epochs))
    over = spec.kind.name
    if spec.tree is not None:
        over = f"{spec.tree.meta.get('method') or tree}, {plural(spec.tree.n_nodes, 'node')}"
    rows = [
        ("perplexity", f"of each {trained.predicts}, while training"),
        ("model", f"{trained.name} over {over}"),
        ("vectors", f"{len(vectors):,} of {vectors.dimension} numbers"),
        ("written", str(output)),
    ]
    say(facts([*corpus_facts(text), *rows]))
    if history.interrupted:
        raise typer.Exit(INTERRUPTED)


def _require_gensim(output: Path) -> None:
    """Refuse a file that gensim must write if gensim is missing, before the training."""
    if output.suffix == ".kv":
        from hstree._plugins import require
        from hstree.interop.gensim import OLDEST

        require("gensim.models", "gensim", at_least=OLDEST)


def _output_and_text(
    tree: Path | None, layer: str | None, source: str, reading: Reading
) -> tuple[LayerSpec, Corpus]:
    """Return the output layer, by default over Huffman's tree, and the corpus as ids of labels."""
    from hstree.builders import build
    from hstree.layers.registry import layer_spec
    from hstree.tree import Tree, load
    from hstree_cli.inputs import LabelReader, read_corpus
    from hstree_cli.method_strings import parse_layer

    if tree is not None:
        loaded = load(tree)
        return layer_spec(loaded), LabelReader(loaded, reading).text(source)
    if layer is None:
        text = read_corpus(source, reading)
        return layer_spec(build("huffman", text)), text
    kind, options, _ = parse_layer(
        layer,
        "`hstree build --method {} CORPUS -o tree.json`, then `hstree embed CORPUS --tree "
        "tree.json`",
    )
    text = read_corpus(source, reading)
    over = build("huffman", text) if kind.takes is Tree else text.counted_vocabulary()
    return layer_spec(over, kind.name, **options), text


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
