"""Arrays in ``.npy`` files, without pickles."""

import math
import os
from typing import IO

import numpy as np

from hstree._arrays import Array
from hstree._files import open_regular, refuse_pickle
from hstree._text import one_line
from hstree.errors import InputError, explained


def write_array(file: IO[bytes], array: Array) -> None:
    """Write a C-contiguous array as ``.npy``; unlike `numpy.save`, report a full disk."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.data)


def read_npy(name: str, what: str = "vectors", *, mapped_above: float = math.inf) -> Array:
    """Read a ``.npy`` file of real numbers of any type and shape, without unpickling.

    An array with more than `mapped_above` rows stays in the file, as a `numpy.memmap`.

    `what` describes the content in messages. Raises InputError when the file is truncated, is not
    such a file, or has other values than real numbers.
    """
    with explained(f"read the {what} {name}"), open_regular(name) as file:
        try:
            with np.errstate(over="ignore"):  # the size check below refuses a huge shape
                mapped = np.lib.format.open_memmap(name, mode="r")
            if mapped.offset + mapped.nbytes != os.fstat(file.fileno()).st_size:
                raise ValueError("more data follows the array")
            is_mapped = mapped.ndim > 0 and len(mapped) > mapped_above
            array = mapped if is_mapped else np.lib.format.read_array(file)
        except Exception as error:  # a damaged header raises errors of many kinds
            refuse_pickle(name)
            raise InputError(
                f"cannot read the {what} {name}: it is not a readable .npy file of numbers "
                f"({one_line(error)}); write one with numpy.save"
            ) from error
    if array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise InputError(
            f"cannot read the {what} {name}: it holds {array.dtype.str!r}, not real numbers of up "
            "to 64 bits; convert them with astype"
        )
    return array
