"""Tree-building methods, one per file.

A builder is a plain function from one main input to a `Tree`. Its input and options are read from
its signature and docstring (`builder`, `hstree._options`); `registry` finds and runs it. An illegal
value of an option is an `OptionError`. Routines that several builders use are in `shared`.
"""

from hstree._options import Option, checked_options
from hstree.builders.builder import Builder, BuilderInput, open_input
from hstree.builders.registry import broken_builders, build, builder, builders
from hstree.builders.shared.join import join_under_root

__all__ = [
    "Builder",
    "BuilderInput",
    "Option",
    "broken_builders",
    "build",
    "builder",
    "builders",
    "checked_options",
    "join_under_root",
    "open_input",
]
