from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree import progress
from hstree.builders.word_classes import exchange as module
from hstree.builders.word_classes.exchange import exchange
from tests.builders.word_classes.brute import drawn_pairs, log_likelihood, matrix, perplexity


@settings(max_examples=60)
@given(st.integers(0, 999), st.integers(1, 9), st.integers(1, 80), st.data())
def test_no_single_move_helps_and_the_perplexity_is_that_of_the_definition(
    seed, n_words, n_pairs, data
):
    n_classes = data.draw(st.integers(1, n_words))
    pairs = drawn_pairs(seed, n_words, n_pairs)
    found = exchange(matrix(pairs, n_words), n_classes)
    class_of = found.class_of.tolist()
    assert found.perplexities[-1] == pytest.approx(perplexity(pairs, class_of), rel=1e-12)
    reached = log_likelihood(pairs, class_of)
    for word in range(n_words):
        for other in range(n_classes):
            moved = [*class_of[:word], other, *class_of[word + 1 :]]
            assert log_likelihood(pairs, moved) <= reached + 1e-8


@settings(max_examples=30)
@given(st.integers(0, 999), st.integers(2, 40))
def test_each_move_gains_what_it_says(seed, n_words):
    pairs = drawn_pairs(seed, n_words, 300)
    class_of = np.arange(n_words) % max(2, n_words // 3)
    state = module._Counts(matrix(pairs, n_words), class_of, int(class_of.max()) + 1, 1e-9)
    for word in range(n_words):
        before = log_likelihood(pairs, class_of.tolist())
        gained = state.move(word)
        after = log_likelihood(pairs, class_of.tolist())
        assert after - before == pytest.approx(gained, abs=1e-8)
        assert gained >= 0


def test_perplexity_falls_from_the_words_dealt_in_turn():
    pairs = drawn_pairs(1, 60, 2000)
    found = exchange(matrix(pairs, 60), 7)
    counts = np.bincount([w for _, w in pairs], minlength=60)
    dealt = np.empty(60, int)
    dealt[np.argsort(-counts, kind="stable")] = np.arange(60) % 7
    assert found.perplexities[0] == pytest.approx(perplexity(pairs, dealt.tolist()))
    assert len(found.perplexities) > 2
    assert (np.diff(found.perplexities) < 0).all()
    assert found.moves >= np.count_nonzero(found.class_of != dealt)


@pytest.mark.parametrize("n_classes", [3, 6])
def test_planted_classes_come_back(n_classes):
    """Words of a class follow, and are followed by, each other class with chances of its own."""
    rng = np.random.default_rng(n_classes)
    planted = rng.integers(n_classes, size=10 * n_classes)
    chain = rng.dirichlet(np.full(n_classes, 0.3), size=n_classes)
    members = [np.flatnonzero(planted == c) for c in range(n_classes)]
    text, state = [], 0
    for _ in range(30_000):
        state = rng.choice(n_classes, p=chain[state])
        text.append(int(rng.choice(members[state])))
    found = exchange(matrix(list(pairwise(text)), len(planted)), n_classes)
    pairs_of_classes = set(zip(planted.tolist(), found.class_of.tolist(), strict=True))
    assert len(pairs_of_classes) == n_classes


def test_words_without_pairs_stay_where_they_were_dealt():
    pairs = [(0, 1), (1, 0)] * 5
    found = exchange(matrix(pairs, 6), 2)
    assert found.class_of[2:].tolist() == [0, 1, 0, 1]
    assert exchange(matrix([], 3), 2).perplexities == ()
    assert exchange(matrix([], 3), 2).class_of.tolist() == [0, 1, 0]


def test_contexts_seen_once_are_no_rows_and_yet_part_of_the_perplexity():
    pairs = [(0, 1), (0, 2), (0, 1)] + [(v, v % 4) for v in range(4, 30)]
    counts, class_of = matrix(pairs, 30), np.arange(30) % 3
    assert module._Counts(counts, class_of, 3, 0.0).table.shape == (1, 3)
    found = exchange(counts, 3)
    assert found.perplexities[-1] == pytest.approx(perplexity(pairs, found.class_of.tolist()))


def test_blocks_of_the_counts_do_not_matter(monkeypatch):
    counts = matrix(drawn_pairs(3, 50, 1500), 50)
    whole = exchange(counts, 5)
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", 7)
    parts = exchange(counts, 5)
    assert parts.class_of.tolist() == whole.class_of.tolist()
    assert exchange(counts, 5).perplexities == parts.perplexities


def test_progress_tells_the_perplexity():
    notes = []

    class Sink:
        def start(self, title, total, unit):
            return self

        def stop(self, task):
            pass

        def advance(self, amount=1):
            pass

        def note(self, text):
            notes.append(text)

    with progress.shown_by(Sink()):
        found = exchange(matrix(drawn_pairs(3, 50, 1500), 50), 5)
    assert notes[-1] == (
        f"sweep {len(found.perplexities)}, {found.moves} moves, {found.perplexities[-1]:.2f}"
    )
