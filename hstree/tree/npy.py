"""Arrays in ``.npy`` files and as members of ``.npz``, strictly, without pickles."""

import math
from typing import IO, Any

import numpy as np

from hstree._arrays import Array
from hstree._text import brief
from hstree.errors import FileFormatError


def write_array(file: IO[bytes], array: Array) -> None:
    """Write a C-contiguous array as ``.npy``; unlike `numpy.save`, say when the disk is full."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.data)


def read_array(file: IO[bytes], size: int, *, mapped_above: float = math.inf) -> Array:
    """Read a ``.npy`` of real numbers from a file of `size` bytes, open at its beginning.

    An array of more than `mapped_above` rows stays in the file, as a `numpy.memmap`.

    Memory is allocated only after the announced size has been checked. FileFormatError does not
    name the file.
    """
    try:
        first = np.lib.format.read_array_header_1_0
        later = np.lib.format.read_array_header_2_0
        readers = {(1, 0): first, (2, 0): later, (3, 0): later}
        shape, is_fortran, dtype = readers[np.lib.format.read_magic(file)](file)
        if len(shape) > 32 or min(shape, default=0) < 0:
            raise ValueError("a shape that no array has")
    except Exception as error:  # a damaged header raises errors of many kinds
        remedy = "it is not a readable .npy file; write one with numpy.save"
        raise FileFormatError(remedy) from error
    if dtype.hasobject:
        raise FileFormatError(
            "it holds Python objects, which are never loaded; save numbers (float32)"
        )
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise FileFormatError(f"it holds {dtype.str!r}, not real numbers of up to 64 bits")
    expected = math.prod(shape) * dtype.itemsize
    available = size - file.tell()
    # An axis may be longer than the file where another one is 0
    if expected != available or max(shape, default=0) > size:
        raise FileFormatError(
            f"its header announces an array {brief(shape)} of {brief(expected)} bytes and "
            f"{available} follow; make or fetch it again"
        )
    order: Any = "F" if is_fortran else "C"
    if shape and shape[0] > mapped_above:
        return np.memmap(file, dtype, "r", file.tell(), shape, order)
    return np.frombuffer(file.read(expected), dtype).reshape(shape, order=order)
