"""`hstree methods` and `hstree layers`: tree builders, output layers, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hstree_cli import completions
from hstree_cli.options import argument, examples
from hstree_cli.registered_options import flags, shown_default, with_flags
from hstree_cli.terminal import say, warn

if TYPE_CHECKING:
    from hstree.builders import Builder
    from hstree.layers.registry import LayerKind


@examples("hstree methods", "hstree build --method huffman --help")
def methods() -> None:
    """List every method, the input it takes, and its options with their defaults."""
    from hstree.builders import broken_builders, builders

    for builder in builders().values():
        say(_description(builder, builder.takes_text))
    for reason in broken_builders().values():
        warn(reason)


@examples(
    "hstree layers",
    "hstree layers adaptive sampled",
    'hstree evaluate --layer "sampled --samples 500" corpus.txt',
)
def layers(
    names: Annotated[
        list[str] | None,
        argument(
            "NAME", "Output layers to describe; all by default.", autocompletion=completions.layers
        ),
    ] = None,
) -> None:
    """List output layers, their sources, and their options with their defaults.

    A layer over a tree is for evaluate, and follows the method that builds the tree
    in compare, survey and recommend: "gmm + ngrams". The others are for all four.
    """
    from hstree.layers import LAYERS
    from hstree.tree import Tree
    from hstree_cli.method_strings import parse_layer

    instead = "`hstree build --method {} --help` describes it"
    kinds = [parse_layer(n, instead)[0] for n in names] if names else LAYERS.all().values()
    for kind in kinds:
        takes = "a tree" if kind.takes is Tree else "the words of a corpus"
        say(_description(kind, takes, kind.references))
    for reason in () if names else LAYERS.broken().values():
        warn(reason)


def _description(kind: Builder | LayerKind, takes: str, source: str = "") -> RenderableType:
    """Return a summary, the source and the options, each with its default and its help."""
    provider = "" if kind.package == "hstree" else f", from {kind.package}"
    heading = Text.assemble((kind.name, "bold"), f"  takes {takes}{provider}")
    lines: list[RenderableType] = [heading, Padding(Text(kind.summary), (0, 0, 0, 2))]
    if source:
        lines.append(Padding(Text(f"Source: {source}"), (0, 0, 0, 2)))
    for option in kind.options:
        choices = "|".join(map(str, option.choices))
        usage = " ".join(filter(None, [flags(option), choices]))
        lines.append(Padding(Text(f"{usage}  [{shown_default(option)}]"), (0, 0, 0, 4)))
        text = Text(with_flags(option.help, kind.options))
        lines.append(Padding(text, (0, 0, 0, 8)))
    return Group(*lines, "")
