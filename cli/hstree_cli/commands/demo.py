"""`hstree demo`: four trees over the same real text, trained alike and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import Quiet

#: Small enough for two minutes on two cores: the standard library's docstrings, in part.
CORPUS, LINES, MIN_COUNT, EPOCHS, BATCH_SIZE = "builtin:stdlib", 15_000, 5, 3, 1024
METHODS = ("random", "balanced", "huffman", "flat")


@examples("hstree demo -o demo")
def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Where the trees and results are left."),
    ] = Path("demo"),
    quiet: Quiet = False,
) -> None:
    """Build four trees from built-in text, train on each alike, and compare them.

    The text is the first 15,000 sentences of the docstrings of Python's standard
    library; the words are those that the first 80% of them hold five times. It
    takes less than two minutes on two cores, and downloads nothing.
    """
    import hstree
    from hstree.comparison import compare
    from hstree.evaluation import corpus_parts
    from hstree.jsonfile import write_json
    from hstree_cli.comparison_table import conditions, table_of
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_folder
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin, training_lines

    check_folder(output, "-o")
    output.mkdir(parents=True, exist_ok=True)
    with showing_progress(quiet):
        text = hstree.Corpus.read(CORPUS)
        text = text.part(0, min(LINES, text.n_lines))
        train = training_lines(text, None, min_count=MIN_COUNT)
        parts = corpus_parts(text.with_vocabulary(train.vocabulary))
        trees = {method: hstree.build(method, train) for method in METHODS}
        for method, tree in trees.items():
            tree.save(output / f"{method}.json")
        results = {}
        for method, found in compare(trees, parts, epochs=EPOCHS, batch_size=BATCH_SIZE):
            results[method] = found.as_dict()
            write_json(output / f"{method}.result.json", results[method])
    say(table_of(results))
    say(facts([*conditions(results, origin(text)), ("left in", f"{output}/")]))
