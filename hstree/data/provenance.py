"""Provenance: records of the texts and lines from which an object was made.

A record is a list of objects ``{"lines": [first, stop], "name": ..., "sha256": ...}``: the first
line, counted from 0, the line after the last, and the hash of the whole uncompressed text. Tree
files, models, vocabularies and vectors contain such records, which `word_files` writes in the first
line of its files. A test split is compared with them.
"""

from typing import Any

Text = dict[str, Any]


def collect_sources(record: object) -> list[Text]:
    """List the texts and lines in a record, at any depth.

    A record consists of JSON values, such as meta["input"] of a tree. Every object in it with a
    ``sha256`` and two ``lines`` is a text. The result has the ``lines``, ``name`` and ``sha256`` of
    each text, sorted by name and line. Overlapping or adjacent lines of a text are merged. The
    function is idempotent.

    Examples
    --------
    >>> corpus = {"kind": "corpus", "name": "c.txt", "sha256": "ab", "lines": [0, 8]}
    >>> collect_sources([corpus, {"vocabulary": {**corpus, "lines": [8, 10]}}])
    [{'lines': [0, 10], 'name': 'c.txt', 'sha256': 'ab'}]
    """
    # Name, hash, first line and the line after the last of each object
    parts: set[tuple[str, str, int, int]] = set()
    stack = [record]
    while stack:
        value = stack.pop()
        if isinstance(value, list | tuple):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
            match value:
                case {"sha256": str(sha256), "lines": [int(start), int(stop)]} if 0 <= start < stop:
                    name = value.get("name") if isinstance(value.get("name"), str) else "a text"
                    # Escape characters that UTF-8 cannot encode
                    name = str(name).encode("utf-8", "backslashreplace").decode()
                    parts.add((name, sha256, start, stop))
    # Merge overlapping and adjacent lines, which are neighbours after sorting
    texts: list[Text] = []
    for name, sha256, start, stop in sorted(parts):
        last = texts[-1] if texts else {}
        if (last.get("name"), last.get("sha256")) == (name, sha256) and start <= last["lines"][1]:
            last["lines"][1] = max(stop, last["lines"][1])
        else:
            texts.append({"lines": [start, stop], "name": name, "sha256": sha256})
    return texts
