"""The taxonomy: WordNet's synsets, what stands above each, and which words mean them.

It is made of a table's text (`table`) and answers for single words (`morphy`, `lookup`). What a
tree makes of it is elsewhere (`hierarchy`).
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np

from hstree._ragged import offsets
from hstree.builders.wordnet.table import FIRST_LINE, POS
from hstree.errors import FileFormatError

#: Part of speech -> lemma -> its senses, (synset, tag count), in the order of their numbers.
Senses = dict[str, dict[str, list[tuple[int, int]]]]


class Taxonomy:
    """The is-a relations and the words of one WordNet.

    Synsets are numbered by part of speech (nouns, verbs, adjectives, adverbs) and, within each, by
    sense key; no byte offset plays a part. Equal texts make equal taxonomies.

    Parameters
    ----------
    text : str
        A table, as `hstree.builders.wordnet.table` describes it.

    Attributes
    ----------
    version : str
        WordNet's own, "3.0".
    names : tuple of str, length S
        ``"dog.n.01"``: a synset's first lemma, its kind (n, v, a, r, or s for a satellite
        adjective) and the number of the sense, as WordNet itself counts the senses of a lemma in
        a part of speech (NLTK 3.10 counts satellites on their own).
    pos : str
        The part of speech of each synset: S letters, n, v, a or r.
    parent_start : int64 array (S + 1,)
    parent : int64 array (E,)
        The synsets above synset i are ``parent[parent_start[i]:parent_start[i + 1]]``, ascending:
        hypernyms and instance hypernyms, the head of a satellite, the adjectives of an adverb.
    senses : dict
        Part of speech -> lower-case lemma, with ``_`` for a space -> list of (synset, tag count).
    exceptions : dict
        Part of speech -> irregular form -> its lemmas.

    Raises
    ------
    FileFormatError
        When the text is not such a table.
    """

    def __init__(self, text: str) -> None:
        synsets, _, exceptions = text.partition("\n\n")
        first, *lines = synsets.split("\n")
        name, _, self.version = first.partition("\t")
        if name != FIRST_LINE:
            raise FileFormatError(
                f"not a table of WordNet: its first line is {first[:40]!r}, not {FIRST_LINE!r} "
                "and a version; make it with scripts/make_wordnet_table.py"
            )
        self._text = text
        try:
            self._read_synsets(lines)
            self.exceptions = _exceptions(exceptions)
        except (ValueError, KeyError, IndexError) as error:
            raise FileFormatError(f"not a table of WordNet: {error}; make it anew") from error

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Taxonomy) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self.sha256)

    @cached_property
    def sha256(self) -> str:
        """Hash of the table's text."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def parents(self, synset: int) -> list[int]:
        """Return the numbers of the synsets above one."""
        above: list[int] = self.parent[
            self.parent_start[synset] : self.parent_start[synset + 1]
        ].tolist()
        return above

    def _read_synsets(self, lines: list[str]) -> None:
        names, pos, n_parents, parents = [], [], [], []
        numbered: dict[str, dict[str, list[tuple[int, int, int]]]] = {p: {} for p in POS}
        for number, line in enumerate(lines):
            kind, above, senses = line.split("\t")
            of = "a" if kind == "s" else kind
            up = [int(parent.lstrip("@i&\\")) for parent in above.split()]
            n_parents.append(len(up))
            parents += up
            pos.append(of)
            name = ""
            for entry in senses.split(" "):
                lemma, sense, *count = entry.split(":")
                tagged = int(count[0]) if count else 0
                numbered[of].setdefault(lemma, []).append((int(sense), number, tagged))
                name = name or f"{lemma}.{kind}.{int(sense):02d}"
            names.append(name)
        self.names = tuple(names)
        self.pos = "".join(pos)
        self.parent_start = offsets(np.array(n_parents, np.int64))
        self.parent = np.array(parents, np.int64)
        if self.parent.size and not 0 <= self.parent.min() <= self.parent.max() < len(names):
            raise ValueError(f"a parent that is none of {len(names)} synsets")
        self.senses: Senses = {
            p: {
                lemma: [(synset, tagged) for _, synset, tagged in sorted(found)]
                for lemma, found in of_pos.items()
            }
            for p, of_pos in numbered.items()
        }


def _exceptions(text: str) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {pos: {} for pos in POS}
    for line in text.splitlines():
        pos, form, lemmas = line.split("\t")
        found[pos][form] = lemmas.split(" ")
    return found
