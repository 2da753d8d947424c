"""The text form of extreme classification: what is read, written and refused."""

import lzma

import numpy as np
import pytest

from hstree.data.multilabel import read_multilabel, write_multilabel
from hstree.errors import InputError
from tests.needs import shared

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


@pytest.mark.parametrize("layout", [np.asarray, "csr_array"])
def test_what_is_written_reads_the_same(tmp_path, layout):
    import scipy.sparse

    layout = getattr(scipy.sparse, layout) if isinstance(layout, str) else layout
    numbers = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    write_multilabel(tmp_path / "data.txt", layout(numbers), layout(np.array(Y)))
    data = read_multilabel(tmp_path / "data.txt")
    np.testing.assert_array_equal(data.X.toarray(), numbers)
    np.testing.assert_array_equal(data.Y.toarray(), Y)


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        ("", "line 1 is ''; expected the numbers of samples"),
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


def test_samples_without_labels_of_their_own_are_refused(tmp_path):
    with pytest.raises(InputError, match="X has 3 samples and Y 2"):
        write_multilabel(tmp_path / "data.txt", X, Y[:2])
    with pytest.raises(InputError, match="X has a number that is not finite"):
        write_multilabel(tmp_path / "data.txt", np.full((3, 4), np.inf), Y)
    with pytest.raises(InputError, match="Y has the value 2"):
        write_multilabel(tmp_path / "data.txt", X, 2 * np.asarray(Y))
    assert not (tmp_path / "data.txt").exists()


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
