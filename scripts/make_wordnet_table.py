"""Make the table of WordNet that comes with hstree, from any folder of its files or NLTK's zip.

    python scripts/make_wordnet_table.py /usr/share/wordnet
    python scripts/make_wordnet_table.py wordnet.zip -o hstree/builders/wordnet/wordnet30.tsv.xz

A table of another WordNet is what `hstree build -m wordnet --source TABLE` takes. It keeps
hypernyms, instance hypernyms, similar-to, adverbs' pertainyms, tag counts and morphy's exception
lists, and leaves out the glosses. The format is in hstree/builders/wordnet/taxonomy.py.

Princeton's archive, NLTK's corpus and Debian's ``wordnet-base`` hold the database files
(``data.noun``, ``index.noun``, ...). Builds of one WordNet differ in their byte offsets, so that an
offset identifies a synset within one folder only; here a synset is the sense of a lemma, and
synsets are ordered by part of speech and sense key: all builds of a WordNet give the same bytes.
Data, index and exception files and ``cntlist.rev`` are read; not glosses, ``lexnames`` or
``index.sense``, which some builds lack. The format is that of wndb(5WN) and senseidx(5WN).
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from hstree._files import read_regular, replacing
from hstree.builders.wordnet.taxonomy import POS, TableSynset, Taxonomy, table_text
from hstree.errors import HstreeError, InputError

TABLE = Path(__file__).parents[1] / "hstree" / "builders" / "wordnet" / "wordnet30.tsv.xz"

#: From the name of a file ("data.noun") to its content; raises InputError if there is none.
ReadFile = Callable[[str], bytes]

_FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_KEY_TYPE = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
#: Pointers to the parents of each kind of synset: is-a, the head of a satellite, the adjective of
#: an adverb.
_UP = {"n": {"@", "@i"}, "v": {"@", "@i"}, "a": set(), "s": {"&"}, "r": {"\\"}}
#: Syntactic position of an adjective: "galore(ip)". Some keys of cntlist.rev have it, too.
_MARKER = re.compile(r"\((?:a|p|ip)\)")

_T = TypeVar("_T")
_Offset = tuple[str, int]  # one of `POS`, byte offset in its data file


def folder_files(folder: Path) -> ReadFile:
    """Return a reader of the files of a folder; InputError if there is no such folder."""
    if not folder.is_dir():
        raise InputError(
            f"no folder {folder} to read WordNet from; give one that has data.noun, index.noun, ..."
        )

    def read(name: str) -> bytes:
        parts = "data, index and exception files for each part of speech, and cntlist.rev"
        return read_regular(folder / name, remedy=f"a WordNet folder has {parts}")

    return read


def zip_files(path: Path) -> ReadFile:
    """Return a reader of the files of NLTK's zip."""

    def read(name: str) -> bytes:
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.read(f"wordnet/{name}")
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"cannot read wordnet/{name} in {path}: {error}") from error

    return read


@dataclass(frozen=True)
class _Synset:
    kind: str
    words: list[tuple[str, str]]  # lemma, lexicographer id
    lex_file: str
    up: list[tuple[str, _Offset]]  # pointer symbol, target


def read_database(read: ReadFile) -> str:
    """Read the database files of one WordNet and return the text of its taxonomy.

    Two builds of the same WordNet give the same text. About 5 s for WordNet 3.0. Raises InputError
    when a file is missing or not of the format.
    """
    synsets = {
        (pos, offset): synset
        for pos in POS
        for offset, synset in _parsed(read, f"data.{_FILES[pos]}", _data_line)
    }
    if not synsets:
        raise InputError(
            "the WordNet data files hold no synset; take the files of a release, unpacked"
        )
    senses = {pos: dict(_parsed(read, f"index.{_FILES[pos]}", _index_line)) for pos in POS}
    counts = dict(_parsed(read, "cntlist.rev", _count_line))
    forms = {pos: dict(_parsed(read, f"{_FILES[pos]}.exc", _exception_line)) for pos in POS}
    try:
        for pos, of_pos in senses.items():
            for offset in chain.from_iterable(of_pos.values()):
                synsets[pos, offset]  # KeyError for one that is not in the data
        keys = {at: _sense_keys(synset, synsets) for at, synset in synsets.items()}
        order = sorted(synsets, key=lambda at: (POS.index(at[0]), keys[at][0]))
        number = {at: i for i, at in enumerate(order)}
        rows = [
            TableSynset(
                kind=synsets[at].kind,
                parents=sorted((number[up], symbol) for symbol, up in synsets[at].up),
                senses=_senses(synsets[at], keys[at], at[1], senses[at[0]], counts),
            )
            for at in order
        ]
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            f"the WordNet files do not fit together (nothing at {error}); "
            "take all of them from one release"
        ) from error
    return table_text(rows, forms, version=_version(read("data.noun")))


