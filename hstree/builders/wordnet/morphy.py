"""Morphy: from a word in a text to the lemmas that WordNet may have of it.

The word itself, then what a list of exceptions says of it, or else what a few endings give; only
lemmas that there are. Words of several parts, with spaces or ``_``, are looked up whole.
"""

from __future__ import annotations

from hstree.builders.wordnet.taxonomy import Taxonomy

#: Part of speech -> endings and what may stand in their place, in the order of morphy(7WN).
_ENDINGS = {
    "n": [
        *[("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")],
        *[("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")],
    ],
    "v": [
        *[("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")],
        *[("ing", "e"), ("ing", "")],
    ],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}


def lemmas_of(word: str, pos: str, taxonomy: Taxonomy) -> list[str]:
    """Return the lemmas of a word in one part of speech.

    Parameters
    ----------
    word : str
        In lower case.
    pos : {"n", "v", "a", "r"}
    taxonomy : Taxonomy

    Returns
    -------
    list of str
        Unique; the word itself first, if it is one. Empty where WordNet has none.

    Examples
    --------
    >>> lemmas_of("geese", "n", built_in())  # doctest: +SKIP
    ['goose']
    """
    known = taxonomy.senses[pos]
    forms = taxonomy.exceptions[pos].get(word)
    if forms is None:
        forms = [word[: -len(old)] + new for old, new in _ENDINGS[pos] if word.endswith(old)]
    return [form for form in dict.fromkeys([word, *forms]) if form in known]
