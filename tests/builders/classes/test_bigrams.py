import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array

from hstree.builders.classes import bigrams
from hstree.builders.classes import exchange as exchange_module
from hstree.builders.classes.bigrams import bigram_counts, bigram_perplexity
from hstree.builders.classes.exchange import exchange
from hstree.builders.classes.merging import merge_by_information
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.kernels import numpy_only
from tests.needs import NUMBA
from tests.texts import corpus_of

LINES = ["a b a", "", "b b <unk> c", "a"]
TEXT = [EOS, "a", "b", "a", EOS, EOS, "b", "b", "<unk>", "c", EOS, "a", EOS]


def log_likelihood(pairs, word_class):
    """Sum of log P(class(w) | v) P(w | class(w)) over pairs (v, w), by relative frequencies."""
    after = Counter(v for v, _ in pairs)
    class_after = Counter((v, word_class[w]) for v, w in pairs)
    word_total = Counter(w for _, w in pairs)
    class_total = Counter(word_class[w] for _, w in pairs)
    return math.fsum(
        math.log(class_after[v, word_class[w]] / after[v])
        + math.log(word_total[w] / class_total[word_class[w]])
        for v, w in pairs
    )


def perplexity(pairs, word_class):
    return math.exp(-log_likelihood(pairs, word_class) / len(pairs))


def assert_no_move_helps(pairs, word_class, n_classes):
    """Assert that no single word has a class in which the likelihood is larger."""
    reached = log_likelihood(pairs, word_class)
    for word in range(len(word_class)):
        for other in range(n_classes):
            moved = [*word_class[:word], other, *word_class[word + 1 :]]
            assert log_likelihood(pairs, moved) <= reached + 1e-8


def mutual_information(pairs, word_class):
    """Average mutual information of the classes of neighbours, in nats."""
    both = Counter((word_class[v], word_class[w]) for v, w in pairs)
    left = Counter(word_class[v] for v, _ in pairs)
    right = Counter(word_class[w] for _, w in pairs)
    n = len(pairs)
    return math.fsum(
        count / n * math.log(count * n / (left[a] * right[b])) for (a, b), count in both.items()
    )


def matrix(pairs, n):
    counts = np.zeros((n, n), np.int64)
    for v, w in pairs:
        counts[v, w] += 1
    return csc_array(counts)


def drawn_pairs(seed, n_words, n_pairs):
    """Neighbours in a text of words drawn with uneven chances; some words may not occur."""
    rng = np.random.default_rng(seed)
    text = rng.choice(n_words, n_pairs + 1, p=rng.dirichlet(np.full(n_words, 0.5))).tolist()
    return list(pairwise(text))


def counted(corpus):
    words, found = corpus.vocabulary.words, bigram_counts(corpus).tocoo()
    entries = zip(found.row, found.col, found.data, strict=True)
    return {(words[v], words[w]): int(n) for v, w, n in entries}


@pytest.mark.parametrize("block", [1, 2, 5, 100])
def test_pairs_run_over_line_ends_and_begin_with_one(tmp_path, monkeypatch, block):
    monkeypatch.setattr(bigrams, "BLOCK_TOKENS", block)
    corpus = corpus_of(tmp_path, LINES)
    assert counted(corpus) == Counter(pairwise(TEXT))
    found = bigram_counts(corpus)
    assert found.sum(axis=0).tolist() == corpus.counts.tolist()
    assert found.has_sorted_indices
    assert found.dtype == np.int64


def test_words_out_of_the_vocabulary_are_unk_or_in_no_pair(tmp_path):
    seen = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["a", EOS, "<unk>"], [1, 1, 1]))
    as_unk = [word if word in ("a", EOS) else "<unk>" for word in TEXT]
    assert counted(seen) == Counter(pairwise(as_unk))
    without = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["a", "b"], [1, 1]))
    assert counted(without) == {("a", "b"): 1, ("b", "a"): 1, ("b", "b"): 1}
    none = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["z"], [1]))
    assert bigram_perplexity(bigram_counts(none), np.zeros(1, np.int64)) is None


@given(st.integers(0, 50), st.integers(1, 12), st.integers(1, 60), st.integers(1, 5))
def test_perplexity_is_that_of_the_definition(seed, n_words, n_pairs, n_classes):
    pairs = drawn_pairs(seed, n_words, n_pairs)
    word_class = np.random.default_rng(seed).integers(n_classes, size=n_words)
    found = bigram_perplexity(matrix(pairs, n_words), word_class)
    assert found == pytest.approx(perplexity(pairs, word_class.tolist()), rel=1e-12)


@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 80), st.data())
def test_no_single_move_helps_and_the_perplexity_is_that_of_the_definition(
    seed, n_words, n_pairs, data
):
    n_classes = data.draw(st.integers(1, n_words))
    pairs = drawn_pairs(seed, n_words, n_pairs)
    rng = data.draw(st.sampled_from([None, np.random.default_rng(0)]))
    found = exchange(matrix(pairs, n_words), n_classes, rng=rng)
    word_class = found.word_class.tolist()
    assert found.perplexities[-1] == pytest.approx(perplexity(pairs, word_class), rel=1e-12)
    assert_no_move_helps(pairs, word_class, n_classes)


