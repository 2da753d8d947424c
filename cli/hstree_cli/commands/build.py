"""`hstree build`: a tree from a corpus, a vocabulary or vectors, by any method."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hstree_cli import completions
from hstree_cli.options import (
    Force,
    Lower,
    MaxSize,
    MinCount,
    Quiet,
    Seed,
    TrainSplitOnly,
    VocabularyFile,
    argument,
    builder_of,
    option,
    selection,
)
from hstree_cli.outputs import check_file, files_named
from hstree_cli.tables import facts, input_facts, origin
from hstree_cli.terminal import say, showing_progress, warn

if TYPE_CHECKING:
    from hstree.builders import Builder, BuilderInput
    from hstree.data.vocabulary import Vocabulary


def build(
    input: Annotated[
        str,
        argument(
            "INPUT",
            "A corpus, a vocabulary (.tsv) or vectors (.npy, .vec, .bin, GloVe .txt), "
            "as the method needs.",
        ),
    ],
    *,
    method: Annotated[
        str,
        option(
            "--method -m",
            'Method with its options, as in "gmm epsilon=0.4"; `hstree methods` lists them.',
            "METHOD",
            autocompletion=completions.methods,
        ),
    ],
    output: Annotated[
        Path, option("--output -o", "The tree: .json, .json.gz or .npz.", "FILE")
    ] = Path("tree.json"),
    force: Force = False,
    seed: Seed = 0,
    labels: Annotated[
        Path | None, option("--labels", "Words of the rows of a .npy, one per line.", "FILE")
    ] = None,
    train_split_only: TrainSplitOnly = False,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    quiet: Quiet = False,
) -> None:
    """Build a tree.

    `hstree methods gmm` shows the options of a method. With vectors, --vocabulary
    gives the words of the tree; those that have no vector go into a separate Huffman
    tree beside the rest.
    """
    import hstree
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree.data.vocabulary import EOS
    from hstree.tree.files import ENDINGS
    from hstree_cli.inputs import read_vocabulary

    chosen, options = builder_of(method, seed)
    sources = [input, vocabulary, labels, *files_named(options)]
    check_file(output, "-o", ENDINGS, force=force, reads=sources)
    reading = selection(min_count, max_size)
    with showing_progress(quiet):
        words = read_vocabulary(vocabulary, **reading)
        only_train = {"train_split_only": train_split_only}
        opened = _open(input, chosen, words, labels, {**reading, "lower": lower}, **only_train)
        tree = hstree.build(chosen.name, opened, vocabulary=words, **options)
        tree.save(output)
    rows = [*tree.stats().facts(), *input_facts(tree)]
    if isinstance(opened, Corpus):
        rows.append(("text", origin(opened)))
    if getattr(opened, "named_by_index", False):
        rows.append(("rows", "named by index: give --labels FILE, or a .labels.tsv beside them"))
    say(facts([*rows, ("written", str(output))]))
    if isinstance(opened, WordVectors) and EOS not in tree.labels:
        warn(_without_eos(input, chosen, method, output))


def _without_eos(source: str, builder: Builder, method: str, output: Path) -> str:
    """Return what a tree without <eos> cannot do, and the commands that build one with it."""
    from hstree.data.vectors import WordVectors
    from hstree.data.vocabulary import EOS

    inputs = [source, "--vocabulary"] if builder.takes is WordVectors else []
    typed = ["hstree", "build", "--method", method, *inputs, "vocab.tsv", "-o", str(output)]
    return (
        f"these vectors have no {EOS}, which ends every line of a text; to train on this tree, "
        "build it over the words of the text: `hstree vocab CORPUS --train-split-only -o "
        f"vocab.tsv`, then `{shlex.join([*typed, '--force'])}`"
    )


def _open(
    source: str,
    method: Builder,
    words: Vocabulary | None,
    labels: Path | None,
    reading: dict[str, Any],
    *,
    train_split_only: bool,
) -> BuilderInput:
    """Open the input; refuse options that are for another kind of input."""
    from hstree.builders import open_input
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree_cli.inputs import refuse_options, training_split

    opened = open_input(source, method, vocabulary=words, labels=labels, **reading)
    if not isinstance(opened, WordVectors):
        refuse_options(f"for vectors, and {source} holds none", labels=labels)
    if not isinstance(opened, Corpus):
        refuse_options(
            f"for a corpus, and {source} is none", **reading, train_split_only=train_split_only
        )
        return opened
    choice = {name: value for name, value in reading.items() if name != "lower"}
    return training_split(opened, words, choice) if train_split_only else opened
