"""Names that a shell completes: builders, output layers, models."""

from __future__ import annotations


def methods() -> list[str]:
    """Return the names of builders."""
    from hstree.builders.registry import BUILDERS

    return BUILDERS.names()


def rows() -> list[str]:
    """Return the names of builders and output layers, and of sets of rows."""
    from hstree.layers.registry import LAYERS

    return list(dict.fromkeys([*methods(), *LAYERS.names(), "kn5", "trees", "approximations"]))


def models() -> list[str]:
    """Return the names of models."""
    from hstree.models import MODELS

    return MODELS.names()


def all_names() -> list[str]:
    """Return every name that `hstree methods` describes."""
    return list(dict.fromkeys([*rows(), *models()]))
