"""Corpus: ids, counts and splits against a plain reading of the text."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from tests.needs import shared
from tests.texts import corpus_of

LINES = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "D", "é", "<unk>", "<eos>"]), max_size=6),
    min_size=1,
    max_size=30,
)


def joined(lines):
    return [" ".join(words) for words in lines]


def tokens_of(lines):
    return [word for words in lines for word in [*words, "<eos>"]]


def words_of(corpus, ids):
    return [corpus.vocabulary.words[i] if i >= 0 else None for i in ids]


@given(LINES, st.booleans(), st.booleans(), st.data())
def test_the_words_alone_are_those_that_the_vocabulary_names(lines, eos, unk, data):
    words = ["a", "b", "D", *["<eos>"] * eos, *["<unk>"] * unk]
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    corpus = Corpus.from_tokens(lines, vocabulary=Vocabulary(words, [1] * len(words)))
    found = corpus.select_lines(start, stop).select_words()
    expected = [[*line, "<eos>"] for line in lines[start:stop]]
    if not eos:
        expected = [[w for w in line if w in words or (unk and w != "<eos>")] for line in expected]
    tokens = [word for line in expected for word in line]
    assert found.words(slice(None)) == tokens
    assert np.diff(found.line_start).tolist() == [len(line) for line in expected]
    assert found.n_oov == sum(word not in words for word in tokens)
    assert found.counts.sum() == len(tokens) - found.n_oov * (not unk)
    assert found.source == corpus.select_lines(start, stop).source
    assert found.select_words() is found
    last = found.select_lines(found.n_lines - 1, found.n_lines)
    assert last.words(slice(None)) == expected[-1]


@given(LINES, st.data())
def test_ids_and_counts_of_any_lines_with_any_vocabulary(tmp_path_factory, lines, data):
    some = st.sampled_from(["a", "b", "D", "x", "<unk>", "<eos>"])
    words = data.draw(st.lists(some, min_size=1, unique=True))
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start + 1, len(lines)))
    whole = corpus_of(tmp_path_factory.mktemp("corpus"), joined(lines))
    vocabulary = Vocabulary(words, np.arange(len(words)))

    selected = whole.select_lines(start, stop).with_vocabulary(vocabulary)
    expected = tokens_of(lines[start:stop])
    unk = "<unk>" if "<unk>" in words else None
    read_as = [word if word in words else unk for word in expected]
    assert words_of(selected, selected.ids()) == read_as
    seen = [word if word in words else None for word in expected]
    assert selected.is_oov().tolist() == [word is None for word in seen]
    assert selected.ids().dtype == np.int32
    drawn = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=8))
    positions = np.array(drawn, np.int64)
    assert words_of(selected, selected.ids(positions)) == [read_as[i] for i in positions]
    assert selected.is_oov(positions).tolist() == [seen[i] is None for i in positions]
    assert (selected.n_lines, selected.lines) == (stop - start, (start, stop))
    assert selected.n_tokens == len(selected) == len(expected)
    assert selected.n_oov == seen.count(None)
    counts = Counter(seen)
    if "<unk>" in words:
        counts["<unk>"] += counts[None]
    assert selected.counts.tolist() == [counts[word] for word in words]
    n = data.draw(st.integers(1, len(expected)))
    first = selected.first_tokens(n)
    longer = selected.select_lines(0, min(first.n_lines + 1, selected.n_lines))
    assert len(first) <= n or first.n_lines == 1
    assert longer.lines == first.lines or len(longer) > n
    starts = selected.line_start
    assert (
        starts.tolist() == np.cumsum([0, *(len(line) + 1 for line in lines[start:stop])]).tolist()
    )


@given(LINES, st.integers(1, 3))
def test_a_vocabulary_of_selected_lines_counts_these_alone(tmp_path_factory, lines, min_count):
    folder = tmp_path_factory.mktemp("corpus")
    half = len(lines) // 2
    selected = corpus_of(folder, joined(lines)).select_lines(half, len(lines))
    alone = corpus_of(folder, joined(lines[half:]), name="alone.txt", min_count=min_count)
    chosen = selected.select_vocabulary(min_count=min_count)
    assert chosen.words == alone.vocabulary.words
    assert chosen.counts.tolist() == alone.vocabulary.counts.tolist() == alone.counts.tolist()
    assert chosen.source == selected.source


def test_by_default_every_word_is_known(tmp_path):
    corpus = corpus_of(tmp_path, ["b a b", "", "A"])
    assert corpus.vocabulary.words == ("<eos>", "b", "A", "a")
    assert corpus.n_oov == 0
    assert corpus.counts.tolist() == corpus.vocabulary.counts.tolist() == [3, 2, 1, 1]
    lower = corpus_of(tmp_path, ["b a b", "", "A"], lower=True)
    assert lower.vocabulary.words == ("<eos>", "a", "b")


def test_unk_is_among_the_words_unless_it_is_left_out(tmp_path):
    assert corpus_of(tmp_path, ["a"], unk=True).vocabulary.words == ("<eos>", "a", "<unk>")
    assert corpus_of(tmp_path, ["a"], unk=False).vocabulary.words == ("<eos>", "a")
    assert Corpus.read(tmp_path / "text.txt", cache=tmp_path).vocabulary.unk == "<unk>"


def test_ids_take_arrays_of_any_shape_and_are_new(tmp_path):
    corpus = corpus_of(tmp_path, ["a b c"])
    ids = corpus.ids(np.array([[0, 1], [2, -1]]))
    assert words_of(corpus, ids.ravel()) == ["a", "b", "c", "<eos>"]
    ids[:] = 0
    assert words_of(corpus, corpus.ids(slice(0, 2))) == ["a", "b"]
    with pytest.raises(IndexError):
        corpus.ids(np.array([4]))


@pytest.mark.parametrize(
    ("n_lines", "train", "valid", "test"), [(10, 8, 9, 10), (19, 17, 18, 19), (100, 80, 90, 100)]
)
def test_splits_are_the_last_tenths_rounded_down(tmp_path, n_lines, train, valid, test):
    corpus = corpus_of(tmp_path, [f"w{i}" for i in range(n_lines)])
    assert [split.lines for split in corpus.splits()] == [(0, train), (train, valid), (valid, test)]
    whole = (0, n_lines)
    for texts, lines in (
        ({"test": corpus}, [(0, valid), (valid, test), whole]),
        ({"valid": corpus}, [(0, valid), whole, (valid, test)]),
        ({"valid": corpus, "test": corpus}, [whole, whole, whole]),
    ):
        assert [split.lines for split in Splits.of(corpus, **texts)] == lines


def test_fewer_than_ten_lines_have_no_tenth(tmp_path):
    corpus = corpus_of(tmp_path, ["a"] * 9)
    with pytest.raises(InputError, match=r"text\.txt has 9 lines, .* ten or more"):
        corpus.splits()
    with pytest.raises(InputError, match="has 1 line, "):
        corpus.select_lines(0, 1).splits()


@pytest.mark.parametrize("lines", [(0, 0), (2, 1), (-1, 2), (0, 4), (3, 4)])
def test_no_such_lines(tmp_path, lines):
    with pytest.raises(InputError, match="lines"):
        corpus_of(tmp_path, ["a", "b", "c"]).select_lines(*lines)


def test_source_names_the_lines_and_no_folder(tmp_path):
    corpus = corpus_of(tmp_path, ["a"] * 20)
    train = corpus.splits()[0]
    assert train.source == {
        "kind": "corpus",
        "name": "text.txt",
        "sha256": corpus.sha256,
        "lines": [0, 16],
    }
    assert corpus.vocabulary.source == corpus.source
    assert corpus_of(tmp_path, ["a"], lower=True).source["lower"] is True
    assert repr(train) == "Corpus(text.txt, lines 0 to 16, 32 tokens, 2 words)"


def test_a_vocabulary_that_is_passed_stays_as_it_is(tmp_path):
    vocabulary = Vocabulary(["b", "x"], [7, 8])
    corpus = corpus_of(tmp_path, ["a b"], vocabulary=vocabulary)
    assert corpus.vocabulary is vocabulary
    assert corpus.counts.tolist() == [1, 0]
    assert corpus.n_oov == 2
    with pytest.raises(ValueError, match="read-only"):
        corpus.counts[0] = 2
    for option in ({"min_count": 2}, {"max_size": 5}, {"unk": False}):
        with pytest.raises(OptionError, match="select a vocabulary, but one is given"):
            corpus_of(tmp_path, ["a b"], vocabulary=vocabulary, **option)


def test_more_than_a_million_tokens_are_counted(tmp_path):
    corpus = corpus_of(tmp_path, ["a b a"] * 300_000)
    assert corpus.vocabulary.words == ("a", "<eos>", "b")
    assert corpus.counts.tolist() == [600_000, 300_000, 300_000]


@pytest.mark.parametrize(
    ("split", "tokens"), [("train", 929_589), ("valid", 73_760), ("test", 82_430)]
)
def test_penn_treebank(tmp_path, split, tokens):
    vocabulary = Corpus.read(shared("ptb/ptb.train.txt"), cache=tmp_path).vocabulary
    assert len(vocabulary) == 10_000
    assert {vocabulary.unk, vocabulary.eos} == {"<unk>", "<eos>"}
    corpus = Corpus.read(shared(f"ptb/ptb.{split}.txt"), vocabulary=vocabulary, cache=tmp_path)
    assert len(corpus) == tokens
    assert corpus.n_oov == 0
