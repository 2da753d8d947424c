"""Strict reader of .npy: reads what NumPy writes, refuses every other header."""

import io

import numpy as np
import pytest

from hstree import WordVectors, formats
from hstree.errors import FileFormatError, InputError
from hstree.tree.npy import read_array


def npy(header, data=b"", version=(1, 0), magic=b"\x93NUMPY"):
    length = len(header).to_bytes(2 if version == (1, 0) else 4, "little")
    return magic + bytes(version) + length + header.encode("latin-1") + data


def dictionary(descr="'<f4'", order="False", shape="(2, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def read(content):
    return read_array(io.BytesIO(content), len(content))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        np.arange(6, dtype=">i2"),
        np.ones((2, 2), np.float16),
        np.ones(3, np.uint8),
        np.zeros((0, 4)),
        np.array(3.0),
        np.ones((1,) * 32),
    ],
    ids=lambda value: f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else None,
)
def test_what_numpy_writes_comes_back(array, version):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    result = read(file.getvalue())
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    assert np.array_equal(result, array)


def test_other_programs_headers_are_read():
    """Another order, no blanks, double quotes, no last comma, no padding."""
    header = '{"shape":(2,3),"fortran_order":False,"descr":"<f4"}'
    assert read(npy(header, bytes(24))).shape == (2, 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (npy(dictionary(shape="(1099511627776, 0)")), "announces an array (1099511627776, 0)"),
        (npy(dictionary(shape="(9999999999999999999, 9999999999999999999)")), "and 0 follow"),
        (npy(dictionary(descr="'<f8'"), bytes(24)), "of 48 bytes and 24 follow"),
        (npy(dictionary(), bytes(23)), "and 23 follow"),
        (npy(dictionary(), bytes(25)), "announces an array (2, 3) of 24 bytes and 25 follow"),
        (npy(dictionary(descr="'|O'"), bytes(24)), "Python objects"),
        (npy(dictionary(descr="[('a', '<f4')]"), bytes(24)), "not real numbers"),
        (npy(dictionary(descr="'<c8'"), bytes(48)), "holds '<c8', not real numbers"),
        (npy(dictionary(descr="'<f3'"), bytes(24)), "not a readable"),
        (npy(dictionary(order="0"), bytes(24)), "not a readable"),
        (npy(dictionary(shape="(-2, -3)"), bytes(24)), "not a readable"),
        (npy(dictionary(shape="(6)"), bytes(24)), "not a readable"),
        (npy(dictionary(shape=f"({'1, ' * 33})"), bytes(4)), "not a readable"),
        (npy(dictionary()[:-1], bytes(24)), "not a readable"),
        (npy(dictionary(), bytes(24), version=(4, 0)), "not a readable"),
        (npy(dictionary())[:40], "not a readable"),
        (b"", "not a readable"),
    ],
)
def test_any_other_header_is_refused(content, says, tmp_path):
    with pytest.raises(FileFormatError) as caught:
        read(content)
    assert says in str(caught.value)
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    for read_file in (WordVectors.read, formats.read):
        with pytest.raises(InputError) as caught:
            read_file(path)
        assert says in str(caught.value)
        assert str(path) in str(caught.value)
