"""The options of a model and its training, as a command's parameters give them."""

from __future__ import annotations

from typing import Any

import typer

from hstree_cli.usage import UsageError

#: Parameters that some models have and the others do not.
_OWN = {
    "lbl": ("context", "full", "dropout", "weight_decay"),
    "cbow": ("window", "sample"),
    "skipgram": ("window", "sample"),
}
#: Parameters that a command names otherwise than the library.
_NAMES = {"seed": "random_state"}


def model_options(ctx: typer.Context, **values: Any) -> dict[str, Any]:
    """Return the options of `hstree.models.new_model`.

    Those of the log-bilinear model are the command's, with its defaults. For another model,
    whose defaults are others, they are those that were given.

    Parameters
    ----------
    ctx : typer.Context
        Of a command with all of these parameters.
    **values
        Theirs, ``model`` among them.

    Raises
    ------
    UsageError
        When an option was given that the model does not have.
    OptionError
        When one has a value that it cannot have: before anything is read.
    """
    from hstree.experiments.runs import config_of

    model = values.pop("model")
    given = {name for name in values if _is_given(ctx, name)}
    foreign = {name for own in _OWN.values() for name in own} - set(_OWN[model])
    if wrong := sorted(given & foreign):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        others = " and ".join(kind for kind, own in _OWN.items() if wrong[0] in own)
        raise UsageError(f"{flags}: not with --model {model}, but with {others}", ctx)
    wanted = values.keys() - foreign if model == "lbl" else given
    options = {_NAMES.get(name, name): values[name] for name in values if name in wanted}
    if model != "lbl":
        options["model"] = model
    config_of(options)
    return options


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
