"""WordNet's own database files (``data.noun``, ``index.noun``, ...) as the text of our table.

Princeton's archive, NLTK's corpus and Debian's ``wordnet-base`` hold these files. Builds of one
WordNet differ in their byte offsets, so that an offset is a name within one folder only: here a
synset is the sense of a lemma, and synsets are ordered by part of speech and sense key. What the
table looks like, is for `table`.

Read are data, index and exception files and ``cntlist.rev``; no glosses, ``lexnames`` or
``index.sense``, which some builds lack. The format is that of wndb(5WN) and senseidx(5WN).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from hstree.builders.wordnet.table import POS, TableSynset, table_text
from hstree.errors import InputError

#: From the name of a file ("data.noun") to its content; raises InputError where there is none.
ReadFile = Callable[[str], bytes]

_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_KEY_TYPE = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
#: The pointers that lead up from each kind of synset: is-a, a satellite's head, an adverb's
#: adjective.
_UP = {"n": {"@", "@i"}, "v": {"@", "@i"}, "a": set(), "s": {"&"}, "r": {"\\"}}
#: Where an adjective may stand: "galore(ip)". Some keys of cntlist.rev have it, too.
_MARKER = re.compile(r"\((?:a|p|ip)\)")

_T = TypeVar("_T")
_Place = tuple[str, int]  # one of `POS`, byte offset in its data file


@dataclass(frozen=True)
class _Synset:
    kind: str
    words: list[tuple[str, str]]  # lemma, lexicographer id
    lex_file: str
    up: list[tuple[str, _Place]]  # pointer symbol, target


def read_database(read: ReadFile) -> str:
    """Read the files of one WordNet and return the text of its table.

    Parameters
    ----------
    read : callable
        From a file's name to its bytes.

    Raises
    ------
    InputError
        When a file is missing or is not what wndb(5WN) describes; the message names the line.

    Notes
    -----
    Two builds of the same WordNet give the same text. About 5 s for WordNet 3.0.
    """
    synsets = {
        place: synset
        for pos in POS
        for place, synset in _parsed(read, f"data.{_FILES[pos]}", _data_line, pos)
    }
    if not synsets:
        raise InputError(
            "this WordNet's data files hold no synset; take the files of a release, unpacked"
        )
    senses = {pos: dict(_parsed(read, f"index.{_FILES[pos]}", _index_line, pos)) for pos in POS}
    counts = dict(_parsed(read, "cntlist.rev", _count_line, ""))
    forms = {pos: dict(_parsed(read, f"{_FILES[pos]}.exc", _exception_line, pos)) for pos in POS}
    try:
        _check_index(senses, synsets)
        keys = {place: _sense_keys(synset, synsets) for place, synset in synsets.items()}
        order = sorted(synsets, key=lambda place: (POS.index(place[0]), keys[place][0]))
        number = {place: i for i, place in enumerate(order)}
        rows = [
            TableSynset(
                kind=synsets[place].kind,
                parents=sorted((number[up], symbol) for symbol, up in synsets[place].up),
                senses=_senses(place, synsets[place], keys[place], senses, counts),
            )
            for place in order
        ]
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            f"this WordNet's files do not fit together (nothing at {error}); "
            "take all of them from one release"
        ) from error
    return table_text(rows, forms, version=_version(read("data.noun")))


def _parsed(
    read: ReadFile, name: str, parse: Callable[[list[str], str], _T], pos: str
) -> Iterator[_T]:
    """Parse the lines of a file that are not part of its notice, which begin with a space."""
    for number, line in enumerate(read(name).decode("utf-8", "replace").split("\n"), start=1):
        if not line.strip() or line[0] == " ":
            continue
        try:
            yield parse(line.partition(" | ")[0].split(), pos)
        except (ValueError, IndexError) as error:
            raise InputError(
                f"{name}, line {number}: not a line of a WordNet database ({line[:40]!r})"
            ) from error


def _data_line(field: list[str], pos: str) -> tuple[_Place, _Synset]:
    n_words = int(field[3], 16)
    word = field[4 : 4 + 2 * n_words]
    words = [
        (_MARKER.sub("", lemma).lower(), f"{int(lex_id, 16):02d}")
        for lemma, lex_id in zip(word[::2], word[1::2], strict=True)
    ]
    kind, at = field[2], 5 + 2 * n_words
    pointer = field[at : at + 4 * int(field[at - 1])]
    up = {
        (symbol, ("a" if target == "s" else target, int(offset)))
        for symbol, offset, target in zip(pointer[::4], pointer[1::4], pointer[2::4], strict=True)
        if symbol in _UP[kind] and (kind != "r" or target in "as")
    }
    return (pos, int(field[0])), _Synset(kind, words, field[1], sorted(up))


def _index_line(field: list[str], pos: str) -> tuple[str, list[int]]:
    n_senses = int(field[2])
    return field[0], [int(offset) for offset in field[-n_senses:]]


def _count_line(field: list[str], pos: str) -> tuple[str, int]:
    key, _, count = field
    return _MARKER.sub("", key), int(count)


def _exception_line(field: list[str], pos: str) -> tuple[str, list[str]]:
    form, *lemmas = field
    return form, lemmas


def _check_index(senses: dict[str, dict[str, list[int]]], synsets: dict[_Place, _Synset]) -> None:
    """Raise KeyError where an index names a synset that is not in the data."""
    for pos, of_pos in senses.items():
        for places in of_pos.values():
            for offset in places:
                synsets[pos, offset]


def _sense_keys(synset: _Synset, synsets: dict[_Place, _Synset]) -> list[str]:
    """Return the sense key of each word of a synset; that of the first one names the synset."""
    head = ":"
    if synset.kind == "s":
        head = ":".join(synsets[synset.up[0][1]].words[0])
    middle = f"%{_KEY_TYPE[synset.kind]}:{synset.lex_file}:"
    return [f"{lemma}{middle}{lex_id}:{head}" for lemma, lex_id in synset.words]


def _senses(
    place: _Place,
    synset: _Synset,
    keys: list[str],
    senses: dict[str, dict[str, list[int]]],
    counts: dict[str, int],
) -> dict[str, tuple[int, int]]:
    """Return each lemma's sense number and tag count; spellings that differ in case add up."""
    pos, offset = place
    found: dict[str, tuple[int, int]] = {}
    for (lemma, _), key in zip(synset.words, keys, strict=True):
        sense = senses[pos][lemma].index(offset) + 1
        found[lemma] = (sense, found.get(lemma, (0, 0))[1] + counts.get(key, 0))
    return found


def _version(data: bytes) -> str:
    found = re.search(rb"WordNet (\S+) Copyright", data[:4096])
    return found[1].decode("ascii", "replace") if found else "unknown"
