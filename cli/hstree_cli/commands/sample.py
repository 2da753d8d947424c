"""`hstree sample`: text drawn from a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hstree_cli.arguments import check_model, load_models
from hstree_cli.options import ModelFolder, Quiet, Seed, With, option
from hstree_cli.terminal import printable, showing_progress


def sample(
    ctx: typer.Context,
    model: ModelFolder,
    words: Annotated[
        int,
        option(
            "--words",
            "Number of words to draw, including the ends of lines.",
            "N",
            min=0,
            max=10_000_000,
        ),
    ] = 50,
    seed: Seed = 0,
    context: Annotated[str, option("--context", "Words to continue; not printed.", "TEXT")] = "",
    also: With = None,
    quiet: Quiet = False,
) -> None:
    """Draw words from a model, each given the words before it, and print the text.

    A drawn <eos> ends its line. Without --context the text begins a new line.
    Control characters in words are printed escaped.
    """
    from hstree.data.vocabulary import EOS
    from hstree.errors import OptionError
    from hstree_cli.inputs import warn_of_unknown, words_of

    check_model(ctx, model)
    with showing_progress(quiet):
        loaded: Any = load_models(model, also)
        if not loaded.is_language_model:
            raise OptionError(
                f"{model} is a model {loaded.name}, which cannot write text; give a language model"
            )
        before = words_of(context)
        warn_of_unknown([before], loaded.vocabulary)
        drawn = loaded.sample(words, before, random_state=seed)
    lines: list[list[str]] = [[]]
    for word in drawn:
        if word == EOS:
            lines.append([])
        else:
            lines[-1].append(word)
    typer.echo(printable("\n".join(map(" ".join, lines)), keep="\n"), nl=bool(lines[-1]))
