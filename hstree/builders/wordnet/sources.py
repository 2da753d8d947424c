"""Sources of WordNet: the table that is part of hstree, NLTK's corpus, or another table.

All of them give the same taxonomy of the same WordNet.
"""

from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from hstree._files import open_regular, unpacking_reader
from hstree._text import strict_text
from hstree.builders.wordnet.taxonomy import POS, TableSynset, Taxonomy, table_text
from hstree.errors import InputError, explained

_EXCEPTIONS = {"n": "noun.exc", "v": "verb.exc", "a": "adj.exc", "r": "adv.exc"}
_KIND_OF_KEY = dict(zip("12345", "nvars", strict=True))


@cache
def built_in() -> Taxonomy:
    """Return the WordNet 3.0 that is part of hstree; read once, in about a second."""
    with as_file(files("hstree.builders.wordnet").joinpath("wordnet30.tsv.xz")) as path:
        return _read_table(path)


def open_taxonomy(source: str = "builtin") -> Taxonomy:
    """Read a WordNet: "builtin", NLTK's corpus ("nltk"), or a table's file.

    Each source of the same WordNet gives the same taxonomy. Raises InputError when the source
    cannot be read, FileFormatError when it is not a table.
    """
    if source == "builtin":
        return built_in()
    if source == "nltk":
        return Taxonomy(nltk_table())
    return _read_table(Path(source))


def _read_table(path: Path) -> Taxonomy:
    remedy = "make a table with scripts/make_wordnet_table.py"
    with explained(f"read the WordNet {path}", remedy=remedy), open_regular(path) as file:
        return Taxonomy(strict_text(unpacking_reader(file, ".xz")(-1), str(path)))


def nltk_table() -> str:
    """Return the text of the WordNet in NLTK's data path, in the format of `taxonomy`.

    About 6 s. Raises InputError where NLTK does not have it.
    """
    from nltk.corpus import wordnet  # takes over a second to import

    try:
        wordnet.ensure_loaded()
        sense_number, tag_count = _senses(wordnet)
        exceptions = dict[str, dict[str, list[str]]]()
        for pos, name in _EXCEPTIONS.items():
            with wordnet.open(name) as file:
                lines = (line.split() for line in file if line.strip())
                exceptions[pos] = {form: lemmas for form, *lemmas in lines}
        synsets = [(pos, synset) for pos in POS for synset in wordnet.all_synsets(pos)]
    except (LookupError, OSError, ValueError) as error:
        raise InputError(
            "NLTK's wordnet is not installed, or not whole: get it with `python -m "
            "nltk.downloader wordnet`, set NLTK_DATA to the folder that holds it, or use 'builtin'"
        ) from error
    # The key of a sense does not depend on the build of WordNet, as byte offsets do.
    synsets.sort(key=lambda entry: (POS.index(entry[0]), entry[1].lemmas()[0].key()))
    number = {synset: i for i, (_, synset) in enumerate(synsets)}
    rows = []
    for _, synset in synsets:
        senses: dict[str, tuple[int, int]] = {}
        for word in synset.lemmas():  # tag counts of spellings by case add up
            lemma = word.name().lower()
            _, before = senses.get(lemma, (0, 0))
            sense = sense_number[synset.pos(), lemma, synset.offset()]
            senses[lemma] = sense, before + tag_count.get(word.key(), 0)
        # NLTK's order of parents changes from run to run.
        parents = sorted({(number[parent], symbol) for symbol, parent in _parents(synset)})
        rows.append(TableSynset(synset.pos(), parents, senses))
    return table_text(rows, exceptions, wordnet.get_version())


def _senses(wordnet: Any) -> tuple[dict[tuple[str, str, int], int], dict[str, int]]:
    """Return the number of each lemma among its senses, by synset, and tag counts by sense key.

    They are read from ``index.sense``, since NLTK has no sense numbers and no tag counts of
    satellites.
    """
    numbers: dict[tuple[str, str, int], int] = {}
    counts: dict[str, int] = {}
    with wordnet.open("index.sense") as file:
        for line in file:
            key, offset, number, tagged = line.split()
            lemma, _, rest = key.partition("%")
            numbers[_KIND_OF_KEY[rest[0]], lemma, int(offset)] = int(number)
            counts[key] = int(tagged)
    return numbers, counts


def _parents(synset: Any) -> list[tuple[str, Any]]:
    """Return the synsets above a synset, with their pointer symbols."""
    match synset.pos():
        case "n" | "v":
            up = [("@", parent) for parent in synset.hypernyms()]
            return up + [("@i", parent) for parent in synset.instance_hypernyms()]
        case "s":
            return [("&", head) for head in synset.similar_tos()]
        case "r":
            words = [word for lemma in synset.lemmas() for word in lemma.pertainyms()]
            return [("\\", word.synset()) for word in words if word.synset().pos() in "as"]
    return []
