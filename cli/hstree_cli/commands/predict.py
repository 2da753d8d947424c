"""`hstree predict`: the most probable words after a context."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hstree_cli.arguments import check_model, load_models
from hstree_cli.options import JsonFile, ModelFolder, Quiet, UsageError, With, argument, option
from hstree_cli.outputs import check_file, written
from hstree_cli.tables import shortened, table
from hstree_cli.terminal import say, showing_progress

if TYPE_CHECKING:
    from hstree.models import Ensemble, Model

#: The words of a context, and the most probable next words with their probabilities.
Answer = tuple[list[str], list[tuple[str, float]]]

#: Contexts per batch.
BATCH = 256


def predict(
    ctx: typer.Context,
    model: ModelFolder,
    context: Annotated[str | None, argument("TEXT", "The words before.")] = None,
    k: Annotated[int, option("-k", "Number of words.", "K", min=1)] = 10,
    contexts: Annotated[
        str | None, option("--contexts", "File of contexts, one per line; - for stdin.", "FILE")
    ] = None,
    also: With = None,
    json: JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Print the most probable next words, with their probabilities.

    The search is exact with every tree and every other output layer. TEXT begins a
    line; only its last words count if it is long. Type words as they are in the
    corpus: in lower case if it is. With a cbow or skipgram model the answers are
    words that occur near those of TEXT.
    """
    from hstree._files import write_json
    from hstree_cli.inputs import read_contexts, words_of

    if (context is None) == (contexts is None):
        raise UsageError("give a context, or a file of them with --contexts", ctx)
    check_model(ctx, model, context)
    check_file(json, "--json", reads=[contexts, model, *(also or ())])
    with showing_progress(quiet or sys.stdout.isatty()):
        loaded = load_models(model, also)
        title = "next word" if loaded.is_language_model else "word"
        asked = iter([words_of(context)]) if context is not None else read_contexts(contexts or "-")
        answers: Iterable[Answer] = _answers(loaded, asked, k)
        if json is not None:
            answers = list(answers)
        with written((json, lambda path: write_json(path, _document(answers, k, loaded)))):
            for words, predicted in answers:
                say(_answer_table(words, predicted, title))


def _answers(
    model: Model[Any] | Ensemble, contexts: Iterator[list[str]], k: int
) -> Iterator[Answer]:
    """Yield each context with its most probable words, a batch at a time."""
    from hstree_cli.inputs import warn_of_unknown

    while batch := list(islice(contexts, BATCH)):
        warn_of_unknown(batch, model.vocabulary)
        yield from zip(batch, model.predict(batch, k), strict=True)


def _answer_table(
    words: list[str], predicted: list[tuple[str, float]], title: str
) -> RenderableType:
    filled = table(title, "probability", text=(title,))
    for word, probability in predicted:
        filled.add_row(shortened(word), f"{probability:.6f}")
    context = " ".join(shortened(word) for word in words) or "(no word)"
    return Group(Text(context, style="bold"), filled)


def _document(answers: Iterable[Answer], k: int, model: Model[Any] | Ensemble) -> dict[str, Any]:
    from hstree_cli.inputs import unknown_words

    predictions = [
        {
            "context": words,
            "unknown": unknown_words(words, model.vocabulary),
            "words": [{"word": word, "probability": p} for word, p in predicted],
        }
        for words, predicted in answers
    ]
    return {"k": k, "predictions": predictions}
