"""Sources of WordNet: the one that is part of hstree, NLTK's corpus, and tables."""

from __future__ import annotations

from pathlib import Path

from hstree.builders.wordnet.from_nltk import nltk_table
from hstree.builders.wordnet.taxonomy import Taxonomy, built_in, read_table


def open_taxonomy(source: str = "builtin") -> Taxonomy:
    """Read a WordNet; each source of the same WordNet gives the same taxonomy.

    Parameters
    ----------
    source : str
        ``"builtin"``, the WordNet 3.0 that is part of hstree; ``"nltk"``, NLTK's corpus
        ``wordnet`` in NLTK's data path; or a table that ``scripts/make_wordnet_table.py`` made.

    Raises
    ------
    InputError
        When the source is missing.
    FileFormatError
        When it is not a table.
    """
    if source == "builtin":
        return built_in()
    if source == "nltk":
        return Taxonomy(nltk_table())
    return read_table(Path(source))
