"""`hstree vocab`: count the words of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import CORPUS_KINDS, Force, Lower, MaxSize, MinCount, Quiet, VocabularyFile


@examples("hstree vocab builtin:python --min-count 5 -o vocab.tsv")
def vocab(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write the words.", readable=False
        ),
    ] = Path("vocab.tsv"),
    force: Force = False,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    quiet: Quiet = False,
) -> None:
    """Count the words of a corpus into a file of word<TAB>count lines.

    With --vocabulary, the words of that file are counted, in its order. The
    first line records the text and its lines, so that a test part among them is
    noticed later.
    """
    from hstree.data.corpus import Corpus
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_file
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import corpus_facts, vocabulary_of

    check_file(output, "-o", force=force, apart_from=[corpus, vocabulary])
    with showing_progress(quiet):
        text = Corpus.read(
            corpus,
            vocabulary=vocabulary_of(vocabulary),
            min_count=min_count,
            max_size=max_size,
            lower=lower,
        )
        text.counted_vocabulary().save(output)
    say(facts([*corpus_facts(text), ("written", str(output))]))
