"""Arguments that stand in each other's place, name another kind of thing, or several things."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hstree_cli.options import UsageError

if TYPE_CHECKING:
    from hstree.builders import Builder


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


def refuse_lists(flag: str, values: Sequence[object] | None) -> None:
    """Refuse names that commas join in one value of an option that is repeated instead."""
    from hstree.builders.registry import BUILDERS
    from hstree.errors import OptionError
    from hstree.layers.registry import LAYERS
    from hstree.tree.files import ENDINGS

    known = {*BUILDERS.names(), *LAYERS.names(), *(f"kn{order}" for order in range(2, 8))}
    for value in map(str, values or ()):
        names = [name.strip() for name in value.split(",") if name.strip()]
        # A comma may belong to an option's value, or to the name of a file.
        if Path(value).exists() or not any(
            split_models(name)[1].split()[0] in known or name.endswith(ENDINGS)
            for name in names[1:]
        ):
            continue
        repeated = " ".join(f"{flag} {shlex.quote(name)}" for name in names)
        raise OptionError(f"{flag} {value!r} holds several names; repeat the option: {repeated}")


def refuse_several(name: str, flag: str) -> None:
    """Refuse several names in place of one."""
    from hstree.errors import OptionError

    if "," in name:
        repeated = " ".join(f"{flag} {one}" for one in name.split(",") if one)
        raise OptionError(
            f"{name!r} holds several names, and one is wanted; `hstree compare CORPUS {repeated} "
            "-o DIR` compares several"
        )


def split_models(text: str) -> tuple[int | None, str]:
    """Return the number of models of an ensemble and what each is; None for another row.

    Examples
    --------
    >>> split_models("3 x gmm --trees 2"), split_models("gmm")
    ((3, 'gmm --trees 2'), (None, 'gmm'))
    """
    from hstree.errors import OptionError

    match = re.fullmatch(r"\s*(\d+)\s+x\s+(.*)", text, re.DOTALL)
    if match is None:
        return None, text
    if int(match[1]) < 2:
        raise OptionError(f"{text!r} is no ensemble, which has 2 models or more; type {match[2]!r}")
    return int(match[1]), match[2]


def find_builder(name: str, instead: str = "give it with --layer {}") -> Builder:
    """Return the builder of a name; `instead` tells what to do with the name of a layer."""
    from hstree.builders import builder
    from hstree.builders.registry import BUILDERS
    from hstree.data.vocabulary import Vocabulary
    from hstree.errors import OptionError
    from hstree.layers.registry import LAYERS, TREE_LAYER

    refuse_several(name, "-m")
    is_layer = name in LAYERS.names() and name not in BUILDERS.names()
    if is_layer and LAYERS.get(name).takes is Vocabulary:
        raise OptionError(f"{name} is an output layer, not a tree: {instead.format(name)}")
    if is_layer and name != TREE_LAYER:
        raise OptionError(f'{name} is an output layer over a tree: name both, as in "gmm + {name}"')
    return builder(name)
