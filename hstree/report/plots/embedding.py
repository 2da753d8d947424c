"""A plot as JSON for the page."""

from __future__ import annotations

from typing import Any

from bokeh.embed import json_item
from bokeh.plotting import figure


def embedded(drawn: figure) -> dict[str, Any]:
    """Return what ``Bokeh.embed.embed_item`` takes, the same for the same plot.

    Bokeh numbers its objects through a whole process; here each plot begins anew.
    """
    found: dict[str, Any] = _renumbered(json_item(drawn), {})
    return found


def _renumbered(value: Any, numbers: dict[str, str]) -> Any:
    """Return the same with the ids of objects, and only these, counted from the first one met."""
    if isinstance(value, list):
        return [_renumbered(inner, numbers) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: numbers.setdefault(inner, f"o{len(numbers)}")
        if key in ("id", "root_id") and isinstance(inner, str)
        else _renumbered(inner, numbers)
        for key, inner in value.items()
    }
