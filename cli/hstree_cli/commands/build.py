"""`hstree build`: a tree from a corpus, a vocabulary or vectors, by any method.

Each method has options of its own, known once the arguments name it (`method_options`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.examples import examples
from hstree_cli.method_options import MethodCommand
from hstree_cli.options import Force, Lower, MaxSize, MinCount, Quiet, Seed, VocabularyFile

if TYPE_CHECKING:
    from hstree.builders import Builder
    from hstree.builders.shared.inputs import BuilderInput
    from hstree.data.vocabulary import Vocabulary


@examples(
    "hstree build --method huffman builtin:python -o huffman.json",
    "hstree build --method gmm --help",
)
def build(
    input: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A corpus, a vocabulary (.tsv) or vectors (.npy, .vec, .bin, GloVe .txt), "
            "as the method needs.",
            show_default=False,
        ),
    ],
    *,
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="How to build; `hstree methods` lists them.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The tree: .json, .json.gz or .npz.",
            readable=False,
        ),
    ] = Path("tree.json"),
    force: Force = False,
    seed: Seed = 0,
    train_split_only: Annotated[
        bool,
        typer.Option(
            "--train-split-only",
            help="Read only the lines of the corpus that `hstree evaluate` trains on: the "
            "first 80%.",
        ),
    ] = False,
    min_count: MinCount = 1,
    max_size: MaxSize = None,
    lower: Lower = False,
    vocabulary: VocabularyFile = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="The words of a .npy's rows, one a line.",
            readable=False,
        ),
    ] = None,
    quiet: Quiet = False,
    options: dict[str, Any],
) -> None:
    """Build a tree.

    Name a method to see its own options: hstree build --method gmm --help.
    With vectors, --vocabulary makes the tree over those words; the ones that have
    no vector go into a Huffman tree of their own beside the rest.
    """
    import hstree
    from hstree.builders import builder
    from hstree.data.corpus import Corpus
    from hstree.tree.files import ENDINGS
    from hstree_cli.console import facts, say
    from hstree_cli.outputs import check_file
    from hstree_cli.progressbar import showing_progress
    from hstree_cli.reading import origin, vocabulary_of
    from hstree_cli.treefacts import input_facts, tree_facts

    chosen = builder(method)
    if any(option.name == "random_state" for option in chosen.options):
        options["random_state"] = seed
    chosen.effective(options)
    read = [input, vocabulary, labels, *options.values()]
    check_file(output, "-o", ENDINGS, force=force, apart_from=read)
    selection = {"min_count": min_count, "max_size": max_size}
    with showing_progress(quiet):
        words = vocabulary_of(vocabulary)
        given = _opened(input, chosen, words, labels, selection, lower, train_split_only)
        tree = hstree.build(method, given, vocabulary=words, **options)
        tree.save(output)
    lines = [*tree_facts(tree.stats()), *input_facts(tree)]
    if isinstance(given, Corpus):
        lines.append(("text", origin(given)))
    if getattr(given, "named_by_index", False):
        lines.append(("rows", "named by index: give --labels FILE, or a .labels.tsv beside them"))
    say(facts([*lines, ("written", str(output))]))


def _opened(
    source: str,
    method: Builder,
    words: Vocabulary | None,
    labels: Path | None,
    selection: dict[str, Any],
    lower: bool,
    train_split_only: bool,
) -> BuilderInput:
    """Open the input; refuse options that are for another kind of input."""
    from hstree.builders import open_input
    from hstree.data.corpus import Corpus
    from hstree.data.vectors import WordVectors
    from hstree_cli.reading import refuse_options, training_lines

    given = open_input(source, method, vocabulary=words, labels=labels, lower=lower, **selection)
    if not isinstance(given, WordVectors):
        refuse_options(f"for vectors, and {source} holds none", labels=labels)
    if not isinstance(given, Corpus):
        asked = {**selection, "min_count": selection["min_count"] > 1}
        refuse_options(
            f"for a corpus, and {source} is none",
            **asked,
            lower=lower,
            train_split_only=train_split_only,
        )
        return given
    return training_lines(given, words, **selection) if train_split_only else given


class BuildCommand(MethodCommand):
    """`build`, with the options of the method that its arguments name."""

    body = staticmethod(build)

    @staticmethod
    def example(chosen: Builder) -> str:
        """Return a line that builds with the method."""
        source = "vectors.npy" if chosen.takes_text == "word vectors" else "builtin:python"
        return f"hstree build --method {chosen.name} {source} -o {chosen.name}.json"
