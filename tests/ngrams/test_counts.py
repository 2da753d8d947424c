"""Tables of n-grams against counting by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree._compiled import numpy_alone
from hstree.ngrams.counts import count_ngrams, find, numbered
from tests.needs import NUMBA


def spelled(tables, n_words):
    """Return for each order {n-gram as words: count}, read from the tables alone."""
    contexts, by_order = {0: ()}, []
    for order, table in enumerate(tables):
        if order:
            split = [divmod(key, n_words) for key in table.contexts.tolist()]
            contexts = {n: (word, *contexts[short]) for n, (short, word) in enumerate(split)}
        grams = [divmod(key, n_words) for key in table.grams.tolist()]
        counts = table.counts.tolist()
        by_order.append({(*contexts[c], w): n for (c, w), n in zip(grams, counts, strict=True)})
        assert len(by_order[-1]) == len(grams)
    return by_order


@pytest.mark.parametrize("boundary", [None, 0])
@given(text=st.lists(st.integers(0, 3), min_size=1, max_size=40), order=st.integers(1, 5))
def test_tables_hold_what_counting_by_hand_finds(boundary, text, order):
    ids = np.array([0] * (order - 1) + text, np.int32)
    seen = [Counter() for _ in range(order + 2)]
    for end in range(order, len(ids) + 1):
        for k in range(1, order + 1):
            gram = tuple(ids[end - k : end].tolist())
            if boundary is None or boundary not in gram[1:-1]:
                seen[k][gram] += 1
    expected = []
    for k in range(1, order + 1):
        left = Counter(gram[1:] for gram in seen[k + 1])
        plain = seen[k] if k == order else Counter()
        if boundary is not None and k > 1:
            plain = plain | Counter({g: n for g, n in seen[k].items() if g[0] == boundary})
        expected.append({gram: plain[gram] or left[gram] for gram in seen[k]})
    tables = count_ngrams(ids, order, 4, boundary)
    assert spelled(tables, 4) == expected
    for table in tables:
        assert (np.diff(table.grams) > 0).all()
        assert (np.diff(table.contexts) > 0).all()


def test_a_large_vocabulary_keeps_its_words():
    n_words = 2**31 - 1
    ids = np.array([0, 0, 0, n_words - 1, n_words - 2, n_words - 1, n_words - 2], np.int32)
    last = spelled(count_ngrams(ids, 3, n_words), n_words)[-1]
    a, b = n_words - 1, n_words - 2
    assert last == {(0, 0, 0): 1, (0, 0, a): 1, (0, a, b): 1, (a, b, a): 1, (b, a, b): 1}


def test_find_tells_what_is_not_there():
    table = np.array([2, 5, 9])
    assert find(table, np.array([1, 2, 3, 5, 9, 10])).tolist() == [-1, 0, -1, 1, 2, -1]
    assert find(table[:0], np.array([1])).tolist() == [-1]
    assert find(table, table[:0]).tolist() == []


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
