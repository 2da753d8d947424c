"""Overlap of a text with a vocabulary."""

import pytest

from hstree.data.overlap import overlap
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from tests.texts import corpus_of

LINES = ["a b c", "a <unk> d", "", "a a b"]


def words(*names):
    return Vocabulary(names, [1] * len(names))


def seen(tmp_path, *names):
    return corpus_of(tmp_path, LINES, vocabulary=words(*names))


def test_specials_are_not_counted_as_shared(tmp_path):
    counts = overlap(seen(tmp_path, "a", "b", "z", "<unk>", "<eos>"))
    assert (counts.shared, counts.words) == (2, 4)
    # c and d; a literal <unk> is in the vocabulary.
    assert (counts.tokens, counts.oov) == (13, 2)
    assert not counts.is_small
    assert overlap(seen(tmp_path, "a", "<unk>", "<eos>")).is_small
    assert "2 of the 4 words of text.txt" in str(counts)


def test_everything_shared(tmp_path):
    counts = overlap(seen(tmp_path, "a", "b", "c", "d", "<unk>", "<eos>"))
    assert (counts.shared, counts.oov, counts.is_small) == (4, 0, False)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x", "<unk>", "<eos>"], r"no word of text\.txt is among the 3 labels"),
        (["a", "b", "<eos>"], "3 of its 13 tokens are not, and there is no <unk>"),
        (["a", "b", "<unk>"], "hold no <eos>"),
    ],
)
def test_words_that_do_not_fit_the_text_are_refused(tmp_path, names, message):
    with pytest.raises(InputError, match=message):
        overlap(seen(tmp_path, *names))


def test_a_text_of_empty_lines_shares_all_that_it_has(tmp_path):
    text = corpus_of(tmp_path, ["", ""], vocabulary=words("x", "<unk>", "<eos>"))
    counts = overlap(text)
    assert (counts.shared, counts.words, counts.tokens, counts.oov) == (0, 0, 2, 0)


def test_a_limited_corpus_reads_the_rest_as_unk(tmp_path):
    text = seen(tmp_path, "a", "b", "c", "d", "<unk>", "<eos>")
    limited = text.limited_to(words("a", "z"))
    assert limited.vocabulary is text.vocabulary
    assert limited.ids(slice(0, 4)).tolist() == [0, -1, -1, 5]
    assert limited.n_oov == 5
    assert limited.counts.tolist() == [4, 0, 0, 0, 5, 4]
    # What is limited stays so: in some of its lines, and through another vocabulary.
    assert limited.select_lines(0, 1).n_oov == 2
    assert limited.with_vocabulary(words("b", "a", "<unk>", "<eos>")).n_oov == 5
