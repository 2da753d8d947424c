"""Strict reader of ``.npy`` files of real numbers, and a writer.

NumPy's reader evaluates the header as Python and allocates the size that it claims. Here the
header is matched by a pattern, and its size compared with that of the file before reading.
"""

from __future__ import annotations

import math
import re
from typing import Any, BinaryIO

import numpy as np

from hstree._typing import Array
from hstree.errors import FileFormatError

MAGIC = b"\x93NUMPY"

#: Number of bytes of the header's length, by version.
_LENGTH_BYTES: dict[tuple[int, ...], int] = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
_LONGEST_HEADER = 10_000
_ITEM = re.compile(
    r"""[ ]*(?P<quote>['"])(?P<key>descr|fortran_order|shape)(?P=quote)[ ]*:[ ]*
    (?:(?P<mark>['"])(?P<descr>[^'"\\]{1,16})(?P=mark)
    |(?P<fortran_order>True|False)
    |\((?P<shape>[0-9, ]*)\))
    [ ]*(?:,|(?=\}))""",
    re.VERBOSE,
)
_HEADER = re.compile(rf"[ ]*\{{(?:{_ITEM.pattern}){{3}}[ ]*\}}[ \n]*", re.VERBOSE)
_OBJECT = re.compile(r"['\"][|<>=]?O")
_NUMBERS = re.compile(r"[<>|=]?(?:[iu][1248]|f[248])")
_SHAPE = re.compile(r"[ ]*|(?:[ ]*[0-9]{1,19}[ ]*,){1,32}(?:[ ]*[0-9]{1,19})?[ ]*")
_UNREADABLE = "it is not a readable .npy file; write one with numpy.save"
_OBJECTS = "it holds Python objects, which are never loaded; save numbers (float32)"
_CUT_OFF = "it ends too early; make or fetch it again"


def write_array(file: BinaryIO, array: Array) -> None:
    """Write a C-contiguous array; unlike `numpy.save`, errors say that the disk is full."""
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    file.write(array.data)


def read_array(file: BinaryIO, size: int) -> Array:
    """Read an array of real numbers from a file of `size` bytes, open at its beginning.

    Returns a read-only array in the byte order of the file. Raises FileFormatError when it is not
    a ``.npy`` file, holds anything but real numbers, or has another size than its header says;
    the message does not name the file.
    """
    dtype, is_fortran, shape = _header(file)
    expected = math.prod(shape) * dtype.itemsize
    available = size - file.tell()
    # An axis may be longer than the file where another one is 0.
    if expected > available or max(shape, default=0) > size:
        raise FileFormatError(_CUT_OFF)
    if expected < available:
        wrong = f"its header announces {expected} bytes of numbers and {available} follow"
        raise FileFormatError(f"{wrong}; make or fetch it again")
    data = file.read(expected)
    if len(data) != expected:
        raise FileFormatError(_CUT_OFF)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")


def _header(file: BinaryIO) -> tuple[np.dtype[Any], bool, tuple[int, ...]]:
    """Read the header, a Python dict: type, whether the order is Fortran's, and shape."""
    magic, version = file.read(len(MAGIC)), tuple(file.read(2))
    n_bytes = _LENGTH_BYTES.get(version)
    if magic != MAGIC or n_bytes is None:
        raise FileFormatError(_UNREADABLE)
    length = int.from_bytes(file.read(n_bytes), "little")
    if length > _LONGEST_HEADER:
        raise FileFormatError(_UNREADABLE)
    header = file.read(length).decode("latin-1")
    if len(header) < length:
        raise FileFormatError(_CUT_OFF)
    values = {}
    if _HEADER.fullmatch(header):
        values = {item["key"]: item[item["key"]] for item in _ITEM.finditer(header)}
    descr, order, shape = map(values.get, ("descr", "fortran_order", "shape"))
    if descr is None or order is None or shape is None:
        raise FileFormatError(_OBJECTS if _OBJECT.search(header) else _UNREADABLE)
    if not _NUMBERS.fullmatch(descr):
        other = f"it holds {descr!r}, not real numbers of up to 64 bits"
        raise FileFormatError(_OBJECTS if "O" in descr else other)
    if not _SHAPE.fullmatch(shape):
        raise FileFormatError(_UNREADABLE)
    axes = tuple(int(axis) for axis in shape.split(",") if axis.strip())
    return np.dtype(descr), order == "True", axes
