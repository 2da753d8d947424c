"""Symmetric windows against a plain loop: whole for scoring, random for training."""

import tracemalloc

import numpy as np
import pytest

from hstree.data.windows import LONGEST, LineWindows, SymmetricWindows, keep_probability
from tests.texts import corpus_of

LINES = ["a b c d e f", "", "g", "a zebra a b", "h " * 9, "c d"]


@pytest.fixture
def text(tmp_path):
    """Return a corpus with <unk> for one word, and its lines as words of the vocabulary."""
    whole = corpus_of(tmp_path, LINES)
    words = whole.select_vocabulary(min_count=1, unk=True).words
    known = type(whole.vocabulary)([w for w in words if w != "zebra"], [1] * (len(words) - 1))
    lines = [["<unk>" if w == "zebra" else w for w in [*line.split(), "<eos>"]] for line in LINES]
    return whole.with_vocabulary(known), lines


def around(line, place, n):
    """Return the window of a word as a plain loop finds it; None beyond the line."""
    places = [*range(place - n, place), *range(place + 1, place + n + 1)]
    return [line[i] if 0 <= i < len(line) else None for i in places]


@pytest.mark.parametrize("block", [1, 3, 7, 1000])
@pytest.mark.parametrize("n", [1, 3])
def test_windows_to_score_are_whole_wherever_the_text_is_cut(text, monkeypatch, block, n):
    corpus, lines = text
    monkeypatch.setattr("hstree.data.windows.BLOCK", block)
    words = [*corpus.vocabulary.words, None]  # -1 is the last one
    found = []
    for contexts, targets, oov in SymmetricWindows(corpus, n, 0.01).batches(4):
        assert len(targets) <= 4
        for ids, target, unknown in zip(contexts, targets, oov, strict=True):
            found.append(([words[i] for i in ids], words[target], bool(unknown)))
    expected = [
        (around(line, place, n), word, word == "<unk>")
        for line in lines
        for place, word in enumerate(line)
    ]
    assert found == expected


def test_windows_to_train_reach_as_far_as_is_drawn(tmp_path):
    line = [*"abcdefg", "<eos>"]
    corpus = corpus_of(tmp_path, ["a b c d e f g"])
    words = [*corpus.vocabulary.words, None]  # -1 is the last one
    rng = np.random.default_rng(0)
    reaches = []
    for _ in range(300):
        places = []
        for contexts, targets, _ in SymmetricWindows(corpus, 3).training_batches(5, rng):
            for ids, target in zip(contexts, targets, strict=True):
                place = line.index(words[target])
                windows = [[None] * (3 - n) + around(line, place, n) for n in (1, 2, 3)]
                window = [words[i] for i in ids]
                reach = next(n for n in (3, 2, 1) if window[: 3 + n] == windows[n - 1])
                assert set(window[3 + reach :]) <= {None}
                places.append(place)
                reaches += [reach] * (place == 3)  # which has three words on both sides
        assert sorted(places) == list(range(8))
    np.testing.assert_allclose(np.bincount(reaches)[1:] / 300, 1 / 3, atol=0.1)


def test_words_left_out_let_windows_reach_further(tmp_path):
    corpus = corpus_of(tmp_path, ["a the the the the b"] * 200)
    names = np.array([*corpus.vocabulary.words, ""])
    windows = SymmetricWindows(corpus, 1, 0.01)
    assert windows.kept[corpus.vocabulary.index("the")] < 0.2
    pairs = set()
    for contexts, targets, _ in windows.training_batches(50, np.random.default_rng(0)):
        for ids, target in zip(contexts, targets, strict=True):
            pairs.add((names[target], *names[ids]))
    assert ("a", "", "b") in pairs
    assert ("b", "a", "") in pairs
    assert ("b", "a", "<eos>") in pairs


def test_frequent_words_are_kept_as_by_word2vec():
    counts = np.array([700_000, 200_000, 1_000, 10, 0])
    found = keep_probability(counts, 1e-3)
    for count, kept in zip(counts.tolist(), found, strict=True):
        # The program's own line: ran = (sqrt(cn / (sample * total)) + 1) * (sample * total) / cn.
        total = 1e-3 * counts.sum()
        expected = (np.sqrt(count / total) + 1) * total / count if count else 1
        assert kept == pytest.approx(min(expected, 1))
    assert keep_probability(counts, 0).tolist() == [1] * 5
    assert keep_probability(np.array([1, 9]), 1e-3)[0] == pytest.approx(11 * 0.01)


def test_the_training_counts_are_those_of_the_batches_on_average(text):
    windows = SymmetricWindows(text[0], 2, 0.02)
    rng = np.random.default_rng(0)
    seen = np.zeros(len(text[0].vocabulary))
    for _ in range(500):
        for _, targets, _ in windows.training_batches(50, rng):
            seen += np.bincount(targets, minlength=len(seen))
    expected = windows.training_counts
    assert expected.sum() < 0.8 * len(windows)
    np.testing.assert_allclose(seen / 500, expected, atol=0.2)


def test_lines_are_read_once_each_and_long_ones_are_cut(tmp_path):
    lines = ["a b c", " ".join(["d"] * (2 * LONGEST + 5)), "", *["e f"] * 40]
    text = corpus_of(tmp_path, lines)
    batches, others = (
        list(LineWindows(text, 2).training_batches(50, np.random.default_rng(seed)))
        for seed in (0, 1)
    )
    lengths = np.concatenate([np.diff(start) for start, _, _ in batches])
    assert lengths.sum() == len(text)
    assert sorted(lengths)[-3:] == [6, LONGEST, LONGEST]
    counts = np.bincount(np.concatenate([ids for _, ids, _ in batches]), minlength=6)
    np.testing.assert_array_equal(counts, text.counts)
    assert [len(ids) for _, ids, _ in others] != [len(ids) for _, ids, _ in batches]


@pytest.mark.parametrize("kind", [SymmetricWindows, LineWindows])
@pytest.mark.parametrize("read", ["batches", "training_batches"])
def test_memory_does_not_grow_with_the_lines(tmp_path, monkeypatch, kind, read):
    monkeypatch.setattr("hstree.data.windows.BLOCK", 1_000)
    windows = kind(corpus_of(tmp_path, ["a"] * 200_000), 2, 0.01)
    tracemalloc.start()
    next(getattr(windows, read)(500, np.random.default_rng(0)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400_000  # two bytes per line
