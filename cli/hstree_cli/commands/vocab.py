"""`hstree vocab`: count the words of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hstree_cli.options import (
    CorpusName,
    Force,
    Lower,
    MaxSize,
    MinCount,
    Quiet,
    TrainSplitOnly,
    VocabularyFile,
    option,
    selection,
)
from hstree_cli.outputs import check_file
from hstree_cli.tables import corpus_facts, facts
from hstree_cli.terminal import say, showing_progress


def vocab(
    corpus: CorpusName,
    output: Annotated[Path, option("--output -o", "The vocabulary file.", "FILE")] = Path(
        "vocab.tsv"
    ),
    *,
    force: Force = False,
    train_split_only: TrainSplitOnly = False,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    quiet: Quiet = False,
) -> None:
    """Count the words of a corpus into a file of word<TAB>count lines.

    With --vocabulary, the words of that file are counted, in its order. The
    first line of the new file records the text and its lines, so that later
    commands notice test lines among them.
    """
    from hstree.data.corpus import Corpus
    from hstree_cli.inputs import read_vocabulary, training_split

    check_file(output, "-o", force=force, reads=[corpus, vocabulary])
    choice = selection(min_count, max_size)
    with showing_progress(quiet):
        words = read_vocabulary(vocabulary, **choice)
        text = Corpus.read(corpus, vocabulary=words, lower=lower, **choice)
        if train_split_only:
            text = training_split(text, words, choice)
        text.counted_vocabulary().save(output)
    say(facts([*corpus_facts(text), ("written", str(output))]))
