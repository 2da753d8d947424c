"""`hstree methods`: the methods to build a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hstree_cli.options import examples
from hstree_cli.registered_options import flags, shown_default
from hstree_cli.terminal import say, warn

if TYPE_CHECKING:
    from hstree.builders import Builder


@examples("hstree methods", "hstree build --method huffman --help")
def methods() -> None:
    """List every method, the input it takes, and its options with their defaults."""
    from hstree.builders import broken_builders, builders

    for builder in builders().values():
        say(_description(builder))
    for reason in broken_builders().values():
        warn(reason)


def _description(builder: Builder) -> RenderableType:
    """Return a method's summary and its options, each with its default and its help."""
    provider = "" if builder.package == "hstree" else f", from {builder.package}"
    heading = Text.assemble((builder.name, "bold"), f"  takes {builder.takes_text}{provider}")
    lines: list[RenderableType] = [heading, Padding(Text(builder.summary), (0, 0, 0, 2))]
    for option in builder.options:
        choices = "|".join(map(str, option.choices))
        usage = " ".join(filter(None, [flags(option), choices]))
        lines.append(Padding(Text(f"{usage}  [{shown_default(option)}]"), (0, 0, 0, 4)))
        lines.append(Padding(Text(option.help), (0, 0, 0, 8)))
    return Group(*lines, "")
