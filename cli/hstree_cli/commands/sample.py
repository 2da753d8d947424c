"""`hstree sample`: text drawn from a model."""

from __future__ import annotations

from typing import Annotated

import typer

from hstree_cli.arguments import check_model
from hstree_cli.options import ModelFolder, Quiet, Seed, examples, option
from hstree_cli.terminal import printable, showing_progress


@examples("hstree sample model --words 50 --seed 1", 'hstree sample model --context "the stock"')
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
    quiet: Quiet = False,
) -> None:
    """Draw words from a model, each given the words before it, and print the text.

    A drawn <eos> ends its line. Without --context the text begins a new line.
    Control characters in words are printed escaped.
    """
    from hstree.data.vocabulary import EOS
    from hstree.models.ensemble import Ensemble, is_ensemble
    from hstree.models.lbl import LanguageModel
    from hstree_cli.inputs import warn_of_unknown, words_of

    check_model(ctx, model)
    with showing_progress(quiet):
        kind = Ensemble if is_ensemble(model) else LanguageModel
        loaded: Ensemble | LanguageModel = kind.load(model)
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
