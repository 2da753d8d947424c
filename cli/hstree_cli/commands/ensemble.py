"""`hstree ensemble`: several trained models as one, by the mean of their probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hstree_cli.arguments import check_model
from hstree_cli.options import Quiet, argument, examples, option
from hstree_cli.outputs import check_folder
from hstree_cli.tables import count, facts, vocabulary_line
from hstree_cli.terminal import say, showing_progress


@examples("hstree ensemble model1 model2 -o ensemble", "hstree score ensemble other.txt")
def ensemble(
    ctx: typer.Context,
    models: Annotated[
        list[Path],
        argument("MODEL_DIR", "Folders of models that `hstree evaluate --save` wrote."),
    ],
    output: Annotated[Path, option("--output -o", "Folder of the ensemble.", "DIR")],
    quiet: Quiet = False,
) -> None:
    """Keep several trained models as one, whose probabilities are the mean of theirs.

    Models that were trained with different seeds err differently, so that their mean
    mostly has a lower perplexity than each. They may have other trees, layers and sizes, but
    the same words. predict, sample and score take DIR as they take a model. In
    compare, "3 x gmm" is a row of three models.
    """
    from hstree.errors import FileFormatError
    from hstree.models import Ensemble, load
    from hstree.models.ensemble import ENSEMBLE, MODELS, is_ensemble

    for model in models:
        check_model(ctx, model)
        if is_ensemble(model):
            raise FileFormatError(f"{model} is an ensemble; name the models that it is of")
    check_folder(output, "-o", (ENSEMBLE, MODELS), reads=models)
    with showing_progress(quiet):
        made = Ensemble([load(model) for model in models])
        made.save(output)
    say(
        facts(
            [
                ("models", ", ".join(map(str, models))),
                ("written", str(output)),
                ("parameters", count(made.n_parameters)),
                ("vocabulary", vocabulary_line(len(made.vocabulary), made.vocabulary.sha256)),
            ]
        )
    )
