"""`hstree predict`: the most probable words after a context."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hstree_cli.examples import examples
from hstree_cli.options import JsonFile, ModelFolder, Quiet
from hstree_cli.usage import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hstree.models.base import TreeModel

#: The words of a context, and the most probable ones with their probabilities.
Answer = tuple[list[str], list[tuple[str, float]]]

#: Contexts answered at a time.
BATCH = 256


@examples(
    'hstree predict model "the stock market" -k 5',
    "hstree predict model --contexts lines.txt --json answers.json",
)
def predict(
    ctx: typer.Context,
    model: ModelFolder,
    context: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="The words before, as they are in the corpus.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="K", min=1, help="Words to name.")] = 10,
    contexts: Annotated[
        str | None,
        typer.Option("--contexts", metavar="FILE", help="A context a line; - is standard input."),
    ] = None,
    json: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Print the most probable next words, with their probabilities.

    They are exactly the best of all words, whatever the tree. TEXT stands at the
    beginning of a line; of a long one the last words count. Words are taken as
    they are typed: write them as the corpus does, in lower case where it does.
    With a cbow or skipgram model they are words that occur near those of TEXT.
    """
    from hstree._files import write_json
    from hstree.models.base import load
    from hstree.models.files import FILES
    from hstree.models.language_model import LanguageModel
    from hstree_cli.console import say
    from hstree_cli.contexts import read_contexts, split
    from hstree_cli.outputs import check_file, written
    from hstree_cli.progressbar import showing_progress

    if (context is None) == (contexts is None):
        raise UsageError("give a context, or a file of them with --contexts", ctx)
    if json is not None:
        check_file(json, "--json", apart_from=[contexts, *(model / name for name in FILES)])
    with showing_progress(quiet or sys.stdout.isatty()):
        loaded = load(model)
        title = "next word" if isinstance(loaded, LanguageModel) else "word"
        given = iter([split(context)]) if context is not None else read_contexts(contexts or "-")
        answers: Iterable[Answer] = _answers(loaded, given, k)
        if json is not None:
            answers = list(answers)
        with written((json, lambda path: write_json(path, _document(answers, k, loaded)))):
            for words, found in answers:
                say(_drawn(words, found, title))


def _answers(model: TreeModel[Any], contexts: Iterator[list[str]], k: int) -> Iterator[Answer]:
    """Yield each context with its most probable words, as the contexts come."""
    from hstree_cli.contexts import warn_of_unknown

    while some := list(islice(contexts, BATCH)):
        warn_of_unknown(some, model.vocabulary)
        yield from zip(some, model.predict(some, k), strict=True)


def _drawn(words: list[str], found: list[tuple[str, float]], title: str) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from hstree_cli.console import shortened, table

    drawn = table(title, "probability", text=(title,))
    for word, probability in found:
        drawn.add_row(shortened(word), f"{probability:.6f}")
    after = " ".join(shortened(word) for word in words) or "(no word)"
    return Group(Text(after, style="bold"), drawn)


def _document(answers: Iterable[Answer], k: int, model: TreeModel[Any]) -> dict[str, Any]:
    from hstree_cli.contexts import unknown

    predictions = [
        {
            "context": words,
            "unknown": unknown(words, model.vocabulary),
            "words": [{"word": word, "probability": probability} for word, probability in found],
        }
        for words, found in answers
    ]
    return {"k": k, "predictions": predictions}
