"""Corpora from data in memory: lines, lists of tokens, and token ids."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.data.vocabulary import EOS
from hstree.errors import InputError
from tests.texts import write_lines

WORD = st.text(st.sampled_from("abé"), min_size=1, max_size=3)
LINES = st.lists(st.lists(WORD, max_size=4), min_size=1, max_size=12)


class Column:
    """A column of a data set: items by index, a length, and an iterator."""

    def __init__(self, items):
        self._items = items

    def __len__(self):
        return len(self._items)

    def __getitem__(self, at):
        return self._items[at]

    def __iter__(self):
        return iter(self._items)


def same(one, other):
    return (
        one.vocabulary.words == other.vocabulary.words
        and one.ids().tolist() == other.ids().tolist()
        and one.line_start.tolist() == other.line_start.tolist()
        and one.counts.tolist() == other.counts.tolist()
    )


@given(LINES)
def test_lines_and_tokens_are_the_corpus_of_a_file_of_them(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("texts")
    texts = [" ".join(line) for line in lines]
    read = Corpus.read(write_lines(folder / "text.txt", texts), cache=folder)
    for corpus in (Corpus.from_lines(texts), Corpus.from_tokens(lines)):
        assert same(corpus, read)
        assert corpus.sha256 == read.sha256


@pytest.mark.parametrize("kind", [list, iter, Column, np.array, tuple])
def test_any_iterable_of_text_is_lines(kind):
    lines = ["the cat", "the dog sat"]
    assert same(Corpus.from_lines(kind(lines)), Corpus.from_lines(lines))
    assert same(Corpus.of(kind(lines)), Corpus.from_lines(lines))


@pytest.mark.parametrize("kind", [list, iter, Column])
@pytest.mark.parametrize("line", [list, tuple, iter, np.array])
def test_any_iterable_of_lists_is_tokens(kind, line):
    lines = [["the", "cat"], ["the", "dog", "sat"]]
    expected = Corpus.from_tokens(lines)
    assert same(Corpus.from_tokens(kind([line(tokens) for tokens in lines])), expected)
    if line is not iter:
        assert same(Corpus.of(kind([line(tokens) for tokens in lines])), expected)


def test_a_column_of_a_data_frame_is_lines():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install '.[notebook]'")
    lines = ["the cat", "the dog sat"]
    assert same(Corpus.of(pandas.Series(lines)), Corpus.from_lines(lines))


def test_a_line_with_line_ends_is_several():
    assert same(Corpus.from_lines(["a b\n", "c\nd"]), Corpus.from_lines(["a b", "c", "d"]))


def test_a_token_may_hold_white_space():
    corpus = Corpus.from_tokens([["New York", "is"], ["big"]])
    assert corpus.words() == ["New York", "is", "<eos>", "big", "<eos>"]
    assert corpus.sha256 != Corpus.from_tokens([["New", "York", "is"], ["big"]]).sha256


def test_tokens_that_are_numbers_become_text():
    assert Corpus.from_tokens([[30, 4], [30]]).words() == ["30", "4", "<eos>", "30", "<eos>"]


def test_words_are_chosen_as_those_of_a_file():
    corpus = Corpus.from_lines(["a A b", "a"], min_count=2, lower=True)
    assert corpus.vocabulary.words == ("a", "<eos>", "<unk>")
    tokens = Corpus.from_tokens([["a", "b"]], vocabulary=corpus.vocabulary)
    assert tokens.ids().tolist() == [0, 2, 1]


def test_ids_are_those_of_the_vocabulary():
    corpus = Corpus.from_ids(np.array([2, 0, 3, 1, 3], np.uint16), labels=list("abcd"), eos=3)
    assert corpus.vocabulary.words == ("a", "b", "c", "<eos>")
    assert corpus.ids().tolist() == [2, 0, 3, 1, 3]
    assert corpus.line_start.tolist() == [0, 3, 5]
    assert corpus.vocabulary.counts.tolist() == [1, 1, 1, 2]
    assert same(Corpus.from_ids([2, 0, 3, 1, 3], labels=list("abcd"), eos="d"), corpus)


@pytest.mark.parametrize("kind", [list, iter, Column])
@pytest.mark.parametrize("line", [list, np.array])
def test_lines_of_ids_get_their_ends(kind, line):
    lines = [line([4, 1]), line([0]), line([2, 2])]
    corpus = Corpus.from_ids(kind(lines))
    assert corpus.vocabulary.words == ("0", "1", "2", "3", "4", "<eos>")
    assert corpus.ids().tolist() == [4, 1, 5, 0, 5, 2, 2, 5]
    assert corpus.line_start.tolist() == [0, 3, 5, 8]
    assert same(Corpus.of(kind(lines)), corpus)


def test_lines_that_have_ends_get_none_and_empty_ones_do():
    corpus = Corpus.from_ids([[1, 0], [], [1]], eos=0)
    assert corpus.ids().tolist() == [1, 0, 0, 1, 0]
    assert corpus.line_start.tolist() == [0, 2, 3, 5]


class Tokenizer:
    """Tokenizer as `from_ids` uses it: the ids of its tokens, and perhaps the end of a text."""

    def __init__(self, *tokens, eos=None):
        self.eos_token = eos
        self.get_vocab = lambda: {token: i for i, token in reversed(list(enumerate(tokens)))}


@pytest.mark.parametrize(
    "ids",
    [
        [{"input_ids": [2, 0], "attention_mask": [1, 1]}, {"input_ids": [1]}],
        {"input_ids": [[2, 0], [1]], "attention_mask": [[1, 1], [1]]},
        {"input_ids": Column([np.array([2, 0]), np.array([1])])},
    ],
)
def test_rows_of_a_data_set_are_lines_and_a_tokenizer_names_their_ids(ids):
    corpus = Corpus.from_ids(ids, labels=Tokenizer("<unk>", "a", "b", "</s>", eos="</s>"))
    assert corpus.words() == ["b", "<unk>", "<eos>", "a", "<eos>"]
    assert corpus.ids().tolist() == [2, 0, 3, 1, 3]
    assert same(Corpus.from_ids(ids, labels=["<unk>", "a", "b", "<eos>"]), corpus)


def test_an_id_without_a_token_keeps_its_place():
    tokenizer = Tokenizer("a", "b", "c")
    del tokenizer.eos_token
    tokenizer.get_vocab = lambda: {"c": 3, "a": 0, "b": 1}
    corpus = Corpus.from_ids({"input_ids": [3, 0]}, labels=tokenizer)
    assert corpus.vocabulary.words == ("a", "b", "<id 2>", "c", "<eos>")
    assert Corpus.from_ids([3, 0], labels=tokenizer, eos="c").words() == ["<eos>", "a"]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, np.uint64])
def test_an_array_of_ids_is_not_copied(dtype):
    ids = np.arange(50).astype(dtype) % 10
    corpus = Corpus.from_ids(ids, eos=9)
    assert np.shares_memory(corpus._text.ids, ids)
    assert corpus.ids().tolist() == ids.tolist()


def test_ids_of_a_tensor():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[torch]'")
    rows = torch.tensor([[1, 2], [0, 1]])
    assert Corpus.from_ids(rows).ids().tolist() == [1, 2, 3, 0, 1, 3]
    assert Corpus.of(rows.flatten()).ids().tolist() == [1, 2, 0, 1]


def test_ids_of_blocks_are_counted_together(monkeypatch):
    ids = np.random.default_rng(0).integers(0, 7, 100)
    whole = Corpus.from_ids(ids, eos=3)
    monkeypatch.setattr("hstree.data.in_memory._IDS", 9)
    blocks = Corpus.from_ids(ids, eos=3)
    assert same(blocks, whole)
    assert blocks.sha256 == whole.sha256
    assert whole.counts.tolist() == np.bincount(ids).tolist()


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (Corpus.from_lines, "one text", "text of type str; give a list of lines"),
        (Corpus.from_lines, ["a", ["b"]], "line 2 is of type list, not str.*from_tokens"),
        (Corpus.from_lines, ["a", "b\0"], "a NUL byte at line 2"),
        (Corpus.from_tokens, [["a"], "b c"], "line 2 is of type str.*from_lines"),
        (Corpus.from_tokens, [{"text": "a"}], "of type dict.*one column of a table"),
        (Corpus.from_tokens, [["a", None]], "token 2 is None"),
        (Corpus.from_tokens, [["a", ["b"]]], "unhashable"),
        (Corpus.from_tokens, [("a", 5), ("b", 2)], "text and numbers.*a dict"),
        (Corpus.from_ids, np.array([1.0]), "ids of type float64, 1 axis; give an array of whole"),
        (Corpus.from_ids, [["a"]], "of type <U1.*from_tokens"),
        (Corpus.from_ids, [{"text": [1]}], "text: no ids"),
        (Corpus.from_ids, ["abc"], "text: no ids; give an array"),
        (Corpus.from_ids, np.zeros((2, 2, 2), int), "2 axes"),
        (Corpus.from_ids, [0, -100], "ids from -100 to 0; .*padding"),
        (Corpus.from_ids, [0, 214_536_500], "ids from 0 to 214536500; .*from_tokens"),
        (Corpus.of, 3, "a text of type int"),
        (Corpus, ["a b"], r"use Corpus\.read for files, from_lines"),
    ],
)
def test_what_is_no_text_is_refused_with_the_way_out(make, wrong, message):
    with pytest.raises(InputError, match=message) as caught:
        make(wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "ids from 0 to 1; they must be from 0 to 0"),
        ({"labels": ["a", "a"]}, "duplicate word 'a'"),
        ({"labels": "ab"}, "labels are of type str"),
        ({"labels": []}, "no labels"),
        ({"labels": Tokenizer()}, r"get_vocab\(\) of the labels is {}"),
        ({"labels": SimpleNamespace(get_vocab=list)}, r"get_vocab\(\) of the labels is \[\]"),
        ({"labels": SimpleNamespace(get_vocab=lambda: {"a": 10**12})}, "from 0 to 16,777,215 as"),
        ({"labels": Tokenizer("a", EOS, "b", eos="b")}, "end with id 2, 'b', but .* <eos> is id 1"),
        ({"labels": ["a", EOS], "eos": 0}, "end with id 0, 'a', but .* <eos> is id 1; give eos="),
        ({"labels": ["a", "b"], "eos": 2}, "eos is 2; .* from 0 to 1"),
        ({"eos": -1}, "eos is -1"),
        ({"eos": 10**9}, "eos is 1000000000; .* from 0 to 16,777,215"),
        ({"eos": "</s>"}, "eos is '</s>'"),
        ({"labels": ["a", "b"], "eos": "</s>"}, "eos is '</s>'; .*, or one of the labels"),
    ],
)
def test_labels_that_do_not_fit_ids_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Corpus.from_ids([0, 1], **options)


def test_a_vocabulary_of_another_type_is_refused():
    with pytest.raises(InputError, match="a vocabulary of type list"):
        Corpus.from_lines(["a"], vocabulary=["a"])


def test_ids_of_one_line_say_how_lines_end():
    with pytest.raises(InputError, match="eos= of from_ids"):
        Corpus.from_ids([1, 2, 3]).splits()


def test_splits_are_made_of_any_texts():
    lines = [f"a b {i % 3}" for i in range(20)]
    assert [part.n_lines for part in Splits.of(lines)] == [16, 2, 2]
    parts = Splits.of(Splits([[0, 1, 2]], [[1]], [[2, 0]]))
    assert [part.ids().tolist() for part in parts] == [[0, 1, 2, 3], [1, 3], [2, 0, 3]]
