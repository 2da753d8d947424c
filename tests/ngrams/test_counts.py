"""Tables of n-grams of large vocabularies."""

import numpy as np

from hstree.ngrams.counts import count_ngrams


def test_a_large_vocabulary_keeps_its_words():
    n_words = 2**31 - 1
    ids = np.array([0, 0, 0, n_words - 1, n_words - 2, n_words - 1, n_words - 2], np.int32)
    _, bigrams, trigrams = count_ngrams(ids, 3, n_words)
    context, word = np.divmod(trigrams.grams, n_words)
    shorter, farthest = np.divmod(trigrams.contexts[context], n_words)
    words = [farthest.tolist(), bigrams.contexts[shorter].tolist(), word.tolist()]
    a, b = n_words - 1, n_words - 2
    expected = [(0, 0, 0), (0, 0, a), (0, a, b), (a, b, a), (b, a, b)]
    assert sorted(zip(*words, strict=True)) == sorted(expected)
