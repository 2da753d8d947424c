"""How many words a text shares with a vocabulary, and whether it can be read through it at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS, UNK
from hstree.errors import InputError

#: The share of a text's tokens outside the vocabulary above which it is worth a warning.
MANY_OOV = 0.1


@dataclass(frozen=True)
class Overlap:
    """What a text and a vocabulary share, ``<eos>`` and ``<unk>`` aside.

    Attributes
    ----------
    name : str
        The text's.
    shared : int
        Distinct words that stand in both.
    words : int
        Distinct words of the text.
    tokens : int
        Tokens of the text, ``<eos>`` included.
    oov : int
        Those outside the vocabulary.
    """

    name: str
    shared: int
    words: int
    tokens: int
    oov: int

    @property
    def is_small(self) -> bool:
        """Whether so much of the text is outside the vocabulary that people should know."""
        return self.oov > MANY_OOV * self.tokens

    def __str__(self) -> str:
        return (
            f"{self.shared:,} of the {self.words:,} words of {self.name} are among the labels; "
            f"{self.oov:,} of its {self.tokens:,} tokens are not"
        )


def overlap(corpus: Corpus) -> Overlap:
    """Count what a corpus shares with the vocabulary that it is seen through.

    Raises
    ------
    InputError
        When they share no word, or the vocabulary lacks what has to be read: ``<eos>``, or
        ``<unk>`` for tokens outside it.
    """
    vocabulary = corpus.vocabulary
    if vocabulary.eos is None:
        raise InputError(
            f"the {len(vocabulary):,} labels hold no {EOS}, which ends every line of "
            f"{corpus.name}; build the tree from a corpus, or over a vocabulary with {EOS}"
        )
    words = corpus.select_vocabulary(unk=False).words
    found = Overlap(
        name=corpus.name,
        shared=shared_words(corpus),
        words=len(words) - (EOS in words),
        tokens=len(corpus),
        oov=corpus.n_oov,
    )
    if found.shared == 0 and found.words > 0:
        raise InputError(
            f"no word of {found.name} is among the {len(vocabulary):,} labels "
            f"({vocabulary.words[0]!r}, ...); is it in the same language and case?"
        )
    if found.oov and vocabulary.unk is None:
        raise InputError(
            f"{found}, and there is no {UNK} to stand for them; "
            "build the tree over a vocabulary with <unk>, as --min-count makes one"
        )
    return found


def shared_words(corpus: Corpus) -> int:
    """Count the distinct words of a corpus that are read as themselves, not as ``<unk>``."""
    present = corpus.counts > 0
    for special in (EOS, UNK):
        if special in corpus.vocabulary:
            present[corpus.vocabulary.index(special)] = False
    return int(np.count_nonzero(present))