def test_perplexity_falls_from_the_words_dealt_in_turn():
    pairs = drawn_pairs(1, 60, 2000)
    found = exchange(matrix(pairs, 60), 7)
    counts = np.bincount([w for _, w in pairs], minlength=60)
    dealt = np.empty(60, int)
    dealt[np.argsort(-counts, kind="stable")] = np.arange(60) % 7
    assert found.perplexities[0] == pytest.approx(perplexity(pairs, dealt.tolist()))
    assert len(found.perplexities) > 2
    assert (np.diff(found.perplexities) < 0).all()
    assert found.moves >= np.count_nonzero(found.word_class != dealt)


def test_words_without_pairs_stay_where_they_were_dealt():
    pairs = [(0, 1), (1, 0)] * 5
    found = exchange(matrix(pairs, 6), 2)
    assert found.word_class[2:].tolist() == [0, 1, 0, 1]
    assert exchange(matrix([], 3), 2).perplexities == ()
    assert exchange(matrix([], 3), 2).word_class.tolist() == [0, 1, 0]


def test_blocks_of_the_counts_do_not_matter(monkeypatch):
    counts = matrix(drawn_pairs(3, 50, 1500), 50)
    whole = exchange(counts, 5)
    monkeypatch.setattr(exchange_module, "BLOCK_ENTRIES", 7)
    parts = exchange(counts, 5)
    assert parts.word_class.tolist() == whole.word_class.tolist()
    assert exchange(counts, 5).perplexities == parts.perplexities


@pytest.mark.parametrize("n_classes", [2, 7, 40])
@pytest.mark.parametrize("block", [1 << 16, 100])
def test_compiled_moves_are_those_of_numpy(monkeypatch, n_classes, block):
    """The same words move, for the same gains, with counts of many sizes and in any blocks."""
    pytest.importorskip("numba", reason=NUMBA)
    monkeypatch.setattr(exchange_module, "BLOCK_ENTRIES", block)
    rng = np.random.default_rng(n_classes)
    pairs = csc_array((rng.pareto(0.7, (60, 300)) * (rng.random((60, 300)) < 0.2)).astype(np.int64))
    fast = exchange(pairs, n_classes)
    with numpy_only():
        slow = exchange(pairs, n_classes)
    assert fast.moves == slow.moves > 100
    assert fast.word_class.tolist() == slow.word_class.tolist()
    assert fast.perplexities == pytest.approx(slow.perplexities, rel=1e-12)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["numpy", "compiled"])
@pytest.mark.parametrize("seed", range(5))
def test_contexts_that_occur_twice_decide_on_the_classes(seed, is_compiled):
    """No move of a single word helps, by the definition, where no context occurs more often."""
    if is_compiled:
        pytest.importorskip("numba", reason=NUMBA)
    n_words, n_contexts, n_classes = 10, 40, 3
    followers = np.random.default_rng(seed).integers(n_words, size=2 * n_contexts)
    pairs = list(zip(np.repeat(np.arange(n_contexts), 2).tolist(), followers.tolist(), strict=True))
    with numpy_only(not is_compiled):
        found = exchange(matrix(pairs, n_contexts)[:, :n_words], n_classes)
    assert found.perplexities[0] > found.perplexities[-1]
    assert_no_move_helps(pairs, found.word_class.tolist(), n_classes)


@pytest.mark.parametrize("tolerance", [0.5, 0.01, 0.002])
def test_the_last_sweep_is_the_first_that_gains_too_little(tolerance):
    counts = matrix(drawn_pairs(1, 80, 3000), 80)
    whole, found = exchange(counts, 7), exchange(counts, 7, tolerance)
    n = len(found.perplexities)
    fell = 1 - np.array(whole.perplexities[1:]) / whole.perplexities[:-1]
    assert n - 1 == np.argmax(fell < tolerance) + 1
    assert n < len(whole.perplexities)
    assert found.perplexities == pytest.approx(whole.perplexities[:n], rel=1e-12)


@given(st.integers(0, 999), st.integers(1, 8), st.integers(2, 60))
def test_each_merge_loses_least_mutual_information(seed, n, n_pairs):
    pairs = drawn_pairs(seed, n, n_pairs)
    merges = merge_by_information(matrix(pairs, n).toarray())
    assert merges.shape == (n - 1, 2)
    item = list(range(n))  # of each class, the merge that it is in by now
    for number, (a, b) in enumerate(merges.tolist()):
        assert a < b
        alive = sorted(set(item))
        left = {
            (x, y): mutual_information(pairs, [x if of == y else of for of in item])
            for i, x in enumerate(alive)
            for y in alive[i + 1 :]
        }
        assert left[a, b] == pytest.approx(max(left.values()), abs=1e-9)
        item = [n + number if of in (a, b) else of for of in item]
    assert set(item) == {2 * n - 2}


def test_pairs_that_never_occur_are_legal():
    assert merge_by_information(np.zeros((4, 4), int)).tolist() == [[0, 1], [2, 4], [3, 5]]
    assert merge_by_information(np.zeros((1, 1), int)).tolist() == []
