"""The text form of extreme classification: what is read, written and refused."""

import lzma

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from hstree.data.multilabel import read_multilabel, read_train_and_test, write_multilabel
from hstree.errors import InputError
from tests.needs import shared

PANDAS = "pandas is not installed: hstree[notebook]"
TEXT = "3 4 2\n0,1 0:1 3:-2.5e-1\n 1:.5\n1\n"
X = [[1, 0, 0, -0.25], [0, 0.5, 0, 0], [0, 0, 0, 0]]
Y = [[1, 1], [0, 0], [0, 1]]


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
    text = TEXT.partition("\n")[2]
    data = read(tmp_path, text)
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y.toarray(), Y)
    with pytest.raises(InputError, match="line 3 is '1:x'; expected label,label"):
        read(tmp_path, text.replace("\n1\n", "\n1:x\n"))
    with pytest.raises(InputError, match="line 2 has the feature 2147483647, and there are at"):
        read(tmp_path, text.replace("1:.5", "2147483647:1"))


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
    with pytest.raises(InputError, match=r"test has .* labels, .*train has .*; both need the same"):
        read_train_and_test(*paths)


# Writing

NUMBERS = [0.0, -0.0, 1.0, -0.25, 0.1, 3.4e38, 1e-45, 16777217.0, 1e39, -1e39, 1e-46, -1e-60]
NUMBERS += [np.nan, np.inf, -np.inf]
LAYOUTS = (np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.csc_array)


def kept_by_float32(numbers):
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.asarray(numbers).astype(np.float32)
    return np.isfinite(rounded) & ((rounded != 0) | (numbers == 0))


@st.composite
def tables(draw, values, dtypes):
    """Return a table of 0 to 3 rows and columns, of any layout, perhaps with stored zeros."""
    shape = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    numbers = [[draw(st.sampled_from(values)) for _ in range(shape[1])] for _ in range(shape[0])]
    with np.errstate(all="ignore"):
        table = np.reshape(numbers, shape).astype(draw(st.sampled_from(dtypes)))
    if table.dtype == np.float16:
        return table
    layout = draw(st.sampled_from((*LAYOUTS, "every entry")))
    if layout != "every entry":
        return layout(table)
    rows, columns = np.indices(shape)
    at = rows.ravel(), columns.ravel()
    return scipy.sparse.coo_array((table.ravel(), at), shape=shape)


def dense(table):
    return table.toarray() if scipy.sparse.issparse(table) else table


@given(
    tables(NUMBERS, [np.float64, np.float32, np.float16]),
    tables([0, 0, 1, 1, 1, 2, -1, 0.5], [np.int8, np.float64, np.float32, bool]),
)
def test_what_is_written_reads_the_same_and_all_else_is_refused(tmp_path_factory, features, labels):
    path = tmp_path_factory.mktemp("data") / "data.txt"
    values, indicator = dense(features), dense(labels)
    can_be_held = len(values) == len(indicator) > 0 and kept_by_float32(values).all()
    can_be_held = can_be_held and ((indicator == 0) | (indicator == 1)).all()
    if not can_be_held:
        with pytest.raises(InputError, match=r"\A[^\n]+\Z"):
            write_multilabel(path, features, labels)
        assert not path.exists()
        return
    write_multilabel(path, features, labels)
    data = read_multilabel(path)
    np.testing.assert_array_equal(data.X.toarray(), values.astype(np.float32), strict=True)
    np.testing.assert_array_equal(data.Y.toarray(), indicator.astype(np.int8), strict=True)
    stored = features.nnz if scipy.sparse.issparse(features) else np.count_nonzero(values)
    assert data.X.nnz == stored


