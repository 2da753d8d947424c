"""The text form of extreme classification: what is read, written and refused."""

import lzma

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.fasttext import read_train_and_test
from hstree.data.multilabel import read_multilabel, write_multilabel
from hstree.errors import InputError
from tests.needs import shared

PANDAS = "needs pandas: pip install '.[notebook]'"
TEXT = "4 4 2\n0,1 0:1 3:-2.5e-1\n 1:.5\n \n1\n"
X = [[1, 0, 0, -0.25], [0, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
Y = [[1, 1], [0, 0], [0, 0], [0, 1]]


def read(folder, text, name="data.txt"):
    path = folder / name
    path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())
    return read_multilabel(path)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.xz"])
@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.rstrip("\n")])
def test_features_and_labels_are_read(tmp_path, name, text):
    data = read(tmp_path, text, name)
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


def test_a_line_without_labels_may_begin_with_a_feature(tmp_path):
    data = read(tmp_path, "1 12 2\n10:1 11:2\n")
    assert data.Y.nnz == 0
    assert data.X.toarray()[0, 10:].tolist() == [1, 2]


def test_a_file_without_a_line_of_sizes_is_as_wide_as_its_numbers(tmp_path):
    data = read(tmp_path, TEXT.partition("\n")[2])
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


@pytest.mark.parametrize("headers", ["neither", "train", "test", "both"])
def test_training_and_test_samples_are_as_wide_as_each_other(tmp_path, headers):
    train, test = "0,1 0:1\n1 2:1\n", "2 1:1\n"
    files = {"train": train, "test": test}
    for name, text in files.items():
        sizes = f"{text.count(chr(10))} 3 3\n" if headers in (name, "both") else ""
        (tmp_path / name).write_text(sizes + text)
    known, asked = read_train_and_test(tmp_path / "train", tmp_path / "test")
    assert (known.X.shape, known.Y.shape) == ((2, 3), (2, 3))
    assert (asked.X.shape, asked.Y.shape) == ((1, 3), (1, 3))
    assert asked.X.toarray().tolist() == [[0, 1, 0]]
    assert asked.Y.toarray().tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("sizes", [("2 3 2", ""), ("2 3 2", "1 3 3"), ("2 4 3", "1 3 3")])
def test_sizes_that_differ_are_refused(tmp_path, sizes):
    texts = "0,1 0:1\n1 2:1\n", "2 1:1\n"
    paths = [tmp_path / "train", tmp_path / "test"]
    for path, size, text in zip(paths, sizes, texts, strict=True):
        path.write_text(f"{size}\n{text}" if size else text)
    with pytest.raises(
        InputError, match=r"test has .* labels, .*train has .*; both files need the same"
    ):
        read_train_and_test(*paths)


# Writing

NUMBERS = [0.0, -0.0, 1.0, -0.25, 0.1, 3.4e38, 1e-45, 16777217.0, 1e39, np.nan, -np.inf]
LAYOUTS = (np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.csc_array)


@st.composite
def tables(draw, values, dtypes):
    """Return a table of 0 to 3 rows and columns, of any layout."""
    shape = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    numbers = [[draw(st.sampled_from(values)) for _ in range(shape[1])] for _ in range(shape[0])]
    with np.errstate(all="ignore"):
        table = np.reshape(numbers, shape).astype(draw(st.sampled_from(dtypes)))
    return table if table.dtype == np.float16 else draw(st.sampled_from(LAYOUTS))(table)


def dense(table):
    return table.toarray() if scipy.sparse.issparse(table) else table


@given(
    tables(NUMBERS, [np.float64, np.float32, np.float16]),
    tables([0, 0, 1, 1, 1, 2, -1, 0.5], [np.int8, np.float64, np.float32, bool]),
)
def test_what_is_written_reads_the_same_and_all_else_is_refused(tmp_path_factory, features, labels):
    path = tmp_path_factory.mktemp("data") / "data.txt"
    indicator = dense(labels)
    with np.errstate(over="ignore"):
        values = dense(features).astype(np.float32)
    can_be_held = len(values) == len(indicator) > 0 and np.isfinite(values).all()
    if not (can_be_held and ((indicator == 0) | (indicator == 1)).all()):
        with pytest.raises(InputError, match=r"\A[^\n]+\Z"):
            write_multilabel(path, features, labels)
        assert not path.exists()
        return
    write_multilabel(path, features, labels)
    data = read_multilabel(path)
    np.testing.assert_array_equal(data.X.toarray(), values, strict=True)
    np.testing.assert_array_equal(data.Y.toarray(), indicator.astype(np.int8), strict=True)


