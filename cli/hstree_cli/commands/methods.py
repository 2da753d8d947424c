"""`hstree methods`: builders, output layers, models, n-gram models, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hstree_cli import completions
from hstree_cli.options import argument
from hstree_cli.tables import facts
from hstree_cli.terminal import say, warn

if TYPE_CHECKING:
    from hstree._options import Option

NGRAMS = "kn2 to kn7"


def methods(
    names: Annotated[
        list[str] | None,
        argument("NAME", "What to describe in full.", autocompletion=completions.all_names),
    ] = None,
) -> None:
    """List builders, output layers, models and n-gram models; describe some with all options.

    A row is a builder, a builder with a layer over its tree ("gmm + ngrams"), an
    output layer over words, or an n-gram model. Options follow as key=value.
    """
    groups = _groups()
    if not names:
        for title, kinds in groups.items():
            say(f"\n{title}")
            say(facts([(f"  {name}", kind.summary) for name, kind in kinds.items()]))
        say(f"\nN-gram models\n{facts([(f'  {NGRAMS}', 'Kneser-Ney models, which are rows.')])}")
        for registry in _registries():
            for reason in registry.broken().values():
                warn(reason)
        return
    for name in names:
        known = [(title, kinds[name]) for title, kinds in groups.items() if name in kinds]
        if not known:
            from hstree._options import suggestion
            from hstree.errors import OptionError

            hint = suggestion(name, completions.all_names())
            raise OptionError(f"there is no {name!r}; {hint}`hstree methods` lists all")
        for title, kind in known:
            say(_description(title, kind))


def _registries() -> list[Any]:
    from hstree.builders.registry import BUILDERS
    from hstree.layers import LAYERS
    from hstree.models import MODELS

    return [BUILDERS, LAYERS, MODELS]


def _groups() -> dict[str, dict[str, Any]]:
    """Return the records of each kind by name, under the titles of the kinds."""
    builders, layers, models = (registry.all() for registry in _registries())
    return {"Builders of trees": builders, "Output layers": layers, "Models (--model)": models}


def _description(title: str, kind: Any) -> RenderableType:
    """Return the summary, the source and the options of one record."""
    from hstree.data.vocabulary import Vocabulary
    from hstree.tree import Tree

    takes = getattr(kind, "takes_text", "")
    if not takes and hasattr(kind, "takes"):
        takes = {Tree: "a tree", Vocabulary: "the words of a corpus"}[kind.takes]
    provider = "" if kind.package == "hstree" else f", from {kind.package}"
    heading = Text.assemble((kind.name, "bold"), f"  {title}{provider}")
    lines: list[RenderableType] = [heading, Padding(Text(kind.summary), (0, 0, 0, 2))]
    if takes:
        lines.append(Padding(f"Takes {takes}.", (0, 0, 0, 2)))
    if source := getattr(kind, "references", ""):
        lines.append(Padding(Text(f"Source: {source}"), (0, 0, 0, 2)))
    for option in kind.options:
        lines.append(Padding(Text(_usage(option)), (0, 0, 0, 4)))
        lines.append(Padding(Text(option.help), (0, 0, 0, 8)))
    return Group(*lines, "")


def _usage(option: Option) -> str:
    """Return how an option is typed: with its default, and what it may be."""
    return f"{option.name}={option.spelled(option.default)}  ({option.expected})"
