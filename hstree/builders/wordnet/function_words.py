"""Words outside WordNet's tree though WordNet spells some of them: function words, single letters.

"it" is information technology there, "he" is helium, "at" a coin of Laos and "a" an angstrom. A
text seldom means any of these, so such words stand with "the" and "of", which WordNet lacks. Some
it has in their own right, as adverbs and adjectives ("not", "all", "so"): a class stays together.
Case is folded before, so that "May" and "US" stand with "may" and "us".
Here are the closed classes alone; verbs that also help others (be, have, do) are verbs.

A single letter is nitrogen, phosphorus or a kelvin in WordNet; in a text it is an initial, a label
of a list or a mark such as the Penn Treebank's N, which is any number. It is no word of its own.
"""

from __future__ import annotations

_ARTICLES_AND_DETERMINERS = """
a an the this that these those each every either neither some any no all both such what which whose
"""
_PRONOUNS = """
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves
who whom whoever whatever whichever whomever anybody anyone anything everybody everyone
everything nobody none nothing somebody someone something
"""
_PREPOSITIONS = """
about above across after against along amid among around as at before behind below beneath beside
besides between beyond by despite during except for from in into of off on onto
out over per since through throughout till to toward towards under underneath
until unto upon versus via with within without
"""
_CONJUNCTIONS = """
and or nor but if because although though unless whereas while whether than so yet
how when where why that lest
"""
_AUXILIARIES = """
can could may might must shall should will would ought cannot not
"""

FUNCTION_WORDS = frozenset(
    " ".join(
        (_ARTICLES_AND_DETERMINERS, _PRONOUNS, _PREPOSITIONS, _CONJUNCTIONS, _AUXILIARIES)
    ).split()
)


def is_outside(word: str) -> bool:
    """Tell whether a word, in lower case, is a function word or a single letter."""
    return word in FUNCTION_WORDS or (len(word) == 1 and word.isalpha())
