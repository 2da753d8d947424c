"""What a comparison leaves: ``results.json``, checked when it is read, and ``results.csv``.

``docs/results-format.md`` describes both. Nothing here knows how the figures came about.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from hstree._files import DEEPEST, nested_too_deep, read_json, replacing, write_json
from hstree.errors import FileFormatError

FORMAT, VERSION = "hstree results", 2
JSON, CSV = "results.json", "results.csv"

#: A kind of value, the keys of an object and theirs, or [what a list holds].
_Kind = type | tuple[type, ...] | Mapping[str, "_Kind"] | list["_Kind"]

_NUMBER = (int, float, type(None))
_PARTS = ("train", "valid", "test")
_SPREAD: dict[str, _Kind] = {"mean": _NUMBER, "sd": _NUMBER, "n": int}
_KEYS: dict[str, _Kind] = {
    "corpus": dict.fromkeys(_PARTS, dict),
    "tokens": dict.fromkeys(_PARTS, int),
    "oov": dict.fromkeys(_PARTS, int),
    "vocabulary": {"size": int, "sha256": str},
    "options": {"seeds": [int], "dim": int, "epochs": int, "batch_size": int},
    "versions": dict,
    "machine": {"cores": int, "system": str, "processor": str},
    "unigram": _NUMBER,
    "bands": list,
    "choice": (dict, type(None)),
    "rows": list,
}
_CHOICE: dict[str, _Kind] = {
    "by": str,
    "among": int,
    "best": str,
    "within": (int, float),
    "fastest": str,
}
_BAND: dict[str, _Kind] = {"least": _NUMBER, "most": _NUMBER, "words": int, "tokens": int}
_ROW: dict[str, _Kind] = {
    "name": str,
    "kind": str,
    "method": (str, type(None)),
    "options": dict,
    "tree_file": (str, type(None)),
    "tree": (dict, type(None)),
    "code_lengths": (list, type(None)),
    "parameters": (int, type(None)),
    "in_wordnet": _NUMBER,
    "runs": list,
    "perplexity": dict.fromkeys(("valid", "test", "test_without_oov"), _SPREAD),
    "at_epoch_limit": int,
    "to_flat": (dict, type(None)),
    "seconds_per_epoch": _NUMBER,
    "tokens_per_second": _NUMBER,
    "speed_up": _NUMBER,
    "from_text": (dict, type(None)),
    "by_band": (list, type(None)),
    "seen": (str, type(None)),
}
_TREE: dict[str, _Kind] = {
    "sha256": str,
    "nodes": int,
    "codes_per_label": _NUMBER,
    "code_length": {"uniform": _NUMBER, "weighted": _NUMBER},
    "scores_per_target": _NUMBER,
}
_TO_FLAT: dict[str, _Kind] = {
    **dict.fromkeys(("ratio", "low", "high", "p"), _NUMBER),
    "blocks": int,
}
_FROM_TEXT: dict[str, _Kind] = dict.fromkeys(
    ("seconds", "vectors", "tree", "training", "speed_up"), _NUMBER
)
_KINDS = ("tree", "baseline")

_FIGURE = (int, float)
#: What is known of a part's text; each key may be missing.
_SOURCE: dict[str, _Kind] = {
    "name": (str, type(None)),
    "sha256": (str, type(None)),
    "lower": (bool, type(None)),
    "lines": (list, type(None)),
}
#: The options that one kind of model has and another does not.
_WORD2VEC: dict[str, _Kind] = {"window": int, "learning_rate": _FIGURE, "sample": _FIGURE}
_OF_MODEL: dict[str, dict[str, _Kind]] = {
    "lbl": {
        "context": int,
        "full": bool,
        "learning_rate": _FIGURE,
        "dropout": _FIGURE,
        "weight_decay": _FIGURE,
    },
    "cbow": _WORD2VEC,
    "skipgram": _WORD2VEC,
}
_CODE_LENGTH: dict[str, _Kind] = {"length": int, "codes": int, "tokens": _FIGURE}
_EPOCH: dict[str, _Kind] = {"epoch": int, "seconds": _FIGURE, "valid": _NUMBER}

#: Bounds that no figure comes near, so that none overflows on the page.
_SMALLEST, _LARGEST, _LARGEST_INT = 1e-100, 1e100, 2**53
#: Characters that no page, or no path, can hold.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


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
    document = read_json(place, "make it with `hstree compare`")
    if nested_too_deep(document):
        raise FileFormatError(f"{place} is nested more than {DEEPEST} deep; compare again")
    if document.get("format") != FORMAT:
        raise FileFormatError(f"{place} is not what `hstree compare` leaves")
    if (version := document.get("version")) != VERSION:
        raise FileFormatError(
            f"{place}: version {brief(version)}; this hstree reads version {VERSION}; compare again"
        )
    _check(document, _KEYS, f"{place}")
    _check_conditions(document, f"{place}")
    for number, band in enumerate(document["bands"]):
        _check(band, _BAND, f"{place}: band {number}")
    for number, row in enumerate(document["rows"]):
        _check_row(row, len(document["bands"]), f"{place}: row {number}")
        _check_figures(row, f"{place}: row {number}")
    if len({row["name"] for row in document["rows"]}) < len(document["rows"]):
        raise FileFormatError(f"{place}: two rows have the same name; compare again")
    _check_choice(document, f"{place}")
    return document


def _check_conditions(document: Mapping[str, Any], what: str) -> None:
    """Check the texts, the options of the model and the versions."""
    for part in _PARTS:
        text, source = f'{what}: "corpus": "{part}"', document["corpus"][part]
        _check(dict.fromkeys(_SOURCE) | source, _SOURCE, text)
        if (lines := source.get("lines")) is not None:
            _check(lines, [int], f'{text}: "lines"')
            if len(lines) != 2:
                raise FileFormatError(f'{text}: "lines" wants two numbers; compare again')
    options = document["options"]
    model = options.get("model", "lbl")
    if not isinstance(model, str) or model not in _OF_MODEL:
        known = ", ".join(_OF_MODEL)
        raise FileFormatError(f'{what}: "options": "model" is none of {known}; compare again')
    _check(options, _OF_MODEL[model], f'{what}: "options"')
    for version in document["versions"].items():
        _check(list(version), [str], f'{what}: "versions"')


def read_before(results: Mapping[str, Any]) -> list[str]:
    """Say which rows had read test lines before, each sentence once; [] where none is known to."""
    by_sentence: dict[str, list[str]] = {}
    for row in results["rows"]:
        if row["seen"] is not None:
            by_sentence.setdefault(row["seen"], []).append(row["name"])
    return [f"{', '.join(names)}: {said}" for said, names in by_sentence.items()]


def _check_row(row: Any, n_bands: int, what: str) -> None:
    _check(row, _ROW, what)
    is_tree = row["kind"] == "tree"
    if row["kind"] not in _KINDS or any(
        is_tree != (row[key] is not None) for key in ("tree", "tree_file")
    ):
        raise FileFormatError(f"{what} is neither a tree's nor a baseline's; compare again")
    if row["tree"] is not None:
        _check(row["tree"], _TREE, f"{what}: its tree")
    if row["to_flat"] is not None:
        _check(row["to_flat"], _TO_FLAT, f"{what}: its ratio to flat")
    if row["from_text"] is not None:
        _check(row["from_text"], _FROM_TEXT, f"{what}: its seconds from the text")
    if row["by_band"] and len(row["by_band"]) < n_bands:
        raise FileFormatError(
            f"{what} has perplexities for {len(row['by_band'])} of the {n_bands} bands; "
            "compare again"
        )


def _check_figures(row: Mapping[str, Any], what: str) -> None:
    """Check the lists of a row, and that what is divided by, or drawn as a log, is not zero."""
    _check(list(row["options"]), [str], f'{what}: "options"')
    _check(row["code_lengths"] or [], [_CODE_LENGTH], f'{what}: "code_lengths"')
    _check(row["by_band"] or [], [_NUMBER], f'{what}: "by_band"')
    epochs: list[Mapping[str, Any]] = []
    for run in row["runs"]:
        _check(run, {}, f'{what}: "runs"')
        _check(run.get("seed"), (int, type(None)), f'{what}: "runs": "seed"')
        _check(run.get("epochs") or [], [_EPOCH], f'{what}: "runs": "epochs"')
        epochs += run.get("epochs") or []
    ratio = row["to_flat"] or {}
    bounds = [ratio.get(key) for key in ("low", "high")]
    if ratio and (ratio["ratio"] is None or bounds.count(None) == 1):
        raise FileFormatError(f"{what}: its ratio to flat lacks a figure; compare again")
    spreads = {part: row["perplexity"][part] for part in ("valid", "test", "test_without_oov")}
    for part, spread in spreads.items():
        if spread["sd"] is not None and (spread["mean"] is None or spread["n"] < 2):
            raise FileFormatError(f'{what}: "{part}" has the spread of a single perplexity')
    positive = [
        *(spread["mean"] for spread in spreads.values()),
        ratio.get("ratio"),
        *bounds,
        *(epoch[key] for epoch in epochs for key in ("seconds", "valid")),
        *(row["by_band"] or []),
        *(row[key] for key in ("seconds_per_epoch", "tokens_per_second", "speed_up")),
    ]
    if any(figure is not None and figure < _SMALLEST for figure in positive):
        raise FileFormatError(f"{what} has a perplexity, ratio, time or speed of 0; compare again")


def _check_choice(document: Mapping[str, Any], what: str) -> None:
    """Refuse a choice of no row; where there is a tree, one is chosen."""
    chosen, trees = document["choice"], [r["name"] for r in document["rows"] if r["tree"]]
    if chosen is None and not trees:
        return
    _check(chosen, _CHOICE, f"{what}: the choice")
    if not {chosen["best"], chosen["fastest"]} <= set(trees):
        raise FileFormatError(f"{what}: the choice is no tree of the table; compare again")


def _check(found: Any, kind: _Kind, what: str) -> None:
    """Refuse a value of another kind, an object without a key, and what no page can show."""
    if isinstance(kind, Mapping):
        if not isinstance(found, dict):
            raise FileFormatError(f"{what} is no object; compare again")
        for key, inner in kind.items():
            if key not in found:
                raise FileFormatError(f'{what} has no "{key}"; compare again')
            _check(found[key], inner, f'{what}: "{key}"')
        return
    if isinstance(kind, list):
        _check(found, list, what)
        for place, value in enumerate(found):
            _check(value, kind[0], f"{what}[{place}]")
        return
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
        raise FileFormatError(f"{what} holds a {type(found).__name__}; compare again")
    largest = _LARGEST if isinstance(found, float) else _LARGEST_INT
    if isinstance(found, int | float) and not 0 <= found <= largest:
        raise FileFormatError(f"{what} is {brief(found)}, out of range; compare again")
    if isinstance(found, str) and _UNWRITABLE.search(found):
        raise FileFormatError(f"{what} is {brief(found)}, which no page can hold; compare again")


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's figures as one line."""
    tree, ratio, perplexity = row["tree"] or {}, row["to_flat"] or {}, row["perplexity"]
    from_text = row["from_text"] or {}
    return {
        "name": row["name"],
        "kind": row["kind"],
        "method": row["method"],
        "codes_per_label": tree.get("codes_per_label"),
        "code_length": tree.get("code_length", {}).get("weighted"),
        "scores_per_target": tree.get("scores_per_target"),
        "depth": tree.get("depth"),
        "parameters": row["parameters"],
        "in_wordnet": row["in_wordnet"],
        "seeds": len(row["runs"]),
        "at_epoch_limit": row["at_epoch_limit"],
        **{part: perplexity[part]["mean"] for part in ("valid", "test", "test_without_oov")},
        **{f"{part}_sd": perplexity[part]["sd"] for part in ("valid", "test")},
        "to_flat": ratio.get("ratio"),
        "to_flat_low": ratio.get("low"),
        "to_flat_high": ratio.get("high"),
        "to_flat_p": ratio.get("p"),
        "to_flat_blocks": ratio.get("blocks"),
        "seconds_per_epoch": row["seconds_per_epoch"],
        "tokens_per_second": row["tokens_per_second"],
        "speed_up": row["speed_up"],
        "seconds_from_text": from_text.get("seconds"),
        "speed_up_from_text": from_text.get("speed_up"),
        "seen": row["seen"],
    }
