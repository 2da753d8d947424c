"""`hstree vocab`: count the words of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hstree_cli.options import (
    CorpusName,
    Force,
    NoUnk,
    Quiet,
    Reading,
    TrainSplitOnly,
    examples,
    option,
)
from hstree_cli.outputs import check_file
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import say, showing_progress


@examples("hstree vocab builtin:python --min-count 5 -o vocab.tsv")
def vocab(
    corpus: CorpusName,
    output: Annotated[Path, option("--output -o", "The vocabulary file.", "FILE")] = Path(
        "vocab.tsv"
    ),
    *,
    force: Force = False,
    train_split_only: TrainSplitOnly = False,
    no_unk: NoUnk = False,
    reading: Reading,
    quiet: Quiet = False,
) -> None:
    """Count the words of a corpus into a file of word<TAB>count lines.

    With --vocabulary, the words of that file are counted, in its order. The
    first line of the new file records the text and its lines, so that later
    commands notice test lines among them.
    """
    from hstree_cli.inputs import read_corpus, refuse_options, training_split

    if reading.vocabulary is not None:
        refuse_options("--vocabulary chooses the words already", no_unk=no_unk)
    check_file(output, "-o", force=force, reads=[corpus, reading.vocabulary])
    with showing_progress(quiet):
        text = read_corpus(corpus, reading, unk=not no_unk)
        words = None if reading.vocabulary is None else text.vocabulary
        if train_split_only:
            text = training_split(text, words, reading.selection, not no_unk)
        text.counted_vocabulary().save(output)
    say(facts([*corpus_facts(text), ("written", str(output))]))
