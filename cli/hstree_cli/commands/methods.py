"""`hstree methods`: the ways to build a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hstree_cli.examples import examples

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hstree.builders import Builder


@examples("hstree methods", "hstree build --method huffman --help")
def methods() -> None:
    """List every method, the input it takes, and its options with their defaults."""
    from hstree.builders import broken_builders, builders
    from hstree_cli.console import say
    from hstree_cli.messages import warn

    for builder in builders().values():
        say(_described(builder))
    for reason in broken_builders().values():
        warn(reason)


def _described(builder: Builder) -> RenderableType:
    """Return a method with its options, each with its default and what it does."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from hstree_cli.method_options import flags, shown_default

    provider = "" if builder.package == "hstree" else f", from {builder.package}"
    heading = Text.assemble((builder.name, "bold"), f"  takes {builder.takes_text}{provider}")
    parts: list[RenderableType] = [heading, Padding(Text(builder.summary), (0, 0, 0, 2))]
    for option in builder.options:
        choices = "|".join(map(str, option.choices))
        spelt = " ".join(filter(None, [flags(option), choices]))
        parts.append(Padding(Text(f"{spelt}  [{shown_default(option)}]"), (0, 0, 0, 4)))
        parts.append(Padding(Text(option.help), (0, 0, 0, 8)))
    return Group(*parts, "")
