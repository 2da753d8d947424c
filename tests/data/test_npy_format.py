"""Files of .npy: what NumPy writes comes back, and every other header is refused."""

import io

import numpy as np
import pytest

from hstree import WordVectors, formats
from hstree.errors import InputError
from hstree.tree.npy import read_npy


def npy(descr="<f4", order=False, shape=(2, 3), n_bytes=24):
    file = io.BytesIO()
    header = {"descr": descr, "fortran_order": order, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + bytes(n_bytes)


@pytest.mark.parametrize("mapped_above", [0, 10])
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
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_what_numpy_writes_comes_back(tmp_path, array, mapped_above):
    path = tmp_path / "v.npy"
    np.save(path, array)
    result = read_npy(str(path), mapped_above=mapped_above)
    np.testing.assert_array_equal(result, array, strict=True)
    assert isinstance(result, np.memmap) == (array.shape[:1] > (mapped_above,))


@pytest.mark.parametrize(
    "content",
    [
        npy(shape=(1 << 40, 0), n_bytes=0),
        npy(shape=(10**19, 10**19)),
        npy(shape=(-2, -3)),
        npy(order=0),
        npy("<f8"),
        npy(n_bytes=23),
        npy() + npy(),
        npy("|O"),
        npy([("a", "<f4")]),
        npy("<c8", n_bytes=48),
        npy("<f3"),
        npy()[:40],
        npy().replace(b"NUMPY\1", b"NUMPY\4"),
        b"",
    ],
)
def test_any_other_file_is_refused_in_one_line(content, tmp_path):
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    for read_file in (WordVectors.read, formats.read):
        with pytest.raises(InputError) as caught:
            read_file(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
