"""Look-up of words in WordNet: their lemmas and synsets.

Function words and single letters count as outside WordNet, although it contains some of them. In
WordNet, "it" is information technology, "he" helium, "at" a coin of Laos and "a" an angstrom; these
meanings are rare in texts. WordNet contains other function words as adverbs and adjectives ("not",
"all", "so"); here, all function words stay together. In WordNet, a single letter is nitrogen,
phosphorus or a kelvin. In a text it is an initial, the label of a list item or a symbol, such as N
for any number in the Penn Treebank. Words are looked up in lower case, so that "May" is "may" and
"US" is "us". Verbs that may be auxiliaries (be, have, do) are not function words.

`find_lemmas` returns the same lemmas as morphy in NLTK for 88,000 words. That function is not used,
since it is a method of a reader that needs NLTK's data.
"""

from collections.abc import Sequence
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
#: Part of speech -> endings and their replacements, in the order that morphy(7WN) tries them.
_ENDINGS = {
    "n": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "v": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "a": "er: est: er:e est:e",
    "r": "",
}
_REPLACEMENTS = {
    pos: [tuple(rule.split(":")) for rule in rules.split()] for pos, rules in _ENDINGS.items()
}


class WordSynsets(NamedTuple):
    """Synsets of V words: P pairs of a word and a synset, by word, most frequent sense first."""

    word: Int64  #: (P,)
    synset: Int64  #: (P,)
    n_senses: Int64  #: (V,) number of synsets in WordNet, including those left out here


def look_up(
    words: Sequence[str], taxonomy: Taxonomy, senses: Literal["first", "all"]
) -> WordSynsets:
    """Return the most probable synset of each word, or up to `MAX_SENSES` synsets.

    It is the sense that is most frequent in the tagged texts of WordNet. Ties are broken
    first in favour of the word itself over morphy's lemmas, then in the order nouns, verbs,
    adjectives, adverbs, then by sense number. The speed is about 30,000 words per second.
    """
    limit = 1 if senses == "first" else MAX_SENSES
    pair_words: list[int] = []
    pair_synsets: list[int] = []
    n_senses = np.zeros(len(words), np.int64)
    for number, text in enumerate(words):
        word = text.lower()
        if word in FUNCTION_WORDS or (len(word) == 1 and word.isalpha()):
            continue
        # (-tag count, whether the lemma differs from the word, rank, synset) of each sense; the
        # smallest is the most probable
        ranked: list[tuple[int, bool, int, int]] = []
        for pos in POS:
            for lemma in find_lemmas(word, pos, taxonomy):
                for synset, tag_count in taxonomy.senses[pos][lemma]:
                    ranked.append((-tag_count, lemma != word, len(ranked), synset))
        ranked.sort()
        # Two lemmas of a word may have the same synset
        synsets = list(dict.fromkeys(synset for *_, synset in ranked))
        n_senses[number] = len(synsets)
        pair_words += [number] * len(synsets[:limit])
        pair_synsets += synsets[:limit]
    return WordSynsets(np.array(pair_words, np.int64), np.array(pair_synsets, np.int64), n_senses)


def find_lemmas(word: str, pos: str, taxonomy: Taxonomy) -> list[str]:
    """Return the lemmas of a lower-case word in one part of speech, by morphy.

    The list starts with the word itself, if it is a lemma. The lemmas from the exceptions follow;
    if there are no exceptions, those found by replacing endings. Lemmas are unique. Compounds are
    looked up as a whole.
    """
    known = taxonomy.senses[pos]
    forms = taxonomy.exceptions[pos].get(word)
    if forms is None:
        forms = [word[: -len(old)] + new for old, new in _REPLACEMENTS[pos] if word.endswith(old)]
    return [form for form in dict.fromkeys([word, *forms]) if form in known]
