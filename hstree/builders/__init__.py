"""Tree-building methods, one per file.

A builder is a plain function that takes one main input and returns a `Tree`. The module `builder`
reads the input and the options from its signature and docstring (with `hstree._options`).
`registry` finds and runs builders. An illegal value of an option raises `OptionError`. `shared` has
the routines that several builders use.
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
