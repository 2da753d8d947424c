"""A taxonomy small enough to reason about, as records, as a `Taxonomy` and as a table.

Synsets with two parents (dog, decoy), two roots of nouns (animal, artifact) and a word of three
senses (cat).
"""

import lzma
import runpy
from pathlib import Path

import pytest

from hstree.builders.wordnet.taxonomy import TableSynset, Taxonomy, table_text


def synset(kind, up, **senses):
    return TableSynset(kind, up, senses)


#: In the order of part of speech and sense key; a sense is (number, tag count).
SYNSETS = [
    synset("n", [], animal=(1, 9)),
    synset("n", [], artifact=(1, 0)),
    synset("n", [(0, "@")], canine=(1, 0)),
    synset("n", [(0, "@")], cat=(1, 3)),
    synset("n", [(0, "@"), (1, "@")], decoy=(1, 0)),
    synset("n", [(2, "@"), (6, "@")], dog=(1, 4)),
    synset("n", [(0, "@")], pet=(1, 1)),
    synset("n", [(5, "@i")], puppy=(1, 0)),
    synset("n", [(1, "@")], toy=(1, 2), cat=(2, 1)),
    synset("v", [(10, "@")], inhibit=(1, 0)),
    synset("v", [], restrain=(1, 1), cat=(1, 2)),
    synset("s", [(12, "&")], fast=(1, 2), speedy=(1, 0)),
    synset("a", [], quick=(1, 6)),
    synset("r", [(12, "\\")], quickly=(1, 1)),
]
EXCEPTIONS = {"n": {"mice": ["mouse"], "pups": ["puppy"]}, "v": {"inhibitted": ["inhibit"]}}


def text_of(synsets, exceptions=EXCEPTIONS):
    return table_text(synsets, exceptions, version="9.9")


def taxonomy_of(synsets, exceptions=EXCEPTIONS):
    return Taxonomy(text_of(synsets, exceptions))


def parents(taxonomy, number):
    start, stop = taxonomy.parent_start[number : number + 2]
    return taxonomy.parent[start:stop].tolist()


def write_table(path, synsets=SYNSETS):
    """Write a table as the script does, and return its name as an option takes it."""
    Path(path).write_bytes(lzma.compress(text_of(synsets).encode()))
    return str(path)


def script():
    """Return the functions of the script that reads WordNet's files, by name."""
    path = Path(__file__).parents[3] / "scripts" / "make_wordnet_table.py"
    if not path.exists():
        pytest.skip("no scripts folder: these tests run from an installed package")
    return runpy.run_path(str(path))
