"""`hstree demo`: a comparison of trees on text that every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hstree_cli.commands.compare import run_comparison
from hstree_cli.options import Quiet, examples, option
from hstree_cli.outputs import check_folder
from hstree_cli.terminal import showing_progress

#: Less than three minutes on two cores.
CORPUS, MIN_COUNT, EPOCHS, BATCH_SIZE = "builtin:python", 5, 3, 1024
ENTRIES = ("random", "balanced", "huffman", "gmm", "classes", "flat", "kn3")


@examples("hstree demo -o demo")
def demo(
    output: Annotated[
        Path, option("--output -o", "Folder for the trees and results.", "DIR")
    ] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Train the same model on five trees and the flat softmax, of built-in text; compare.

    The text is the English of Python's own documentation, about 180,000 words; the
    words are those that occur at least five times in the first 80% of it. It takes
    less than three minutes on two cores, and downloads nothing. Use `hstree compare`
    for a text of your own.
    """
    from hstree.data.corpus import Corpus
    from hstree.experiments.entries import as_entries
    from hstree.experiments.evaluation import corpus_splits
    from hstree_cli.inputs import training_split

    check_folder(output, "-o")
    with showing_progress(quiet):
        text = Corpus.read(CORPUS)
        words = training_split(text, None, {"min_count": MIN_COUNT}).vocabulary
    run_comparison(
        corpus_splits(text.with_vocabulary(words)),
        as_entries(ENTRIES),
        output,
        quiet,
        epochs=EPOCHS,
        batch_size=BATCH_SIZE,
    )
