"""The tree-building strategies, by name: one strategy a file.

A builder is a plain function from one main input to a `Tree`. What it takes and offers is read
from its signature (`shared.signature`); `registry` finds it, checks its options and runs it.
"""

from hstree._options import Option, Range, checked_options
from hstree.builders.registry import broken_builders, build, builder, builders
from hstree.builders.shared.inputs import open_input
from hstree.builders.shared.join import join_under_root
from hstree.builders.shared.signature import Builder

__all__ = [
    "Builder",
    "Option",
    "Range",
    "broken_builders",
    "build",
    "builder",
    "builders",
    "checked_options",
    "join_under_root",
    "open_input",
]
