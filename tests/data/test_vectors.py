"""WordVectors: the same numbers from every format, and a clear message for every bad file."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from hstree.data import vector_files
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, InputError, OptionError
from tests.limits import full_disk
from tests.texts import contents

WORDS = ["the", "café", ". . .", "17", "-0.5"]
ROWS = np.array([[0.5, -1.25], [1e-8, 3.0], [2.0, 4.5], [-0.0, 7.0], [1.0, 2.0]], np.float32)


def as_text(words=WORDS, rows=ROWS, header=False, end="\n", sep=" "):
    lines = [
        sep.join([word, *map(repr, row.tolist())]) for word, row in zip(words, rows, strict=True)
    ]
    head = [f"{len(words)} {rows.shape[1]}"] if header else []
    return "".join(line + end for line in head + lines).encode()


def as_binary(words=WORDS, rows=ROWS, newline=b"\n"):
    head = f"{len(words)} {rows.shape[1]}\n".encode()
    records = [
        w.encode(errors="surrogateescape") + b" " + r.astype("<f4").tobytes()
        for w, r in zip(words, rows, strict=True)
    ]
    return head + newline.join(records) + newline


FORMATS = {
    "glove.txt": as_text(),
    "crlf.txt": as_text(end="\r\n"),
    "tabs.txt": as_text(sep="\t"),
    "trailing-space.txt": as_text(end=" \n", header=True),
    "blank-lines.txt": as_text() + b"\n\n",
    "no-last-newline.txt": as_text()[:-1],
    "word2vec.vec": as_text(header=True),
    "word2vec.bin": as_binary([w for w in WORDS if " " not in w], np.delete(ROWS, 2, axis=0)),
    "gensim.bin": as_binary([w for w in WORDS if " " not in w], np.delete(ROWS, 2, axis=0), b""),
    "text-called.bin": as_text(header=True),
    "byte-order-mark.txt": b"\xef\xbb\xbf" + as_text(),
    "byte-order-mark.vec": b"\xef\xbb\xbf" + as_text(header=True),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("block", [1 << 24, 40])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_words_and_numbers(tmp_path, monkeypatch, name, block, zipped):
    monkeypatch.setattr(vector_files, "_BLOCK", block)
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes(gzip.compress(FORMATS[name]) if zipped else FORMATS[name])
    vectors = WordVectors.read(path)
    keep = [i for i, word in enumerate(WORDS) if word in vectors.labels]
    assert vectors.labels == tuple(WORDS[i] for i in keep)
    assert len(keep) >= 4
    np.testing.assert_array_equal(vectors.vectors, ROWS[keep])
    assert vectors.vectors.dtype == np.float32
    assert vectors.counts is None
    assert not vectors.named_by_index


@pytest.mark.parametrize("text", ["1 0.5 2\n2 1.5 3\n", "1    0.5   2.0\n2   1.5   3\n"])
def test_a_first_line_of_numbers_begins_with_a_word(tmp_path, text):
    """Several blanks between all numbers are no part of the word."""
    (tmp_path / "numbers.txt").write_text(text)
    vectors = WordVectors.read(tmp_path / "numbers.txt")
    assert vectors.labels == ("1", "2")
    assert vectors.vectors.tolist() == [[0.5, 2.0], [1.5, 3.0]]


@pytest.mark.parametrize("counts", [None, [5, 4, 0, 2, 9]])
def test_saved_and_read_back(tmp_path, counts):
    vectors = WordVectors(WORDS, ROWS, counts=counts)
    vectors.save(tmp_path / "v.npy")
    again = WordVectors.read(tmp_path / "v.npy")
    assert (again.labels, again.source) == (vectors.labels, vectors.source)
    np.testing.assert_array_equal(again.vectors, ROWS)
    np.testing.assert_array_equal(again.counts, vectors.counts)
    assert counts is None or not again.counts.flags.writeable
    assert sorted(os.listdir(tmp_path)) == ["v.labels.tsv", "v.npy"]


def test_labels_given_go_before_labels_beside(tmp_path):
    WordVectors(["a", "b"], [[1.0], [2.0]]).save(tmp_path / "v.npy")
    (tmp_path / "other.tsv").write_bytes("\ufeffx\t3\r\ny\t0\r\n".encode())
    vectors = WordVectors.read(tmp_path / "v.npy", labels=tmp_path / "other.tsv")
    assert vectors.labels == ("x", "y")
    assert vectors.counts.tolist() == [3, 0]


def test_the_hash_is_over_words_numbers_and_counts():
    contents = [
        (["ab", "c"], [[1], [2]], None),
        (["a", "bc"], [[1], [2]], None),
        (["ab", "c"], [[1], [2.5]], None),
        (["ab", "c"], [[1], [2]], [1, 2]),
    ]
    hashes = [WordVectors(words, rows, counts=counts).sha256 for words, rows, counts in contents]
    assert len(set(hashes)) == 4
    assert WordVectors(["ab", "c"], np.array([[1.0], [2.0]])).sha256 == hashes[0]


def test_float32_is_not_copied_and_the_rest_is_not_shared():
    rows = np.ones((2, 3), np.float32)
    vectors = WordVectors(["a", "b"], rows)
    assert np.shares_memory(vectors.vectors, rows)
    assert not vectors.vectors.flags.writeable
    assert rows.flags.writeable


BAD_CONTENT = {
    "nan": (["a", "b"], [[1.0], [np.nan]], r"row 1 \('b'\) holds nan"),
    "infinity": (["a", "b"], [[1.0, -np.inf], [2.0, 2.0]], r"row 0 .* -inf in column 1"),
    "too large": (["a"], [[1e300]], "too large for float32"),
    "too small": (["a"], [[1e-300]], "too small for float32"),
    "few digits": (["a", "b"], [[1e-41], [-2e-40]], "too small for float32"),
    "a word twice": (["a", "b", "a"], [[1.0]] * 3, "duplicate word 'a' in rows 0 and 2"),
    "ragged": (["a", "b"], [[1.0], [1.0, 2.0]], "different lengths"),
    "objects": (["a"], np.array([[None]]), "type object"),
    "one axis": (["a", "b"], [1.0, 2.0], r"shape \(2,\)"),
}


@pytest.mark.parametrize("case", BAD_CONTENT)
def test_bad_content_is_named(case):
    labels, rows, message = BAD_CONTENT[case]
    with pytest.raises(InputError, match=message):
        WordVectors(labels, rows)


BAD_FILES = {
    "empty.txt": (b"", "empty"),
    "prose.txt": (b"It was the best of times.\n", "line 1: expected a word and numbers"),
    "short.txt": (b"a 1 2 3\nb 1 2\n", "line 2: expected a word and 3 numbers"),
    "long.txt": (b"a 1 2 3\nb 1 2 3\n\nc 1 2 3 4\n", "line 4: expected a word and 3 numbers"),
    "inner.txt": (b"a 1 2 3\nb 1 x 3\n", "line 2: expected a word and 3 numbers"),
    "grouped.txt": (b"a 1 2 3\nb 1 1_000 3\n", "line 2: expected a word and 3 numbers"),
    "tab.txt": (b"x 1 2\na 1 2\v3\nb  4\n", "line 2: expected"),
    "nan.txt": (b"a 1 2\nb 1 nan\n", r"row 1 \('b'\) holds nan"),
    "overflow.txt": (b"a 1 2\nb 1 1e99\n", r"row 1 \('b'\) holds inf"),
    "twice.txt": (b"a 1 2\nb 1 2\na 3 4\n", "duplicate word 'a' in rows 0 and 2"),
    "latin1.txt": (b"a 1 2\ncaf\xe9 1 2\n", "line 2: the word .* UTF-8"),
    "nul.txt": (b"a 1 2\na\0b 1 2\n", "line 2: the word .* NUL"),
    "no-word.txt": (b"a 1 2\n 1 2\n", "line 2: the word .* is empty"),
    "return.txt": (b"a 1 2\na\rb 1 2\n", "line 2: the word .* line end"),
    "cut.txt": (b"3 2\na 1 2\nb 1 2\n", "announces 3 words but 2 follow"),
    "header-alone.bin": (b"3 2", "ends in word 1 of the 3"),
    "none.txt": (b"0 2\n", "0 words"),
    "cut.bin": (as_binary(["ab", "cd"], ROWS[:2])[:-6], "ends in word 2 of the 2"),
    "more.bin": (as_binary(["ab", "cd"], ROWS[:2]) + b"x", "more data after the 2 words"),
    "latin1.bin": (as_binary(["ab", "\udce9"], ROWS[:2], b""), "word 2: the word .* UTF-8"),
    "absurd.bin": (b"1 99999999\na " + bytes(8), "not a word2vec file"),
    "cut.gz": (gzip.compress(as_text() * 50)[:-20], "cannot read the vectors"),
}


@pytest.mark.parametrize("block", [1 << 24, 28])
@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_named_with_the_place(tmp_path, monkeypatch, name, block):
    monkeypatch.setattr(vector_files, "_BLOCK", block)
    content, message = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        WordVectors.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_labels_are_for_matrices_alone(tmp_path):
    (tmp_path / "glove.txt").write_bytes(as_text())
    with pytest.raises(OptionError, match="contains its own words"):
        WordVectors.read(tmp_path / "glove.txt", labels=tmp_path / "x.tsv")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (b"a\nb\nc\n", "3 labels for the 2 rows"),
        (b"a\t1\nb\n", "line 2: expected a word, a tab and a whole number"),
        (b"a\nb\t1\n", "line 2: expected a word and nothing else"),
        (b"a\na\n", "duplicate word 'a' in rows 0 and 1"),
        (b"caf\xe9\na\n", "not UTF-8"),
    ],
)
def test_bad_labels_are_named(tmp_path, labels, message):
    np.save(tmp_path / "v.npy", np.ones((2, 2)))
    (tmp_path / "v.labels.tsv").write_bytes(labels)
    with pytest.raises(InputError, match=message):
        WordVectors.read(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("word", "name", "error"),
    [
        ("a\tb", "v.npy", InputError),
        *((word, "v.vec", InputError) for word in ("", "new york", "a\nb", "\ud800")),
        ("new york", "v.bin", InputError),
        ("a", "v.pt", FileFormatError),
        ("a", "nowhere/v.npy", FileFormatError),
    ],
)
def test_saving_what_cannot_be_saved_changes_nothing(tmp_path, word, name, error):
    for other in ("v.npy", "v.vec", "v.bin"):
        WordVectors(["a"], [[1.0]]).save(tmp_path / other)
    before = contents(tmp_path)
    with pytest.raises(error, match="cannot write"):
        WordVectors(["a", word + "b" * (word == "a")], [[1.0], [2.0]]).save(tmp_path / name)
    assert contents(tmp_path) == before


def test_a_full_disk_is_named_and_the_old_files_stay(tmp_path):
    path = tmp_path / "v.npy"
    WordVectors(["a"], [[1.0]]).save(path)
    before = contents(tmp_path)
    large = WordVectors(list(map(str, range(100))), np.ones((100, 100)))
    said = r"cannot write .*v\.npy: File too large"
    with pytest.raises(FileFormatError, match=said), full_disk(1 << 12):
        large.save(path)
    assert contents(tmp_path) == before


EXTREME = [[1e-38, -3.4e38, 0.1], [1 / 3, -0.0, 1e-45], [16777217, 2.5, -1e-7], [0, 0, 0]]


@pytest.fixture
def vectors():
    """Return odd words and numbers, and more rows than are written at a time."""
    odd = ["the", "</s>", "no\u00a0break", "0.5", "a\u2028b\x85c\x1cd"]
    words = [*odd, *(f"w{i}" for i in range(4995))]
    return WordVectors(words, EXTREME * 1250, counts=range(5000, 0, -1))


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin"])
def test_the_same_vectors_come_back(vectors, tmp_path, name):
    vectors.save(tmp_path / name)
    found = WordVectors.read(tmp_path / name)
    assert found.labels == vectors.labels
    assert found.vectors.tobytes() == vectors.vectors.tobytes()


@pytest.mark.parametrize("name", ["v.vec", "v.bin"])
def test_gensim_reads_the_same(vectors, tmp_path, name):
    gensim = pytest.importorskip("gensim.models", reason="gensim is not installed")
    vectors.save(tmp_path / name)
    found = gensim.KeyedVectors.load_word2vec_format(
        str(tmp_path / name), binary=name.endswith("bin")
    )
    assert tuple(found.index_to_key) == vectors.labels
    assert found.vectors.tobytes() == vectors.vectors.tobytes()


def test_the_text_is_word2vecs(tmp_path):
    WordVectors(["a", "b"], [[0.1, 1], [-2, 1e-7]]).save(tmp_path / "v.vec")
    assert (tmp_path / "v.vec").read_bytes() == b"2 2\na 0.1 1.0\nb -2.0 1e-07\n"


@pytest.mark.parametrize("word", ["new york", " a", "a\0b", "a\nb", "a\r", "\0"])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_words_that_binary_files_cannot_hold_are_refused(tmp_path, word, place):
    words = ["the", "of", "and", "to"]
    words.insert(place, word)
    rows = np.random.default_rng(0).normal(size=(5, 20)).astype(np.float32)
    (tmp_path / "v.bin").write_bytes(as_binary(words, rows))
    with pytest.raises(InputError, match=r"v\.bin[^\n]*\Z"):
        WordVectors.read(tmp_path / "v.bin")


@pytest.mark.parametrize(
    "word", ["new  york", " york", "a\tb", "\tb", "a \t b", "a\x0bb", "a\u2028b"]
)
@pytest.mark.parametrize("header", [True, False])
def test_texts_keep_the_blanks_in_words(tmp_path, word, header):
    words = ["the", word, "of"]
    (tmp_path / "v.txt").write_bytes(as_text(words, ROWS[:3], header=header))
    assert WordVectors.read(tmp_path / "v.txt").labels == tuple(words)


@pytest.mark.parametrize("large", [False, True])
def test_the_most_similar_words_have_the_largest_cosines(tmp_path, monkeypatch, large):
    rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    rows[7] = 0
    rows[9] *= 1e-30
    rows[11] = rows[12]
    words = [f"w{number}" for number in range(40)]
    vectors = WordVectors(words, rows)
    if large:  # the rows stay in the file
        vectors.save(tmp_path / "v.npy")
        monkeypatch.setattr("hstree.data.vectors.LARGE", 10)
        monkeypatch.setattr("hstree.data.vectors._AT_ONCE", 16)
        vectors = WordVectors.read(tmp_path / "v.npy")
    unit = rows / np.maximum(np.linalg.norm(rows.astype(float), axis=1, keepdims=True), 1e-300)
    target = unit[3] + unit[9] - unit[5]
    cosine = unit @ target / np.linalg.norm(target)
    expected = [n for n in np.argsort(-cosine, kind="stable") if n not in (3, 5, 9)]
    found = vectors.most_similar(["w3", "w9"], "w5", topn=50)
    assert [word for word, _ in found] == [words[n] for n in expected]
    np.testing.assert_allclose([c for _, c in found], cosine[expected], atol=1e-6)
    assert vectors.most_similar("w9") == vectors.most_similar(["w9"], topn=10)
    assert vectors.most_similar("w7", topn=2) == [("w0", 0.0), ("w1", 0.0)]


def test_words_without_a_vector_have_no_similar_words():
    vectors = WordVectors(["a", "b"], np.eye(2))
    for positive, message in (("c", "'c' is not one of"), ([3], "3 is not"), ([], "needs a word")):
        with pytest.raises(InputError, match=message):
            vectors.most_similar(positive)
    with pytest.raises(OptionError, match="topn"):
        vectors.most_similar("a", topn=0)
    assert WordVectors(None, np.eye(2)).most_similar("1") == [("0", 0.0)]
