"""`hstree build`: a tree from a corpus, a vocabulary or vectors, by any method."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli.completions import methods
from hstree_cli.options import (
    Force,
    NoUnk,
    Quiet,
    Reading,
    Seed,
    TrainSplitOnly,
    argument,
    examples,
    option,
)
from hstree_cli.outputs import check_file, files_named
from hstree_cli.registered_options import BuilderOptions
from hstree_cli.tables import facts, input_facts, origin
from hstree_cli.terminal import say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.builders import Builder, BuilderInput
    from hstree.data.vocabulary import Vocabulary


def _example(builder: Builder) -> str:
    source = "vectors.npy" if builder.takes_text == "word vectors" else "builtin:python"
    return f"hstree build --method {builder.name} {source} -o {builder.name}.json"


@examples(
    "hstree build --method huffman builtin:python -o huffman.json",
    "hstree build --method gmm --help",
)
def build(
    input: Annotated[
        str,
        argument(
            "INPUT",
            "A corpus, words with counts (.tsv, .csv, .parquet) or vectors (.npy, .vec, .bin, "
            "GloVe .txt), as the method needs.",
        ),
    ],
    *,
    method: Annotated[
        str,
        option(
            "--method -m",
            "Method to build with; `hstree methods` lists them.",
            "METHOD",
            autocompletion=methods,
        ),
    ],
    output: Annotated[
        Path, option("--output -o", "The tree: .json, .json.gz or .npz.", "FILE")
    ] = Path("tree.json"),
    force: Force = False,
    seed: Seed = 0,
    train_split_only: TrainSplitOnly = False,
    no_unk: NoUnk = False,
    reading: Reading,
    labels: Annotated[
        Path | None, option("--labels", "Words of the rows of a .npy, one per line.", "FILE")
    ] = None,
    quiet: Quiet = False,
    options: Annotated[dict[str, Any], BuilderOptions(_example)],
) -> None:
    """Build a tree.

    Name a method to see its options: hstree build --method gmm --help. With
    vectors, --vocabulary gives the words of the tree; those that have no vector go
    into a separate Huffman tree beside the rest.
    """
    import hstree
    from hstree.builders import builder
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.data.vocabulary import EOS
    from hstree.tree.files import ENDINGS
    from hstree_cli.inputs import read_vocabulary

    chosen = builder(method)
    if any(option.name == "random_state" for option in chosen.options):
        options["random_state"] = seed
    chosen.effective(options)
    sources = [input, reading.vocabulary, labels, *files_named(options)]
    check_file(output, "-o", ENDINGS, force=force, reads=sources)
    with showing_progress(quiet):
        words = read_vocabulary(reading)
        opened = _open(input, chosen, words, labels, reading, train_split_only, no_unk)
        tree = hstree.build(method, opened, vocabulary=words, **options)
        tree.save(output)
    rows = [*tree.stats().facts(), *input_facts(tree)]
    if isinstance(opened, Corpus):
        rows.append(("text", origin(opened)))
    if getattr(opened, "named_by_index", False):
        rows.append(("rows", "named by index: give --labels FILE, or a .labels.tsv beside them"))
    say(facts([*rows, ("written", str(output))]))
    if isinstance(opened, WordVectors) and EOS not in tree.labels:
        warn(_without_eos(input, chosen, options, output))


def _without_eos(source: str, method: Builder, options: dict[str, Any], output: Path) -> str:
    """Return what a tree without <eos> cannot do, and the commands that build one with it."""
    from hstree.data.vectors import WordVectors
    from hstree.data.vocabulary import EOS
    from hstree_cli.method_strings import spelled

    default = {option.name: option.default for option in method.options}
    typed = {name: value for name, value in options.items() if value != default[name]}
    inputs = [source, "--vocabulary"] if method.takes is WordVectors else []
    paths = shlex.join([*inputs, "vocab.tsv", "-o", str(output), "--force"])
    return (
        f"these vectors have no {EOS}, which ends every line of a text; to train on this tree, "
        "build it over the words of the text: `hstree vocab CORPUS --train-split-only -o "
        f"vocab.tsv`, then `hstree build --method {spelled(method, typed)} {paths}`"
    )


def _open(
    source: str,
    method: Builder,
    words: Vocabulary | None,
    labels: Path | None,
    reading: Reading,
    train_split_only: bool,
    no_unk: bool,
) -> BuilderInput:
    """Open the input; refuse options that are for another kind of input."""
    from hstree.builders import open_input
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree_cli.inputs import refuse_options, training_split

    opened = open_input(
        source,
        method,
        vocabulary=words,
        labels=labels,
        unk=True if words is not None else not no_unk,
        lower=reading.lower,
        text=reading.text,
        min_count=reading.min_count,
        max_size=reading.max_size,
    )
    if not isinstance(opened, WordVectors):
        refuse_options(f"for vectors, and {source} holds none", labels=labels)
    if not isinstance(opened, Corpus):
        refuse_options(
            f"for a corpus, and {source} is none",
            **reading.selection,
            lower=reading.lower,
            text=reading.text,
            no_unk=no_unk,
            train_split_only=train_split_only,
        )
        return opened
    if words is not None:
        refuse_options("--vocabulary chooses the words already", no_unk=no_unk)
    if not train_split_only:
        return opened
    return training_split(opened, words, reading.selection, not no_unk)
