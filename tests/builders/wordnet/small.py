"""A taxonomy small enough to reason about, as records, as a `Taxonomy` and as WordNet's files.

A cycle (restrain, inhibit), synsets with two parents (dog, decoy), two roots of nouns (animal,
artifact) and a word of three senses (cat).
"""

import lzma
import runpy
from pathlib import Path

import pytest

from hstree.builders.wordnet.taxonomy import POS, TableSynset, Taxonomy, table_text

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
KEY_TYPE = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}


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
    synset("v", [(9, "@")], restrain=(1, 1), cat=(1, 2)),
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
    """Return the parents of a synset."""
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


def read_files(folder):
    """Return the table of a folder of WordNet's files."""
    functions = script()
    return functions["read_database"](functions["folder_files"](Path(folder)))


def write_database(folder, synsets=SYNSETS, order=None, gloss="a gloss"):
    """Write WordNet's files, each part of speech in any order; offsets follow from the glosses."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    order = list(range(len(synsets))) if order is None else order
    pos_of = ["a" if s.kind == "s" else s.kind for s in synsets]
    offset = {}
    for final in (False, True):  # offsets have a fixed width: first find them, then use them
        for pos in POS:
            notice = "  1 WordNet 9.9 Copyright 2099 by nobody.  \n"
            data = notice
            for number in (i for i in order if pos_of[i] == pos):
                offset[number] = len(data)
                data += _data_line(number, synsets, pos_of, offset if final else {}, gloss)
            (folder / f"data.{FILES[pos]}").write_text(data)
    counts = []
    for pos in POS:
        index = {}
        for number, s in enumerate(synsets):
            for lemma, (sense, count) in s.senses.items():
                if pos_of[number] == pos:
                    index.setdefault(lemma, []).append((sense, number))
                    counts += [f"{_key(lemma, number, synsets)} {sense} {count}"] * (count > 0)
        lines = ["  1 WordNet 9.9 Copyright 2099 by nobody.  "]
        for lemma, found in sorted(index.items()):
            offsets = " ".join(f"{offset[number]:08d}" for _, number in sorted(found))
            lines.append(f"{lemma} {pos} {len(found)} 1 @ {len(found)} 0 {offsets}  ")
        (folder / f"index.{FILES[pos]}").write_text("".join(f"{line}\n" for line in lines))
        forms = EXCEPTIONS.get(pos, {})
        exceptions = "".join(f"{form} {' '.join(of)}\n" for form, of in forms.items())
        (folder / f"{FILES[pos]}.exc").write_text(exceptions)
    (folder / "cntlist.rev").write_text("".join(f"{line}\n" for line in sorted(counts)))
    return folder


def _data_line(number, synsets, pos_of, offset, gloss):
    s = synsets[number]
    words = " ".join(f"{lemma.title()} {sense:x}" for lemma, (sense, _) in s.senses.items())
    pointers = "".join(
        f" {symbol} {offset.get(up, 0):08d} {pos_of[up]} 0000" for up, symbol in s.parents
    )
    # One more pointer that leads nowhere up: an antonym.
    pointers += f" ! {offset.get(number, 0):08d} {pos_of[number]} 0101"
    n_pointers = len(s.parents) + 1
    at = offset.get(number, 0)
    head = f"{at:08d} 05 {s.kind} {len(s.senses):02x} {words} {n_pointers:03d}{pointers}"
    return f"{head} | {gloss}  \n"


def _key(lemma, number, synsets):
    s = synsets[number]
    head = ":"
    if s.kind == "s":
        of_head, (sense, _) = next(iter(synsets[s.parents[0][0]].senses.items()))
        head = f"{of_head}(a):{sense:02d}"
    return f"{lemma}%{KEY_TYPE[s.kind]}:05:{s.senses[lemma][0]:02d}:{head}"