def _parsed(read: ReadFile, name: str, parse: Callable[[list[str]], _T]) -> Iterator[_T]:
    """Parse the lines of a file, without its notice, whose lines begin with a space."""
    for number, line in enumerate(read(name).decode("utf-8", "replace").split("\n"), start=1):
        if not line.strip() or line[0] == " ":
            continue
        try:
            yield parse(line.partition(" | ")[0].split())
        except (KeyError, ValueError, IndexError) as error:
            raise InputError(
                f"{name}, line {number}: not a line of a WordNet database ({line[:40]!r})"
            ) from error


def _data_line(field: list[str]) -> tuple[int, _Synset]:
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
    return int(field[0]), _Synset(kind, words, field[1], sorted(up))


def _index_line(field: list[str]) -> tuple[str, list[int]]:
    return field[0], [int(offset) for offset in field[-int(field[2]) :]]


def _count_line(field: list[str]) -> tuple[str, int]:
    key, _, count = field
    return _MARKER.sub("", key), int(count)


def _exception_line(field: list[str]) -> tuple[str, list[str]]:
    return field[0], field[1:]


def _sense_keys(synset: _Synset, synsets: dict[_Offset, _Synset]) -> list[str]:
    """Return the sense key of each word of a synset; the first one names the synset."""
    head = ":".join(synsets[synset.up[0][1]].words[0]) if synset.kind == "s" else ":"
    middle = f"%{_KEY_TYPE[synset.kind]}:{synset.lex_file}:"
    return [f"{lemma}{middle}{lex_id}:{head}" for lemma, lex_id in synset.words]


def _senses(
    synset: _Synset,
    keys: list[str],
    offset: int,
    senses: dict[str, list[int]],
    counts: dict[str, int],
) -> dict[str, tuple[int, int]]:
    """Return the sense number and tag count of each lemma; counts of spellings by case add up."""
    by_lemma: dict[str, tuple[int, int]] = {}
    for (lemma, _), key in zip(synset.words, keys, strict=True):
        sense = senses[lemma].index(offset) + 1
        by_lemma[lemma] = (sense, by_lemma.get(lemma, (0, 0))[1] + counts.get(key, 0))
    return by_lemma


def _version(data: bytes) -> str:
    match = re.search(rb"WordNet (\S+) Copyright", data[:4096])
    return match[1].decode("ascii", "replace") if match else "unknown"


def main() -> None:
    """Read WordNet, check the table by making a taxonomy of it, and write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wordnet", type=Path, help="a folder with data.noun, ..., or NLTK's zip")
    parser.add_argument("-o", "--output", type=Path, default=TABLE, help=f"by default {TABLE.name}")
    given = parser.parse_args()
    try:
        is_zip = given.wordnet.suffix == ".zip"
        text = read_database(zip_files(given.wordnet) if is_zip else folder_files(given.wordnet))
        taxonomy = Taxonomy(text)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        with replacing(given.output) as file:
            file.write(packed)
    except HstreeError as error:
        sys.exit(f"error: {error}")
    print(f"WordNet {taxonomy.version}: {len(taxonomy):,} synsets, {len(packed):,} bytes")
    print(f"sha256 {hashlib.sha256(packed).hexdigest()}  {given.output.name}")


if __name__ == "__main__":
    main()
