"""Overlap of a text with a vocabulary."""

import pytest

from hstree.data.splits import overlap
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from tests.texts import corpus_of

LINES = ["a b c", "a <unk> d", "", "a a b"]


def words(*names):
    return Vocabulary(names, [1] * len(names))


def seen(tmp_path, *names):
    return corpus_of(tmp_path, LINES, vocabulary=words(*names))


def test_a_text_of_many_other_words_is_said_and_specials_are_not_counted_as_shared(tmp_path):
    most = seen(tmp_path, "a", "b", "z", "<unk>", "<eos>")
    assert (overlap(most), most.n_known_words) == (None, 2)
    said = "1 of the 4 words of text.txt are among the labels; 4 of its 13 tokens are not, "
    assert overlap(seen(tmp_path, "a", "<unk>", "<eos>")).startswith(said)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x", "<unk>", "<eos>"], r"no word of text\.txt is among the 3 labels"),
        (["a", "b", "<eos>"], "3 of 13 tokens of text.txt are not among the labels, which do not"),
    ],
)
def test_words_that_do_not_fit_the_text_are_refused(tmp_path, names, message):
    with pytest.raises(InputError, match=message):
        overlap(seen(tmp_path, *names))


def test_a_text_of_empty_lines_shares_all_that_it_has(tmp_path):
    text = corpus_of(tmp_path, ["", ""], vocabulary=words("x", "<unk>", "<eos>"))
    assert (overlap(text), text.n_known_words) == (None, 0)
