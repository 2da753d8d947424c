"""Inputs of `build`: counts, vectors and texts in the types that programs use."""

import warnings
from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array

import hstree
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError

ROWS = np.random.default_rng(0).normal(size=(6, 3))
WORDS, COUNTS = list("abcdef"), [9, 5, 4, 4, 2, 1]
PANDAS = "needs pandas: pip install '.[notebook]'"
TORCH = "needs PyTorch: pip install '.[torch]'"

HUFFMAN = hstree.build("huffman", Vocabulary(WORDS, COUNTS))
NUMBERED = hstree.build("huffman", Vocabulary(list(map(str, range(6))), COUNTS))
GMM = hstree.build("gmm", WordVectors(WORDS, ROWS, counts=COUNTS))


@pytest.mark.parametrize(
    "counts",
    [
        COUNTS,
        tuple(COUNTS),
        np.array(COUNTS),
        np.array(COUNTS, np.uint8),
        np.array(COUNTS, float),
        dict(enumerate(COUNTS)).values(),
        dict(enumerate(COUNTS)),
        Counter(dict(enumerate(COUNTS))),
    ],
)
def test_counts_without_words_are_of_row_numbers(counts):
    assert hstree.build("huffman", counts) == NUMBERED


def test_labels_name_counts():
    assert hstree.build("huffman", COUNTS, labels=WORDS) == HUFFMAN
    assert hstree.build("huffman", COUNTS, labels=np.array(WORDS)) == HUFFMAN
    assert hstree.build("huffman", COUNTS, labels=range(6)) == NUMBERED
    by_word = dict(zip(WORDS, COUNTS, strict=True))
    assert hstree.build("huffman", by_word, labels=WORDS) == HUFFMAN
    assert hstree.build("huffman", by_word).meta == HUFFMAN.meta


def test_the_index_of_a_series_has_the_labels():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    assert hstree.build("huffman", pandas.Series(COUNTS, index=WORDS)) == HUFFMAN
    assert hstree.build("huffman", pandas.Series(COUNTS, dtype="Int64")) == NUMBERED
    assert hstree.build("huffman", pandas.Series(COUNTS)) == NUMBERED


def test_arrays_are_vectors_with_labels_and_counts():
    for rows in (ROWS, ROWS.tolist(), [list(row) for row in ROWS]):
        assert hstree.build("gmm", rows, labels=WORDS, counts=COUNTS) == GMM
    assert hstree.build("huffman", ROWS, labels=WORDS, counts=COUNTS) == HUFFMAN
    assert hstree.build("gmm", ROWS).labels == tuple("012345")
    vectors = WordVectors(None, ROWS)
    assert hstree.build("gmm", vectors, labels=WORDS, counts=np.array(COUNTS, float)) == GMM


def test_counts_may_be_by_label():
    by_label = dict(zip(WORDS, COUNTS, strict=True))
    assert (
        hstree.build("gmm", ROWS, labels=WORDS, counts=dict(sorted(by_label.items())[::-1])) == GMM
    )
    assert hstree.build("gmm", ROWS, labels=WORDS, counts={"f": 3}).counts.tolist() == [0] * 5 + [3]


def test_the_index_of_a_data_frame_has_the_labels():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    frame = pandas.DataFrame(ROWS, index=WORDS)
    shuffled = pandas.Series(COUNTS, index=WORDS).sample(frac=1, random_state=0)
    assert hstree.build("gmm", frame, counts=shuffled) == GMM
    assert hstree.build("gmm", frame, counts=pandas.Series(COUNTS)) == GMM  # a default index


def test_a_data_frame_is_no_counts():
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    with pytest.raises(InputError, match="huffman takes a vocabulary, not a DataFrame; give"):
        hstree.build("huffman", pandas.DataFrame({"word": WORDS, "count": COUNTS}))


BY_VECTORS = [n for n, b in hstree.builders().items() if b.takes is WordVectors]


@pytest.mark.parametrize("exponent", [66, 126, -83, -120, 700, -700])
@pytest.mark.parametrize("method", BY_VECTORS)
def test_trees_do_not_depend_on_the_scale_of_vectors(method, exponent):
    tree = hstree.build(method, ROWS.astype(np.float32), counts=COUNTS)
    scaled = ROWS.astype(np.float32).astype(np.float64) * 2.0**exponent
    if abs(exponent) < 127:
        assert hstree.build(method, scaled, counts=COUNTS) == tree
    else:
        with pytest.raises(InputError, match=r"too (large|small) for float32"):
            hstree.build(method, scaled, counts=COUNTS)


