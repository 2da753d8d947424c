"""`hstree demo`: a comparison of trees on text that every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hstree_cli.commands.compare import run_comparison
from hstree_cli.options import Quiet, option
from hstree_cli.outputs import check_folder
from hstree_cli.terminal import say, showing_progress

CORPUS, MIN_COUNT, EPOCHS, BATCH_SIZE = "builtin:python", 3, 2, 1024
ROWS = ("random", "huffman", "gmm", "classes", "flat", "kn3")


def demo(
    output: Annotated[
        Path, option("--output -o", "Folder for the trees and results.", "DIR")
    ] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Train the same model on four trees and the flat softmax, of built-in text; compare.

    The text is the English of Python's own documentation; nothing is downloaded. Use
    `hstree compare` for a text of your own.
    """
    check_folder(output, "-o")
    say(f"Comparing {', '.join(ROWS)} on the text {CORPUS}.")
    from hstree.data.corpus import Corpus
    from hstree.data.splits import corpus_splits
    from hstree.experiments.results import Epochs
    from hstree.experiments.row import Row
    from hstree_cli.inputs import training_split

    with showing_progress(quiet):
        text = Corpus.read(CORPUS)
        words = training_split(text, None, {"min_count": MIN_COUNT}).vocabulary
    splits, rows = corpus_splits(text.with_vocabulary(words)), [Row.parse(row) for row in ROWS]
    stop, size = Epochs(EPOCHS), BATCH_SIZE
    run_comparison(splits, rows, output, quiet, stop=stop, speed_rounds=1, batch_size=size)
