r"""WordNet as one small text: what a tree needs of it, a line a synset, in an order of its own.

Every reader of WordNet makes this text, and a `Taxonomy` is made of it alone; so two sources of
one WordNet are equal where their texts are. The text of WordNet 3.0, compressed, is in the wheel
(``wordnet30.tsv.xz``, with its notice in ``LICENSE``); ``scripts/make_wordnet_table.py`` made it.

The text: ``hstree wordnet 1<TAB>version``; a line a synset; an empty line; morphy's exceptions.
A synset is ``kind<TAB>parents<TAB>senses``: its kind is n, v, a, s (satellite adjective) or r;
a parent is a pointer symbol (``@`` hypernym, ``@i`` instance hypernym, ``&`` head of a satellite,
``\`` adjective of an adverb) and a synset's number, counted from 0; a sense is
``lemma:sense number``, then ``:tag count`` unless that is 0. An exception is
``part of speech<TAB>form<TAB>lemmas``.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

#: Splits of speech in the order of their synsets; a satellite is among the adjectives.
POS = "nvar"

#: What a table begins with; a tab and the version follow.
FIRST_LINE = "hstree wordnet 1"


@dataclass(frozen=True)
class TableSynset:
    """One synset.

    Attributes
    ----------
    kind : str
        n, v, a, s or r.
    parents : sequence of (int, str)
        The numbers of the synsets above it, ascending, and how each is related.
    senses : mapping of str to (int, int)
        Lower-case lemma -> its sense number in this part of speech, its tag count. The first
        lemma and its sense number name the synset.
    """

    kind: str
    parents: Sequence[tuple[int, str]]
    senses: Mapping[str, tuple[int, int]]


def table_text(
    synsets: Sequence[TableSynset],
    exceptions: Mapping[str, Mapping[str, Sequence[str]]],
    version: str,
) -> str:
    """Return the text of a WordNet; `synsets` are ordered by part of speech and sense key."""
    lines = [f"{FIRST_LINE}\t{version}"]
    for synset in synsets:
        parents = " ".join(f"{symbol}{number}" for number, symbol in synset.parents)
        senses = " ".join(
            f"{lemma}:{sense}:{count}" if count else f"{lemma}:{sense}"
            for lemma, (sense, count) in synset.senses.items()
        )
        lines.append(f"{synset.kind}\t{parents}\t{senses}")
    lines.append("")
    lines += [
        f"{pos}\t{form}\t{' '.join(lemmas)}"
        for pos in POS
        for form, lemmas in sorted(exceptions.get(pos, {}).items())
    ]
    return "".join(f"{line}\n" for line in lines)


def built_in_text() -> str:
    """Return the text of the WordNet that comes with hstree, 3.0."""
    packed = files("hstree.builders.wordnet").joinpath("wordnet30.tsv.xz").read_bytes()
    return lzma.decompress(packed).decode("utf-8")