def test_duplicate_entries_are_written_as_their_sums(tmp_path):
    pairs = [0, 0, 1], [1, 1, 0]
    features = scipy.sparse.coo_array(([0.5, 0.25, 1], pairs), shape=(2, 3))
    labels = scipy.sparse.csr_array(([0.5, 0.5, 1], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    write_multilabel(tmp_path / "data.txt", features, labels)
    data = read_multilabel(tmp_path / "data.txt")
    np.testing.assert_array_equal(data.X.toarray(), [[0, 0.75, 0], [1, 0, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[0, 1], [1, 0]])
    twice = scipy.sparse.csr_array(([1, 1], [1, 1], [0, 2]), shape=(1, 2))
    with pytest.raises(InputError, match="Y has the value 2"):
        write_multilabel(tmp_path / "data.txt", features[:1], twice)


def test_nullable_columns_are_written_and_masked_ones_refused(tmp_path):
    pandas = pytest.importorskip("pandas", reason=PANDAS)
    path = tmp_path / "data.txt"
    for kind in ("Int64", "boolean", object):
        write_multilabel(
            path, pandas.DataFrame(X).astype("Float64"), pandas.DataFrame(Y, dtype=kind)
        )
        np.testing.assert_array_equal(read_multilabel(path).X.toarray(), np.float32(X))
        np.testing.assert_array_equal(read_multilabel(path).Y.toarray(), Y)
    with pytest.raises(InputError, match="X with masked entries"):
        write_multilabel(path, np.ma.masked_equal(X, X[0][0]), Y)


TOO_WIDE = scipy.sparse.csr_array((3, 2**31))


@pytest.mark.parametrize(
    ("features", "labels", "saying"),
    [
        (X, Y[:2], "X has 3 samples and Y 2"),
        (np.empty((0, 4)), np.empty((0, 2)), "X has no sample"),
        (np.full((3, 4), np.inf), Y, "X has the value inf; the text form has finite"),
        (np.full((3, 4), 1e39), Y, "X has the value 1e+39; the text form has finite"),
        (np.full((3, 4), 1e-60), Y, "X has the value 1e-60; the text form has finite"),
        (X, 2 * np.asarray(Y), "Y has the value 2"),
        (X, np.full((3, 2), np.nan), "Y has the value nan"),
        (TOO_WIDE, Y, "X has 2,147,483,648 columns; the text form has at most 2,147,483,647"),
        (X, TOO_WIDE, "Y has 2,147,483,648 columns"),
        (X[0], Y, "X has the shape (4,) and the type float64; give a table of real numbers"),
        ([[1j]] * 3, Y, "X has the shape (3, 1) and the type complex128"),
        ([["a"]] * 3, Y, "X has the shape (3, 1) and the type <U1"),
        (np.array([[10**400]] * 3, object), Y, "X has the shape (3, 1) and the type object"),
        ([[1], [2, 3], []], Y, "X of different lengths"),
        (X, None, "Y has the shape () and the type object"),
        (X, [0, 1, 0], "Y has the shape (3,)"),
    ],
)
def test_what_the_form_cannot_hold_is_refused_in_one_line(tmp_path, features, labels, saying):
    with pytest.raises(InputError) as caught:
        write_multilabel(tmp_path / "data.txt", features, labels)
    assert str(caught.value).startswith(saying)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data.txt").exists()


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "line 1 is ''; expected the numbers of samples"),
        ("0,1\n0 1:1\n", "line 1 is '0,1'; expected the numbers of samples"),
        (f"{'1' * 5000} 4 2\n", f"line 1 is '{'1' * 40}...'; expected the numbers of samples"),
        (f"{'9' * 19} {'9' * 19} 2\n", "line 1 is '9999999999999999999 999999999"),
        ("3 4\n", "line 1 is '3 4'"),
        ("-3 4 2\n", "line 1 is '-3 4 2'"),
        ("0 4 2\n", "line 1 says 0 samples, and 0 lines follow"),
        (TEXT.replace("3 4 2", "4 4 2"), "line 1 says 4 samples, and 3 lines follow"),
        (TEXT.replace("3 4 2", "3 3 2"), "line 2 has the feature 3, and line 1 says 3 features"),
        (TEXT.replace("3 4 2", "3 4 1"), "line 2 has the label 1, and line 1 says 1 label"),
        (TEXT.replace("0,1 ", "0,x "), "line 2 is '0,x 0:1"),
        (
            TEXT.replace("3 4 2", "3 4 2147483648"),
            "line 1 is '3 4 2147483648'; at most",
        ),
        (TEXT.replace("0:1 ", f"0:{'1' * 10_000}x "), "line 2 is '0,1 0:1111"),  # in no time
        (TEXT.replace("0:1 ", "0:1:2 "), "line 2 is '0,1 0:1:2"),
        (TEXT.replace("1:.5", "1:nan"), "line 3 is ' 1:nan'"),
        (TEXT.replace("1:.5", "1:1e39"), "line 3 has a value of the feature 1 that is too large"),
        (TEXT.replace("1:.5", "1:1 1:2"), "line 3 has the feature 1 twice"),
        (TEXT.replace("0,1 ", "1,1 "), "line 2 has the label 1 twice"),
        (TEXT.replace("0,1 ", "0,99999999999999999999 "), "line 2 has the label 1000000000000"),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused_in_one_line(tmp_path, text, saying):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert f"data.txt: {saying}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("part", "n"), [("train", 4880), ("test", 2515)])
def test_bibtex(part, n):
    data = read_multilabel(shared(f"multilabel/bibtex-{part}.txt.xz"))
    assert (data.X.shape, data.Y.shape) == ((n, 1836), (n, 159))
    assert set(data.X.data.tolist()) == {1.0}


def test_a_long_file_is_read_in_pieces(tmp_path, monkeypatch):
    from hstree.data import multilabel

    whole = read(tmp_path, TEXT)
    monkeypatch.setattr(multilabel, "AT_ONCE", 1)
    pieces = read(tmp_path, TEXT)
    assert (whole.X != pieces.X).nnz == (whole.Y != pieces.Y).nnz == 0
    with pytest.raises(InputError, match="line 4 has the label 2, and line 1 says 2 labels"):
        read(tmp_path, TEXT.replace("\n1\n", "\n2\n"))
