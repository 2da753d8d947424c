"""`hstree demo`: a comparison of trees on real text that every installation already has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import Quiet

#: Small enough for two minutes on two cores: the standard library's docstrings, in part.
CORPUS, LINES, MIN_COUNT, EPOCHS, BATCH_SIZE = "builtin:stdlib", 15_000, 5, 3, 1024
METHODS = ("random", "balanced", "huffman", "gmm", "classes", "flat")
BASELINES = ("kn3",)


@examples("hstree demo -o demo")
def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where the trees and results are left.",
            readable=False,
        ),
    ] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Build six trees from built-in text, train on each alike, and compare them.

    The text is the first 15,000 sentences of the docstrings of Python's standard
    library; the words are those that the first 80% of them hold five times. It
    takes less than two minutes on two cores, and downloads nothing. It is what
    `hstree compare` does for a text of your own.
    """
    from hstree.data.corpus import Corpus
    from hstree.experiments.evaluation import corpus_splits
    from hstree_cli.comparing import run_comparison
    from hstree_cli.outputs import check_folder
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import training_lines

    check_folder(output, "-o")
    with showing_progress(quiet):
        text = Corpus.read(CORPUS)
        text = text.part(0, min(LINES, text.n_lines))
        words = training_lines(text, None, min_count=MIN_COUNT).vocabulary
    run_comparison(
        corpus_splits(text.with_vocabulary(words)),
        output,
        quiet,
        methods=METHODS,
        baselines=BASELINES,
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
    )
