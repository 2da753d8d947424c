"""Words that no option chooses: those that occur once in the training split become <unk>."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.splits import Splits, untrained_unk
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import OptionError
from tests.texts import Messages, write_lines

#: "once" words occur once in training, "twice" twice in validation, "new" in test alone.
LINES = [*(f"a b once{i} a" for i in range(8)), "a twice twice", "a b new"]
TOKENS = [line.split() for line in LINES]
WORDS = {"a", "b", EOS, UNK}


@pytest.fixture
def said():
    display = Messages()
    with progress.shown_by(display):
        yield display.lines


@given(st.lists(st.sampled_from(["a", "b", "c", "d", UNK]), max_size=12))
def test_words_that_occur_once_are_left_out(tokens):
    counts = Counter([*tokens, EOS, EOS])
    chosen = Vocabulary.from_counts(list(counts), list(counts.values()))
    words = {word for word in counts if word not in (EOS, UNK)}
    repeated = {word for word in words if counts[word] > 1}
    if UNK in counts or not repeated:  # a text with its own <unk>, and a list of words
        assert set(chosen.words) == counts.keys()
    else:
        assert set(chosen.words) == repeated | {EOS} | ({UNK} if words - repeated else set())
    assert chosen.counts.sum() == sum(counts.values())


def test_all_words_are_kept_where_none_is_to_become_unk(said):
    every = {word for line in TOKENS for word in line}
    assert set(Corpus.from_lines(LINES, unk=False).vocabulary.words) == every | {EOS}
    assert set(Corpus.from_lines(LINES, min_count=1).vocabulary.words) == every | {EOS, UNK}
    assert said == []


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path,
        lambda path: LINES,
        lambda path: TOKENS,
        Corpus.read,
        lambda path: Corpus.from_lines([*LINES, "b"]).select_lines(0, len(LINES)),
        lambda path: Splits.of(Splits.of(LINES)),
        lambda path: Splits(LINES[:8], LINES[8:9], LINES[9:]),
    ],
)
def test_the_words_of_splits_are_those_of_the_training_split(tmp_path, make):
    splits = Splits.of(make(write_lines(tmp_path / "text.txt", LINES)))
    assert [set(part.vocabulary.words) for part in splits] == [WORDS] * 3
    assert [part.n_oov for part in splits] == [8, 2, 1]
    assert splits.train.counts[splits.train.vocabulary.index(UNK)] == 8
    assert untrained_unk(*splits) is None


@pytest.mark.parametrize("held_out", ["valid", "test"])
def test_a_text_for_a_held_out_split_chooses_no_words(held_out):
    splits = Splits.of(LINES, **{held_out: ["c c c"]})
    assert set(splits.train.vocabulary.words) == WORDS | {"twice"}


def test_words_that_were_chosen_stay():
    words = Vocabulary(["a", "new", EOS, UNK], [0, 0, 0, 0])
    for corpus in (
        Corpus.from_lines(LINES, vocabulary=words),
        Corpus.from_lines(LINES).with_vocabulary(words),
        Corpus.from_lines(LINES, min_count=1),
        Corpus.from_lines(LINES, max_size=3),
        Corpus.from_lines(LINES, unk=False),
        Corpus.from_ids([[0, 1, 1]] * 10),
    ):
        assert Splits.of(corpus).train.vocabulary is corpus.vocabulary
    with pytest.raises(OptionError, match="min_count, max_size and unk"):
        Corpus.from_lines(LINES, vocabulary=words, min_count=1)


def test_a_text_with_its_own_unk_keeps_all_words(said):
    splits = Splits.of([f"{line} {UNK}" for line in LINES])
    assert "once3" in splits.train.vocabulary
    assert said == []


def test_the_display_says_it_once_and_names_the_option(said):
    Splits.of(LINES)
    [line] = said
    assert line.startswith("text: words that occur once are read as <unk> (9 of 13 words)")
    assert "--min-count 1" in line
    assert "min_count=1" in line


def test_an_unk_that_training_never_saw_is_named():
    splits = Splits.of(LINES).over_training_words(min_count=1)
    message = untrained_unk(*splits)
    assert "<unk> never occurs in the training split" in message
    assert "2 of 4 tokens (50.00%) of lines 9 to 9 of text" in message
    every = Vocabulary(["a", "b", "new", "twice", EOS, UNK], [1] * 6)
    assert untrained_unk(*(part.with_vocabulary(every) for part in splits)) is None  # trained
    splits = Splits.of(["a b"] * 10).over_training_words(min_count=1)
    assert untrained_unk(*splits) is None  # no <unk>


@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_the_advice_is_a_min_count_that_trains_unk(least):
    """Also where the words that occur once are left out already, but there are none."""
    text = [*["a b c"] * 16, "d " * least, "a", "a new", "b new"]
    splits = Splits.of(text).over_training_words(min_count=least)
    message = untrained_unk(*splits)
    advised = int(re.search(r"\(--min-count\) of (\d+) or more", message).group(1))
    assert advised > least
    assert untrained_unk(*Splits.of(text).over_training_words(min_count=advised)) is None


def test_a_tree_gives_its_labels():
    """Also those of held-out lines, in the order of their training counts."""
    tree = hstree.build("huffman", LINES)
    splits = Splits.of(LINES).over_labels(tree)
    assert "twice" in tree.labels
    assert [set(part.vocabulary.words) for part in splits] == [set(tree.labels)] * 3
    assert splits.train.counts.tolist() == sorted(splits.train.counts.tolist(), reverse=True)
