r"""Provenance: the texts, and their lines, that a file's content was made from.

A record is a list of objects ``{"lines": [first, stop], "name": ..., "sha256": ...}``: the sha256
of the whole uncompressed text, the first line, counted from 0, and the one after the last. It is
collected from whatever says what something was made from (`texts`), written as the first line of
vocabulary and labels files (`header`, `parse_header`) and compared with a test part (`shared`).

That first line is ``# hstree<TAB>{...}``, a JSON object. It is never a word: the files' lines are
``word`` or ``word<TAB>count``, and a count is digits.
"""

from __future__ import annotations

import json
from typing import Any

from hstree.errors import InputError

Text = dict[str, Any]

_MARK = "# hstree\t{"

#: Characters of the longest first line that is read as a record.
LONGEST_HEADER = 1 << 20


def texts(record: object) -> list[Text]:
    """List the texts and lines that a record names, at any depth.

    Parameters
    ----------
    record : object
        JSON values, such as a tree's meta["input"]. Every object in it that has a ``sha256`` and
        two ``lines`` is a text; anything else is looked through.

    Returns
    -------
    list of dict
        With ``lines``, ``name`` and ``sha256``, by name and line; lines of one text that overlap
        or follow each other are one entry. `texts` of the result is the result.

    Examples
    --------
    >>> corpus = {"kind": "corpus", "name": "c.txt", "sha256": "ab", "lines": [0, 8]}
    >>> texts([corpus, {"vocabulary": {**corpus, "lines": [8, 10]}}])
    [{'lines': [0, 10], 'name': 'c.txt', 'sha256': 'ab'}]
    """
    found: set[tuple[str, str, int, int]] = set()
    to_visit = [record]
    while to_visit:
        value = to_visit.pop()
        if isinstance(value, list | tuple):
            to_visit += value
        elif isinstance(value, dict):
            to_visit += value.values()
            match value:
                case {"sha256": str(sha256), "lines": [int(start), int(stop)]} if 0 <= start < stop:
                    found.add((_name(value.get("name")), sha256, start, stop))
    merged: list[Text] = []
    for name, sha256, start, stop in sorted(found):
        last = merged[-1] if merged else {}
        if (last.get("name"), last.get("sha256")) == (name, sha256) and start <= last["lines"][1]:
            last["lines"][1] = max(stop, last["lines"][1])
        else:
            merged.append({"lines": [start, stop], "name": name, "sha256": sha256})
    return merged


def shared(record: object, part: object) -> str | None:
    """Name the lines that two records share, None where they share none.

    Examples
    --------
    >>> whole = {"name": "c.txt", "sha256": "ab", "lines": [0, 10]}
    >>> shared(whole, {**whole, "lines": [8, 12]})
    'lines 9 to 10 of c.txt'
    """
    found = [
        f"{_lines(start, stop)} of {own['name']}"
        for own in texts(part)
        for other in texts(record)
        if own["sha256"] == other["sha256"]
        and (start := max(own["lines"][0], other["lines"][0]))
        < (stop := min(own["lines"][1], other["lines"][1]))
    ]
    return " and ".join(dict.fromkeys(found)) or None


def header(**said: object) -> str:
    """Return the first line of a file that says where its content comes from."""
    return f"{_MARK[:-1]}{json.dumps(said, sort_keys=True)}\n"


def parse_header(line: str, name: str) -> dict[str, Any] | None:
    """Read the first line of a file.

    Parameters
    ----------
    line : str
    name : str
        The file's, for the message.

    Returns
    -------
    dict or None
        What `header` was given, with a list for ``texts``; None where the line is something else.

    Raises
    ------
    InputError
        When it begins as such a line and is damaged.
    """
    if not line.startswith(_MARK):
        return None
    try:
        said = json.loads(line[len(_MARK) - 1 :]) if len(line) <= LONGEST_HEADER else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or said.setdefault("texts", []) != texts(said["texts"]):
        raise InputError(
            f"{name}, line 1: the record of what the file was made from is damaged; write the "
            "file again, or delete the line"
        )
    return said


def _lines(start: int, stop: int) -> str:
    return f"lines {start + 1} to {stop}" if stop - start > 1 else f"line {stop}"


def _name(name: object) -> str:
    """Return a text's name as characters that UTF-8 can write."""
    shown = name if isinstance(name, str) else "a text"
    return shown.encode("utf-8", "backslashreplace").decode()