def test_labels_that_are_numbers_may_be_pruned_by_number():
    assert hstree.prune(NUMBERED, [0, 3, "5"]).labels == ("0", "3", "5")


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_tensors_are_vectors(dtype):
    torch = pytest.importorskip("torch", reason=TORCH)
    rows = torch.tensor(ROWS, dtype=getattr(torch, dtype), requires_grad=True)
    tree = hstree.build("gmm", rows, labels=WORDS, counts=torch.tensor(COUNTS))
    assert tree.labels == tuple(WORDS)
    assert tree.counts.tolist() == COUNTS
    assert hstree.build("huffman", torch.tensor(COUNTS)) == NUMBERED


@pytest.mark.parametrize("method", ["huffman", "classes n_classes=2"])
def test_lines_tokens_and_ids_are_texts(method):
    name, *options = method.split()
    options = {key: int(value) for key, value in (option.split("=") for option in options)}
    lines = ["a b c", "b c", "c a b"]
    tree = hstree.build(name, hstree.Corpus.from_lines(lines), **options)
    assert hstree.build(name, lines, **options) == tree
    assert hstree.build(name, (line.split() for line in lines), **options) == tree
    ids = hstree.build(name, [[0, 1, 2], [1, 2], [2, 0, 1]], **options)
    assert ids.labels == ("0", "1", "2", "<eos>")


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("huffman", ([1.5, 2],), r"the count of '0' is 1\.5, not a whole number"),
        ("huffman", ([1, np.nan],), "the count of '1' is nan, not a whole number"),
        ("huffman", ([1, -1],), "'1' has the count -1"),
        ("huffman", ([1.0, 1e300],), "sum of the counts is above"),
        ("huffman", ({"a": "1"},), "the count of 'a' is '1'"),
        ("huffman", ({3: 1, "3": 2},), "duplicate word '3'"),
        ("huffman", ({2.5: 1},), r"word 0 is 2\.5; words must be text or whole numbers"),
        ("huffman", ({True: 1},), "word 0 is True"),
        ("huffman", ({"a": 2**63},), "sum of the counts is above"),
        ("huffman", ({"a": 2**64},), "sum of the counts is above"),
        ("huffman", ([],), "empty"),
        ("huffman", ({},), "vocabulary is empty"),
        ("kmeans", (3,), "kmeans takes word vectors, not an int; give"),
        ("kmeans", ({"a": 1},), "kmeans takes word vectors, not a dict; give an array"),
        ("huffman", (np.array([[3], [2], [1]]),), r"shape \(3, 1\) may be counts or token ids"),
        ("huffman", (np.array([[3, 2, 1]]),), r"shape \(1, 3\) may be counts or token ids"),
        ("huffman", (ROWS,), "vectors come without counts; add them .counts=,"),
        ("huffman", (csr_array(ROWS),), "huffman takes a vocabulary, not a csr_array; give counts"),
        ("gmm", (csr_array(ROWS),), r"gmm takes word vectors, not a csr_array; give an array"),
        ("gmm", (COUNTS,), r"gmm takes word vectors, not a list; give an array \(V, d\)"),
        ("gmm", (ROWS, ["a"]), "1 labels for 6 rows"),
        ("gmm", (ROWS, [*WORDS[:5], 1.5]), r"label 5 is 1\.5; labels must be text or whole"),
        ("gmm", (ROWS, dict.fromkeys(WORDS)), "labels are of type dict; give a list"),
        ("gmm", (ROWS, WORDS, [1]), r"counts of shape \(1,\) for 6 words"),
        (
            "gmm",
            (ROWS, WORDS, {"z": 1}),
            "words of the counts .'z', ....* are not among the labels",
        ),
        ("semantic", (ROWS,), "semantic needs counts.*counts="),
        ("classes", (ROWS,), "classes takes a corpus, not word vectors"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(method, arguments, message):
    input, labels, counts = (*arguments, None, None)[:3]
    with pytest.raises(InputError, match=message) as caught:
        hstree.build(method, input, labels=labels, counts=counts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("input", "options", "message"),
    [
        ({"a": 1}, {"counts": [1]}, "counts are only for vectors"),
        (["a b", "c"], {"labels": ["a"]}, "labels are only for vectors"),
    ],
)
def test_labels_and_counts_of_what_has_no_rows_are_refused(input, options, message):
    with pytest.raises(OptionError, match=message):
        hstree.build("huffman", input, **options)


@pytest.mark.parametrize(
    ("method", "input", "message"),
    [
        ("gmm", ROWS, "gmm has no option 'seed'; a seed is random_state; it has"),
        ("huffman", COUNTS, "a seed is random_state, but nothing here is random"),
    ],
)
def test_a_seed_is_refused_and_named_random_state(method, input, message):
    with pytest.raises(OptionError, match=message):
        hstree.build(method, input, seed=3)


def test_item_vectors_raise_no_word_about_line_ends():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = hstree.build("gmm", ROWS, counts=COUNTS)
    assert "<eos>" not in str(tree.stats().facts())
