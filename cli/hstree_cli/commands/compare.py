"""`hstree compare`: which tree? Several of them, trained alike on one corpus, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hstree_cli.examples import examples
from hstree_cli.options import (
    CORPUS_KINDS,
    BatchSize,
    Context,
    Dim,
    Dropout,
    Epochs,
    Full,
    LearningRate,
    Lower,
    MaxSize,
    MinCount,
    ModelName,
    Quiet,
    Sample,
    Seed,
    TestText,
    ValidText,
    VocabularyFile,
    WeightDecay,
    Window,
)

if TYPE_CHECKING:
    from hstree.data.vocabulary import Vocabulary
    from hstree.tree import Tree

#: What is compared where nothing is named.
METHODS = (
    *("random", "huffman", "semantic", "gmm", "gmm --epsilon 0.4 --trees 4", "classes"),
    "flat",
)
BASELINES = ("kn5",)


@examples(
    'hstree compare corpus.txt -m huffman -m "gmm --epsilon 0.4" -m flat -o runs',
    "hstree compare corpus.txt --tree mine.json -m flat --baseline kn5 --seeds 3 -o runs",
)
def compare(
    ctx: typer.Context,
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
            help="Where every run and the results are kept.",
            show_default=False,
            readable=False,
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            help='A method and its options, as in "gmm --epsilon 0.4"; repeat it.',
            show_default=False,
        ),
    ] = None,
    tree: Annotated[
        list[Path] | None,
        typer.Option(
            "--tree",
            metavar="TREE",
            help="A tree that is there already; repeat it.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="knN",
            help="Kneser-Ney of order N, kn2 to kn7; repeat it.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Random states, from --seed on.")
    ] = 1,
    valid: ValidText = None,
    test: TestText = None,
    model: ModelName = "lbl",
    dim: Dim = 100,
    context: Context = 5,
    window: Window = 5,
    sample: Sample = 0.0,
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
    quiet: Quiet = False,
) -> None:
    """Train the same model on several trees and print what each costs and buys.

    Trees are built from the training part alone; those of vectors grow from what
    a model learned on a random tree. Rows stand in the order methods, trees,
    baselines; the tree that is named below them is chosen by validation
    perplexity. With --tree and nothing that chooses words, the words are those of
    the first tree; all trees must be over the same ones.

    Without any of them it compares random, huffman, semantic, gmm, gmm --epsilon
    0.4 --trees 4, classes, flat and, with --model lbl, kn5. The flat softmax is
    slow where there are many words: its seconds grow with the vocabulary.

    DIR gets results.json, results.csv and every run. The table has what is asked
    for; finished runs in DIR are not done again, so that a comparison goes on
    where it was stopped, and a new method only adds its row.
    """
    from hstree._files import recorded_name
    from hstree.tree import load
    from hstree_cli.comparing import KEPT, run_comparison
    from hstree_cli.models import model_options
    from hstree_cli.outputs import check_folder
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import parts_of, refuse_options, vocabulary_of, warn_of_seen_lines

    options = model_options(
        ctx,
        model=model,
        dim=dim,
        context=context,
        full=full,
        window=window,
        sample=sample,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        dropout=dropout,
        weight_decay=weight_decay,
        seed=seed,
    )
    if not (method or tree or baseline):
        method, baseline = list(METHODS), list(BASELINES if model == "lbl" else ())
    if vocabulary is not None:
        asked = {"min_count": min_count > 1, "max_size": max_size}
        refuse_options("--vocabulary chooses the words already", **asked)
    sources = (corpus, valid, test)
    check_folder(output, "-o", KEPT, apart_from=[*sources, vocabulary, *(tree or ())])
    with showing_progress(quiet):
        trees = {recorded_name(path): load(path) for path in tree or ()}
        words = vocabulary_of(vocabulary)
        if trees and words is None and (min_count, max_size) == (1, None):
            words = _words_of(next(iter(trees.values())), sources, lower)
        splits = parts_of(sources, words, min_count=min_count, max_size=max_size, lower=lower)
    warn_of_seen_lines(splits, trees)
    run_comparison(
        splits,
        output,
        quiet,
        methods=method or (),
        trees=trees,
        baselines=baseline or (),
        seeds=seeds,
        **options,
    )


def _words_of(tree: Tree, sources: tuple[str, str | None, str | None], lower: bool) -> Vocabulary:
    """Return a tree's labels in the order that the training part itself would give them."""
    from hstree.data.provenance import texts
    from hstree.data.vocabulary import Vocabulary
    from hstree_cli.reading import parts_of

    labels = Vocabulary(tree.labels, [0] * tree.n_labels)
    counts = parts_of(sources, labels, lower=lower).train.counts
    order = sorted(range(tree.n_labels), key=lambda i: (-counts[i], tree.labels[i]))
    source: dict[str, object] = {
        "kind": "tree",
        "sha256": tree.sha256,
        "texts": texts(tree.meta.get("input")),
    }
    return Vocabulary([tree.labels[i] for i in order], counts[order], source=source)
