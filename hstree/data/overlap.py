"""Overlap of a text with a vocabulary: shared words and out-of-vocabulary tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS, UNK
from hstree.errors import InputError

#: Share of OOV tokens in a text above which a warning is due: more than the rare words of a text
#: that was counted itself, or of another one of its kind.
MANY_OOV = 0.2


@dataclass(frozen=True)
class Overlap:
    """Counts of what a text and a vocabulary share."""

    name: str  #: of the text
    shared: int  #: distinct words in both, ``<eos>`` and ``<unk>`` excluded
    words: int  #: distinct words of the text, ``<eos>`` excluded
    tokens: int  #: tokens of the text, ``<eos>`` included
    oov: int  #: tokens outside the vocabulary

    @property
    def is_small(self) -> bool:
        """Whether so much of the text is OOV that users should be warned."""
        return self.oov > MANY_OOV * self.tokens

    def __str__(self) -> str:
        return (
            f"{self.shared:,} of the {self.words:,} words of {self.name} are among the labels; "
            f"{self.oov:,} of its {self.tokens:,} tokens are not"
        )


def overlap(corpus: Corpus) -> Overlap:
    """Count what a corpus shares with its vocabulary.

    Raises InputError when that is no word, or when ``<eos>`` or a needed ``<unk>`` is not in it.
    """
    vocabulary = corpus.vocabulary
    if vocabulary.eos is None:
        raise InputError(
            f"the {len(vocabulary):,} labels hold no {EOS}, which ends every line of "
            f"{corpus.name}; build the tree from a corpus, or over a vocabulary with {EOS}"
        )
    words = corpus.select_vocabulary(unk=False).words
    n_words = len(words) - (EOS in words)
    counts = Overlap(corpus.name, shared_words(corpus), n_words, len(corpus), corpus.n_oov)
    if counts.shared == 0 and counts.words > 0:
        raise InputError(
            f"no word of {counts.name} is among the {len(vocabulary):,} labels "
            f"({vocabulary.words[0]!r}, ...); is it in the same language and case?"
        )
    if counts.oov and vocabulary.unk is None:
        raise InputError(
            f"{counts}, and there is no {UNK} to replace them; "
            "build the tree over a vocabulary with <unk>, for example with a larger min_count"
        )
    return counts


def shared_words(corpus: Corpus) -> int:
    """Count the distinct words of a corpus in its vocabulary, ``<eos>`` and ``<unk>`` excluded."""
    present = corpus.counts > 0
    for special in (EOS, UNK):
        if special in corpus.vocabulary:
            present[corpus.vocabulary.index(special)] = False
    return int(np.count_nonzero(present))
