"""`hstree bootstrap`: from text alone to a tree of what a model learned from it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.examples import examples
from hstree_cli.method_options import MethodCommand
from hstree_cli.options import (
    CORPUS_KINDS,
    BatchSize,
    Context,
    Dim,
    Dropout,
    Epochs,
    Full,
    JsonFile,
    LearningRate,
    Lower,
    MaxSize,
    MinCount,
    Quiet,
    Seed,
    TestText,
    ValidText,
    VocabularyFile,
    WeightDecay,
)

if TYPE_CHECKING:
    from hstree.builders import Builder


@examples("hstree bootstrap corpus.txt -o runs --epsilon 0.4 --trees 4 --rounds 2")
def bootstrap(
    corpus: Annotated[
        str, typer.Argument(metavar="CORPUS", help=f"A corpus: {CORPUS_KINDS}.", show_default=False)
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Where every round is kept.",
            show_default=False,
            readable=False,
        ),
    ],
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", metavar="N", min=1, help="Trees grown, each from the best model before it."
        ),
    ] = 1,
    method: Annotated[
        str, typer.Option("--method", "-m", help="How to grow trees from vectors.")
    ] = "gmm",
    valid: ValidText = None,
    test: TestText = None,
    dim: Dim = 100,
    context: Context = 5,
    full: Full = False,
    epochs: Epochs = 20,
    batch_size: BatchSize = 256,
    learning_rate: LearningRate = 0.1,
    dropout: Dropout = 0.35,
    weight_decay: WeightDecay = 1.5e-5,
    seed: Seed = 0,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    json: JsonFile = None,
    quiet: Quiet = False,
    options: dict[str, Any],
) -> None:
    """Grow trees from what a model learned on a tree before.

    A random tree is trained first; its words' mean predicted vectors make the next
    tree, which is trained in turn. DIR gets round-0, round-1, ...: tree.json,
    vectors.npy, the model and result.json. What is finished is not done again.
    """
    from hstree._files import write_json
    from hstree.experiments.bootstrap import bootstrap as rounds_of
    from hstree.models.lbl_training import TrainingOptions
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_file, check_folder, written
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin, parts_of, vocabulary_of, warn_of_seen_lines
    from hstree_cli.rounds_table import conditions, table_of

    training = TrainingOptions(epochs, batch_size, learning_rate, dropout, weight_decay, seed)
    model = {"dim": dim, "context": context, "full": full, **asdict(training)}
    read = [corpus, valid, test, vocabulary, *options.values()]
    kept = [f"round-{number}" for number in range(rounds + 1)]
    check_folder(output, "-o", kept, apart_from=[*read, json])
    if json is not None:
        check_file(json, "--json", apart_from=read)
    with showing_progress(quiet):
        splits = parts_of(
            (corpus, valid, test),
            vocabulary_of(vocabulary),
            min_count=min_count,
            max_size=max_size,
            lower=lower,
        )
        warn_of_seen_lines(splits)
        results = dict(
            rounds_of(splits, output, rounds=rounds, method=method, build_options=options, **model)
        )
    with written((json, lambda path: write_json(path, results))):
        say(table_of(results, output))
        say(facts([*conditions(results, origin(splits.train)), ("kept in", f"{output}/")]))


class BootstrapCommand(MethodCommand):
    """`bootstrap`, with the options of the method that grows the trees."""

    body = staticmethod(bootstrap)
    method = "gmm"

    @staticmethod
    def example(chosen: Builder) -> str:
        """Return a line that grows trees by the method."""
        options = "--epsilon 0.4 --trees 4" if chosen.name == "gmm" else f"--method {chosen.name}"
        return f"hstree bootstrap corpus.txt -o runs {options} --rounds 2"
