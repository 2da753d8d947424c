"""Names that a shell completes: methods and output layers."""

from __future__ import annotations


def methods() -> list[str]:
    """Return the names of methods."""
    from hstree.builders.registry import BUILDERS

    return BUILDERS.names()


def layers() -> list[str]:
    """Return the names of output layers."""
    from hstree.layers.registry import LAYERS

    return LAYERS.names()


def rows() -> list[str]:
    """Return the names of methods and output layers, each once."""
    return list(dict.fromkeys([*methods(), *layers()]))
