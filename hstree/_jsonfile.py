"""Figures as a JSON file: valid JSON whatever the figures are, and never half a file."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from hstree._files import replacing

#: How deep lists and objects are nested in each other at the most, so that what goes through
#: them by recursion, Python's own `repr` and `json` too, always comes to an end.
DEEPEST = 100


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write an object of figures.

    Parameters
    ----------
    path : str or path
    document : mapping
        JSON values; a figure that is no finite number becomes null, for JSON has no other word,
        and half a character its escape, for UTF-8 has no bytes for it.

    Raises
    ------
    FileFormatError
        When the file cannot be written.
    """
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as file:
        file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def nested_too_deep(value: Any) -> bool:
    """Return whether lists and objects are nested more than `DEEPEST` deep in a JSON value."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [outer for outer in level if isinstance(outer, Mapping | list | tuple)]
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
    return True


def _finite(value: Any) -> Any:
    """Return JSON values with None for every NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
