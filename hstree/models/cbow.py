"""Continuous bag of words (CBOW; Mikolov et al. 2013): a word from the mean of its window.

The hidden vector is ``h = (1/C) sum_c v_c`` over the C words around a position. A window without
words has h = 0, so that the prediction depends only on the output layer's biases.
"""

from typing import ClassVar

from hstree.models.word2vec import Word2Vec


class CBOW(Word2Vec):
    """CBOW as in word2vec: predicts a word from the mean vector of its window.

    Examples
    --------
    >>> CBOW(tree, dim=100, window=5).fit(train, valid)              # doctest: +SKIP
    """

    name: ClassVar[str] = "cbow"
    predicts: ClassVar[str] = "word given window"
