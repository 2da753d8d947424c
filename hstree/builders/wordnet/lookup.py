"""Synsets of words: which forms and senses of a word WordNet has.

Function words and single letters count as outside WordNet, though it spells some of them. "it" is
information technology there, "he" helium, "at" a coin of Laos and "a" an angstrom; a text seldom
means these. Some function words it has as adverbs and adjectives ("not", "all", "so"); all stay
together. A single letter is nitrogen, phosphorus or a kelvin in WordNet; in a text it is an
initial, a label of a list or a mark such as the Penn Treebank's N, which is any number. Case is
folded before, so that "May" and "US" go with "may" and "us". Verbs that may be auxiliaries (be,
have, do) are not function words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hstree._typing import Bool, Int64
from hstree.builders.wordnet.taxonomy import POS, Taxonomy

_FUNCTION_WORDS = (
    # articles and determiners
    "a an the this that these those each every either neither some any no all both such "
    "what which whose "
    # pronouns
    "i me my mine myself we us our ours ourselves you your yours yourself yourselves he "
    "him his himself she her hers herself it its itself they them their theirs themselves "
    "who whom whoever whatever whichever whomever anybody anyone anything everybody "
    "everyone everything nobody none nothing somebody someone something "
    # prepositions
    "about above across after against along amid among around as at before behind below "
    "beneath beside besides between beyond by despite during except for from in into of "
    "off on onto out over per since through throughout till to toward towards under "
    "underneath until unto upon versus via with within without "
    # conjunctions
    "and or nor but if because although though unless whereas while whether than so yet "
    "how when where why that lest "
    # auxiliaries
    "can could may might must shall should will would ought cannot not "
)
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

#: Part of speech -> endings and their replacements, in the order of morphy(7WN).
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


@dataclass(frozen=True)
class WordSynsets:
    """Synsets of words.

    Attributes
    ----------
    word, synset : int64 arrays (P,)
        Pairs of a word and its synset; by word, the likeliest sense first.
    n_senses : int64 array (V,)
        Number of synsets that WordNet has of each word, listed here or not; 0 for a word outside
        WordNet.
    lemmatised : bool array (V,)
        Whether the likeliest sense is that of another form, as of "dog" for "dogs".
    """

    word: Int64
    synset: Int64
    n_senses: Int64
    lemmatised: Bool


def look_up(
    words: Sequence[str],
    taxonomy: Taxonomy,
    senses: Literal["first", "all"],
    max_senses: int,
) -> WordSynsets:
    """Look up the synsets of words.

    Parameters
    ----------
    words : sequence of str, length V
        In any case: they are looked up in lower case.
    taxonomy : Taxonomy
    senses : {"first", "all"}
        Take the likeliest synset of each word, or all.
    max_senses : int
        Maximum number of synsets per word with "all": the likeliest ones.

    Notes
    -----
    A sense is likelier the more often WordNet's tagged texts have it; of equal counts, the word
    itself comes before morphy's lemmas, then nouns, verbs, adjectives, adverbs, then the lower
    sense number. About 30,000 words per second.
    """
    limit = 1 if senses == "first" else max_senses
    word, synset = [], []
    n_senses = np.zeros(len(words), np.int64)
    lemmatised = np.zeros(len(words), bool)
    for number, text in enumerate(words):
        lower = text.lower()
        ranked = [] if is_outside(lower) else sorted(_candidates(lower, taxonomy))
        if not ranked:
            continue
        synsets = list(dict.fromkeys(synset for _, _, _, synset in ranked))
        n_senses[number] = len(synsets)
        lemmatised[number] = ranked[0][1]
        word += [number] * len(synsets[:limit])
        synset += synsets[:limit]
    return WordSynsets(np.array(word, np.int64), np.array(synset, np.int64), n_senses, lemmatised)


def _candidates(word: str, taxonomy: Taxonomy) -> Iterator[tuple[int, bool, int, int]]:
    """Yield (-tag count, is another form, rank, synset) of each sense; the least is likeliest."""
    rank = 0
    for pos in POS:
        for lemma in lemmas_of(word, pos, taxonomy):
            for synset, tagged in taxonomy.senses[pos][lemma]:
                yield -tagged, lemma != word, rank, synset
                rank += 1


def lemmas_of(word: str, pos: str, taxonomy: Taxonomy) -> list[str]:
    """Return the lemmas of a word in one part of speech (morphy).

    Parameters
    ----------
    word : str
        In lower case.
    pos : {"n", "v", "a", "r"}
    taxonomy : Taxonomy

    Returns
    -------
    list of str
        The word itself if it is a lemma, then the lemmas that the exceptions give, or else those
        that replacing endings gives; unique. Words of several parts are looked up whole.
    """
    known = taxonomy.senses[pos]
    forms = taxonomy.exceptions[pos].get(word)
    if forms is None:
        forms = [word[: -len(old)] + new for old, new in _ENDINGS[pos] if word.endswith(old)]
    return [form for form in dict.fromkeys([word, *forms]) if form in known]


def is_outside(word: str) -> bool:
    """Return whether a word, in lower case, is a function word or a single letter."""
    return word in FUNCTION_WORDS or (len(word) == 1 and word.isalpha())