def test_nullable_columns_are_written(tmp_path):
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    path = tmp_path / "data.txt"
    for kind in ("Int64", "boolean", object):
        write_multilabel(
            path, pandas.DataFrame(X).astype("Float64"), pandas.DataFrame(Y, dtype=kind)
        )
        np.testing.assert_array_equal(read_multilabel(path).X.toarray(), np.float32(X))
        np.testing.assert_array_equal(read_multilabel(path).Y.toarray(), Y)


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        (X, Y[:2]),
        (np.empty((0, 4)), np.empty((0, 2))),
        (np.full((4, 4), 1e39), Y),
        (X, 2 * np.asarray(Y)),
        (X, np.full((4, 2), np.nan)),
        (X[0], Y),
        ([[1j]] * 4, Y),
        ([["a"]] * 4, Y),
        (np.array([[10**400]] * 4, object), Y),
        ([[1], [2, 3], [], []], Y),
        (X, None),
        (np.ma.masked_equal(X, 1), Y),
    ],
)
def test_what_the_form_cannot_hold_is_refused_in_one_line(tmp_path, features, labels):
    with pytest.raises(InputError, match=r"\A[^\n]+\Z"):
        write_multilabel(tmp_path / "data.txt", features, labels)
    assert not (tmp_path / "data.txt").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{'1' * 5000} 4 2\n",
        "3 4\n",
        "-3 4 2\n",
        "0 4 2\n",
        TEXT.replace("4 4 2", "5 4 2"),
        TEXT.replace("4 4 2", "4 3 2"),
        TEXT.replace("4 4 2", "4 4 1"),
        TEXT.replace("4 4 2", "4 4 2147483648"),
        TEXT.replace("4 4 2\n", "").replace("1:.5", "2147483647:1"),
        TEXT.replace("0,1 ", "0,x "),
        TEXT.replace("0,1 ", "0,1.5 "),
        TEXT.replace("0,1 ", "0,-1 "),
        TEXT.replace("0,1 ", "0,nan "),
        TEXT.replace("0,1 ", "0,99999999999999999999 "),
        TEXT.replace("0:1 ", "0:1:2 "),
        TEXT.replace("0:1 ", "-1:2 "),
        TEXT.replace("1:.5", "1:nan"),
        TEXT.replace("1:.5", "1:1e39"),
        TEXT.replace("1:.5", "1:1 1:2"),
        TEXT.replace("1:.5", "1:\u0661"),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused_in_one_line(tmp_path, text):
    with pytest.raises(InputError, match=r"data\.txt: [^\n]+\Z"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("cat 0:1", "cat"),
        ("0 0:x", "x"),
        ("0 1:1 1:2", "1:2"),
        ("9 0:1", "9"),
        ("0.5 0:1", "0.5"),
        ("0 7:1", "7"),
        ("0 0:nan", "nan"),
    ],
)
@pytest.mark.parametrize("n_before", [0, 1, 6])
def test_errors_name_the_line(tmp_path, line, word, n_before):
    text = "8 4 2\n" + "0 0:1\n" * n_before + f"{line}\n" + "\n" * (7 - n_before)
    with pytest.raises(InputError, match=rf"data\.txt: line {n_before + 2} [^\n]*{word}"):
        read(tmp_path, text)


@pytest.mark.parametrize(("part", "n"), [("train", 4880), ("test", 2515)])
def test_bibtex(part, n):
    data = read_multilabel(shared(f"multilabel/bibtex-{part}.txt.xz"))
    assert (data.X.shape, data.Y.shape) == ((n, 1836), (n, 159))
    assert set(data.X.data.tolist()) == {1.0}
