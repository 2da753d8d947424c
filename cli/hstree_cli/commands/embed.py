"""`hstree embed`: word vectors, trained as in word2vec on any tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.options import CorpusName, Force, Quiet, Reading, examples, option
from hstree_cli.outputs import check_file
from hstree_cli.registered_options import ModelOptions
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import INTERRUPTED, say, showing_progress, warn

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
    training: Annotated[
        dict[str, Any], ModelOptions("cbow", language_models=False, defaults={"sample": 1e-3})
    ],
    reading: Reading,
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
    check_file(output, "-o", ENDINGS, force=force, apart_from=sources)
    if output.suffix == ".npy":
        check_file(labels_path(output), "-o", force=force, apart_from=sources)
    _require_gensim(output)
    with showing_progress(quiet):
        loaded, text = _tree_and_text(tree, corpus, reading)
        if output.suffix in (".vec", ".txt", ".bin"):
            check_words(str(output), loaded.labels)
        trained = new_model(loaded, **training).fit(text)
        vectors = trained.vectors(text)
        _write(vectors, output)
    history = trained.history_
    if history.epochs:
        say(epochs_table(history.epochs))
    on_tree = f"{loaded.meta.get('method') or tree}, {plural(loaded.n_nodes, 'node')}"
    rows = [
        ("perplexity", f"of each {trained.predicts}, while training"),
        ("model", f"{trained.name} over {on_tree}"),
        ("vectors", f"{len(vectors):,} of {vectors.dimension} numbers"),
        ("written", str(output)),
    ]
    say(facts([*corpus_facts(text), *rows]))
    if history.interrupted:
        warn("interrupted: these vectors are of the weights so far")
        raise typer.Exit(INTERRUPTED)


def _require_gensim(output: Path) -> None:
    """Refuse a file that gensim must write if gensim is missing, before the training."""
    if output.suffix == ".kv":
        from hstree._optional import require
        from hstree.interop.gensim import OLDEST

        require("gensim.models", "gensim", at_least=OLDEST)


def _tree_and_text(path: Path | None, source: str, reading: Reading) -> tuple[Tree, Corpus]:
    """Return the tree, by default Huffman's, and the corpus as ids of its labels."""
    from hstree.builders import build
    from hstree.tree import load
    from hstree_cli.inputs import LabelReader, read_corpus

    if path is not None:
        tree = load(path)
        return tree, LabelReader(tree, reading).text(source)
    text = read_corpus(source, reading)
    return build("huffman", text), text


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
