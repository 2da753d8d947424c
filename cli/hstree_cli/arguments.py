"""Arguments that stand in each other's place, or name another kind of thing."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hstree_cli.options import UsageError

if TYPE_CHECKING:
    from hstree.models import Ensemble, Model


def is_tree(path: Path) -> bool:
    """Return whether there is a file with the ending of a tree."""
    from hstree.tree.files import ENDINGS

    return path.name.endswith(ENDINGS) and path.is_file()


def is_model(path: Path) -> bool:
    """Return whether there is a folder of a saved model or ensemble."""
    from hstree._files import current_file
    from hstree.models.ensemble import is_ensemble
    from hstree.models.files import CONFIG

    return current_file(path, CONFIG).is_file() or is_ensemble(path)


def refuse_swapped(
    ctx: typer.Context, first: Path, second: str | Path | None, is_first: Callable[[Path], bool]
) -> None:
    """Refuse two arguments of which only the second is what the first should be."""
    if second is not None and is_first(Path(second)) and not is_first(first):
        right = shlex.join([str(second), str(first)])
        raise UsageError(f"the arguments are swapped; type `{ctx.command_path} {right} ...`", ctx)


def check_model(ctx: typer.Context, model: Path, other: str | None = None) -> None:
    """Refuse a tree where a model is wanted, and a model that the argument after it names."""
    refuse_swapped(ctx, model, other, is_model)
    if is_tree(model):
        how = shlex.join(["hstree", "evaluate", str(model), "CORPUS", "--save", "MODEL_DIR"])
        raise UsageError(
            f"{model} is a tree, and this command wants a model; train one with `{how}`", ctx
        )


def load_models(model: Path, others: Sequence[Path] | None) -> Model[Any] | Ensemble:
    """Read a model, or several whose probabilities are averaged."""
    from hstree.models import Ensemble, load_model

    first, *more = [load_model(folder) for folder in (model, *(others or ()))]
    if not more:
        return first
    return Ensemble([one for each in (first, *more) for one in getattr(each, "models", [each])])
