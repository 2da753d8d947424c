"""From the words of a vocabulary to the synsets that they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hstree._typing import Bool, Int64
from hstree.builders.wordnet.function_words import is_outside
from hstree.builders.wordnet.morphy import lemmas_of
from hstree.builders.wordnet.table import POS
from hstree.builders.wordnet.taxonomy import Taxonomy


@dataclass(frozen=True)
class Places:
    """Which words hang under which synsets, and how they were found.

    Attributes
    ----------
    word, synset : int64 arrays (P,)
        Word ``word[i]`` hangs under ``synset[i]``; by word, and the likeliest sense first.
    n_senses : int64 array (V,)
        How many synsets WordNet has of each word, whether they are among these or not; 0 for a
        word outside WordNet.
    lemmatised : bool array (V,)
        Whether the likeliest sense is that of another form: "dogs", which means "dog".
    """

    word: Int64
    synset: Int64
    n_senses: Int64
    lemmatised: Bool


def find_places(
    words: Sequence[str],
    taxonomy: Taxonomy,
    senses: Literal["first", "all"],
    max_senses: int,
) -> Places:
    """Look up words.

    Parameters
    ----------
    words : sequence of str, length V
        In any case; WordNet is asked in lower case, and not for function words and single
        letters (`is_outside`).
    taxonomy : Taxonomy
    senses : {"first", "all"}
        The likeliest synset of each word, or all of them.
    max_senses : int
        How many of the likeliest "all" are, at most.

    Notes
    -----
    Likelier is what WordNet counted more often in its tagged texts; of equal counts, the word
    itself before what morphy makes of it, then nouns, verbs, adjectives, adverbs, then the order
    in which WordNet numbers the senses. About 30,000 words a second.
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
        found = list(dict.fromkeys(sense for _, _, _, sense in ranked))
        n_senses[number] = len(found)
        lemmatised[number] = ranked[0][1]
        word += [number] * len(found[:limit])
        synset += found[:limit]
    return Places(np.array(word, np.int64), np.array(synset, np.int64), n_senses, lemmatised)


def _candidates(word: str, taxonomy: Taxonomy) -> Iterator[tuple[int, bool, int, int]]:
    """Yield (-tag count, is another form, rank, synset) of every sense; least is likeliest."""
    rank = 0
    for pos in POS:
        for lemma in lemmas_of(word, pos, taxonomy):
            for synset, tagged in taxonomy.senses[pos][lemma]:
                yield -tagged, lemma != word, rank, synset
                rank += 1
