"""What a comparison leaves: ``results.json``, checked when it is read, and ``results.csv``.

``docs/results-format.md`` describes both. Nothing here knows how the figures came about.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hstree.errors import FileFormatError
from hstree.files import replacing
from hstree.jsonfile import write_json

FORMAT, VERSION = "hstree results", 1
JSON, CSV = "results.json", "results.csv"

_NUMBER = (int, float, type(None))
_KEYS: dict[str, type | tuple[type, ...]] = {
    "corpus": dict,
    "tokens": dict,
    "oov": dict,
    "vocabulary": dict,
    "options": dict,
    "versions": dict,
    "machine": dict,
    "unigram": _NUMBER,
    "bands": list,
    "choice": (dict, type(None)),
    "rows": list,
}
_ROW_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "kind": str,
    "method": (str, type(None)),
    "options": dict,
    "tree_file": (str, type(None)),
    "tree": (dict, type(None)),
    "code_lengths": (list, type(None)),
    "parameters": (int, type(None)),
    "runs": list,
    "perplexity": dict,
    "to_flat": (dict, type(None)),
    "seconds_per_epoch": _NUMBER,
    "tokens_per_second": _NUMBER,
    "speed_up": _NUMBER,
    "by_band": (list, type(None)),
}
_KINDS = ("tree", "baseline")


def save(found: Mapping[str, Any], folder: Path) -> None:
    """Write ``results.json`` and ``results.csv`` into a folder.

    Raises
    ------
    FileFormatError
        When they cannot be written.
    """
    write_json(folder / JSON, {"format": FORMAT, "version": VERSION, **found})
    lines = [_flat(row) for row in found["rows"]]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    with replacing(folder / CSV) as file:
        file.write(text.getvalue().encode())


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the results of a comparison.

    Parameters
    ----------
    path : path
        The comparison's folder, or its ``results.json``.

    Returns
    -------
    dict
        As ``docs/results-format.md`` describes it.

    Raises
    ------
    FileFormatError
        When there are none, or they are damaged or of another version.
    """
    place = Path(path)
    if place.is_dir():
        place = place / JSON
    try:
        document = json.loads(place.read_bytes())
    except OSError as error:
        raise FileFormatError(
            f"cannot read {place}: {error.strerror}; `hstree compare` makes one"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{place} is not JSON: {error}; compare again") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError(f"{place} is not what `hstree compare` leaves")
    if (version := document.get("version")) != VERSION:
        raise FileFormatError(f"{place}: version {version!r}; this hstree reads version {VERSION}")
    _check(document, _KEYS, f"{place}")
    for number, row in enumerate(document["rows"]):
        what = f"{place}: row {number}"
        if not isinstance(row, dict):
            raise FileFormatError(f"{what} is no object")
        _check(row, _ROW_KEYS, what)
        if row["kind"] not in _KINDS or (row["kind"] == "tree") != (row["tree"] is not None):
            raise FileFormatError(f"{what} is neither a tree's nor a baseline's")
    return document


def _check(
    found: Mapping[str, Any], keys: Mapping[str, type | tuple[type, ...]], what: str
) -> None:
    """Refuse an object without one of its keys, or with another kind of value there."""
    for key, kind in keys.items():
        if key not in found:
            raise FileFormatError(f'{what} has no "{key}"; compare again')
        if not isinstance(found[key], kind) or isinstance(found[key], bool):
            raise FileFormatError(f'{what}: "{key}" holds a {type(found[key]).__name__}')


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's figures as one line."""
    tree, ratio, perplexity = row["tree"] or {}, row["to_flat"] or {}, row["perplexity"]
    return {
        "name": row["name"],
        "kind": row["kind"],
        "method": row["method"],
        "codes_per_label": tree.get("codes_per_label"),
        "code_length": tree.get("code_length", {}).get("weighted"),
        "scores_per_target": tree.get("scores_per_target"),
        "depth": tree.get("depth"),
        "parameters": row["parameters"],
        "seeds": len(row["runs"]),
        **{part: perplexity[part]["mean"] for part in ("valid", "test", "test_without_oov")},
        **{f"{part}_sd": perplexity[part]["sd"] for part in ("valid", "test")},
        "to_flat": ratio.get("ratio"),
        "to_flat_low": ratio.get("low"),
        "to_flat_high": ratio.get("high"),
        "to_flat_p": ratio.get("p"),
        "seconds_per_epoch": row["seconds_per_epoch"],
        "tokens_per_second": row["tokens_per_second"],
        "speed_up": row["speed_up"],
    }
