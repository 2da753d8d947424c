r"""WordNet's taxonomy: synsets, their parents and their lemmas, read from one text.

A `Taxonomy` depends only on this text, so that two sources with the same text give the same
taxonomy. The compressed text of WordNet 3.0 is part of hstree (``wordnet30.tsv.xz``, with its
notice in ``LICENSE``); ``scripts/make_wordnet_table.py`` made it.

The text has the line ``hstree wordnet 1<TAB>version``, one line per synset, an empty line, and
morphy's exceptions. A synset is ``kind<TAB>parents<TAB>senses``. Its kind is n, v, a, s (satellite
adjective) or r. A parent is a pointer symbol (``@`` hypernym, ``@i`` instance hypernym, ``&`` head
of a satellite, ``\`` adjective of an adverb) and the number of a synset, counted from 0. A sense is
``lemma:sense number``, followed by ``:tag count`` unless that is 0. An exception is
``part of speech<TAB>form<TAB>lemmas``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from hstree._arrays import offsets
from hstree.errors import FileFormatError

#: Parts of speech in the order of their synsets; a satellite is an adjective.
POS = "nvar"

#: Start of a table; a tab and the version follow.
FIRST_LINE = "hstree wordnet 1"


@dataclass(frozen=True)
class TableSynset:
    """One line of a table; the first lemma and its sense number are the name of the synset."""

    kind: str  #: n, v, a, s or r
    parents: Sequence[tuple[int, str]]  #: synsets above it, ascending, and the pointer symbols
    #: Lower-case lemma -> its sense number in this part of speech, and its tag count.
    senses: Mapping[str, tuple[int, int]]


def table_text(
    synsets: Sequence[TableSynset],
    exceptions: Mapping[str, Mapping[str, Sequence[str]]],
    version: str,
) -> str:
    """Return the text of a WordNet; synsets are in the order of part of speech and sense key."""
    lines = [f"{FIRST_LINE}\t{version}"]
    for synset in synsets:
        parents = " ".join(f"{symbol}{number}" for number, symbol in synset.parents)
        senses = " ".join(
            f"{lemma}:{sense}:{count}" if count else f"{lemma}:{sense}"
            for lemma, (sense, count) in synset.senses.items()
        )
        lines.append(f"{synset.kind}\t{parents}\t{senses}")
    # After an empty line, the irregular forms that morphy looks up
    lines.append("")
    for pos in POS:
        forms = sorted(exceptions.get(pos, {}).items())
        lines += [f"{pos}\t{form}\t{' '.join(lemmas)}" for form, lemmas in forms]
    return "".join(f"{line}\n" for line in lines)


class Taxonomy:
    """Is-a relations and lemmas of one WordNet.

    Synsets are numbered by part of speech (nouns, verbs, adjectives, adverbs), and within each by
    sense key, independently of byte offsets. Raises FileFormatError when the text does not have the
    format of this module.

    Attributes
    ----------
    version : str
        Version of WordNet: "3.0".
    names : tuple of str, length S
        Names such as ``"dog.n.01"``: the first lemma of the synset, its kind and the sense number.
        WordNet counts the senses of a lemma in a part of speech (NLTK 3.10 counts satellites
        separately).
    pos : str
        Part of speech of each synset: S letters, n, v, a or r.
    parent_start, parent : int64 arrays (S + 1,), (E,)
        Parents of synset i are ``parent[parent_start[i]:parent_start[i + 1]]``, ascending:
        hypernyms and instance hypernyms, the head of a satellite, the adjectives of an adverb.
    senses : dict
        Part of speech -> lower-case lemma, with ``_`` for a space -> list of (synset, tag count).
    exceptions : dict
        Part of speech -> irregular form -> its lemmas.
    sha256 : str
        Hash of the text.
    """

    def __init__(self, text: str) -> None:
        synsets, _, exceptions = text.partition("\n\n")
        first, *lines = synsets.split("\n")
        name, _, self.version = first.partition("\t")
        if name != FIRST_LINE:
            raise FileFormatError(
                f"not a table of WordNet: the first line is {first[:40]!r}, not {FIRST_LINE!r} "
                "and a version; make a table with scripts/make_wordnet_table.py"
            )
        self.sha256 = hashlib.sha256(text.encode()).hexdigest()
        try:
            self._read_synsets(lines)
            self.exceptions: dict[str, dict[str, list[str]]] = {pos: {} for pos in POS}
            for line in exceptions.splitlines():
                pos, form, lemmas = line.split("\t")
                self.exceptions[pos][form] = lemmas.split(" ")
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise FileFormatError(f"not a table of WordNet: {error}; make it again") from error

    def __len__(self) -> int:
        return len(self.names)

    def _read_synsets(self, lines: list[str]) -> None:
        names = []
        letters = []  # part of speech of each synset
        parents = []
        n_parents = []
        # Part of speech -> lemma -> (sense number, synset, tag count) of each sense
        senses: dict[str, dict[str, list[tuple[int, int, int]]]] = {pos: {} for pos in POS}
        for number, line in enumerate(lines):
            kind, parent_field, sense_field = line.split("\t")
            pos = "a" if kind == "s" else kind
            numbers = [int(parent.lstrip("@i&\\")) for parent in parent_field.split()]
            parents += numbers
            n_parents.append(len(numbers))
            letters.append(pos)
            name = ""
            for entry in sense_field.split(" "):
                lemma, sense, *count = entry.split(":")
                tag_count = int(count[0]) if count else 0
                senses[pos].setdefault(lemma, []).append((int(sense), number, tag_count))
                name = name or f"{lemma}.{kind}.{int(sense):02d}"
            names.append(name)
        self.names = tuple(names)
        self.pos = "".join(letters)
        self.parent_start = offsets(np.array(n_parents, np.int64))
        self.parent = np.array(parents, np.int64)

        # Check that parents exist, and that there is no cycle
        if self.parent.size and not 0 <= self.parent.min() <= self.parent.max() < len(names):
            raise ValueError(f"a parent is not among the {len(names)} synsets")
        ones = np.ones(len(self.parent), bool)
        graph = csr_array((ones, self.parent, self.parent_start), shape=(len(names), len(names)))
        n_components, _ = connected_components(graph, connection="strong")
        if n_components < len(names) or graph.diagonal().any():
            raise ValueError("a synset is its own ancestor")

        # Sort the senses of each lemma by sense number
        self.senses = {
            pos: {
                lemma: [(synset, tag_count) for _, synset, tag_count in sorted(lemma_senses)]
                for lemma, lemma_senses in pos_senses.items()
            }
            for pos, pos_senses in senses.items()
        }
