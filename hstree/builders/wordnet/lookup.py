"""Synsets of words: which forms and senses of a word WordNet has.

Function words and single letters count as outside WordNet, though it spells some of them. "it" is
information technology there, "he" helium, "at" a coin of Laos and "a" an angstrom; a text seldom
means these. Some function words it has as adverbs and adjectives ("not", "all", "so"); all stay
together. A single letter is nitrogen, phosphorus or a kelvin in WordNet; in a text it is an
initial, a label of a list or a mark such as the Penn Treebank's N, which is any number. Case is
folded before, so that "May" and "US" go with "may" and "us". Verbs that may be auxiliaries (be,
have, do) are not function words.
"""

from collections.abc import Sequence
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

from hstree._arrays import Int64
from hstree.builders.wordnet.taxonomy import POS, Taxonomy

#: Determiners, pronouns, prepositions, conjunctions and auxiliaries.
_FUNCTION_WORDS = """
a an the this that these those each every either neither some any no all both such what which
whose i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves who whom whoever
whatever whichever whomever anybody anyone anything everybody everyone everything nobody none
nothing somebody someone something about above across after against along amid among around as
at before behind below beneath beside besides between beyond by despite during except for from
in into of off on onto out over per since through throughout till to toward towards under
underneath until unto upon versus via with within without and or nor but if because although
though unless whereas while whether than so yet how when where why that lest can could may might
must shall should will would ought cannot not
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())

#: Maximum number of synsets of a word.
MAX_SENSES = 8
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


class WordSynsets(NamedTuple):
    """Synsets of V words: P pairs of a word and its synset, by word, the likeliest sense first."""

    word: Int64  # (P,)
    synset: Int64  # (P,)
    n_senses: Int64  # (V,) number of synsets in WordNet, listed here or not


def look_up(
    words: Sequence[str], taxonomy: Taxonomy, senses: Literal["first", "all"]
) -> WordSynsets:
    """Look up words, in lower case; take the first or all synsets of each, up to `MAX_SENSES`.

    A sense is likelier the more often WordNet's tagged texts have it; of equal counts, the word
    itself comes before morphy's lemmas, then nouns, verbs, adjectives, adverbs, then the lower
    sense number. About 30,000 words per second.
    """
    limit = 1 if senses == "first" else MAX_SENSES
    word, synset = [], []
    n_senses = np.zeros(len(words), np.int64)
    for number, text in enumerate(words):
        lower = text.lower()
        if lower in FUNCTION_WORDS or (len(lower) == 1 and lower.isalpha()):
            continue
        # (-tag count, is another form, rank, synset) of each sense; the least is likeliest
        ranked, rank = list[tuple[int, bool, int, int]](), count()
        for pos in POS:
            for lemma in lemmas_of(lower, pos, taxonomy):
                senses_of = taxonomy.senses[pos][lemma]
                ranked += [(-tagged, lemma != lower, next(rank), of) for of, tagged in senses_of]
        if not ranked:
            continue
        ranked.sort()
        synsets = list(dict.fromkeys(synset for *_, synset in ranked))
        n_senses[number] = len(synsets)
        word += [number] * len(synsets[:limit])
        synset += synsets[:limit]
    return WordSynsets(np.array(word, np.int64), np.array(synset, np.int64), n_senses)


def lemmas_of(word: str, pos: str, taxonomy: Taxonomy) -> list[str]:
    """Return the lemmas of a lower-case word in one part of speech, by morphy.

    They are the word itself if it is a lemma, then those that the exceptions give, or else those
    that replacing endings gives; unique. Words of several parts are looked up whole.
    """
    known = taxonomy.senses[pos]
    forms = taxonomy.exceptions[pos].get(word)
    if forms is None:
        forms = [word[: -len(old)] + new for old, new in _ENDINGS[pos] if word.endswith(old)]
    return [form for form in dict.fromkeys([word, *forms]) if form in known]
