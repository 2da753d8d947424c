"""Tables of n-grams of large vocabularies, and their kernels."""

import numpy as np
import pytest

from hstree._compiled import numpy_alone
from hstree.ngrams.counts import count_ngrams, numbered
from tests.needs import NUMBA


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


@pytest.mark.parametrize("largest", [0, 1, 2**11 - 1, 2**11, 2**22, 2**62])
@pytest.mark.parametrize("n", [0, 1, 5_000, 600_000])
def test_kernels_number_keys_as_numpy_does(n, largest):
    pytest.importorskip("numba", reason=NUMBA)
    rng = np.random.default_rng(n)
    some = rng.integers(0, largest, max(1, n // 3), endpoint=True)
    keys = rng.choice(some, n)
    keys[n // 2 : n // 2 + 1] = largest
    found = numbered(keys.copy())
    with numpy_alone():
        expected = numbered(keys)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
