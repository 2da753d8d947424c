"""Types of arrays, for annotations, and the refusal of masked ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hstree.errors import InputError

Array = NDArray[Any]
Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Floating = NDArray[np.floating]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Integer = NDArray[np.integer]
UInt8 = NDArray[np.uint8]


def refuse_masked(values: object, what: str) -> None:
    """Refuse an array with masked entries, which `numpy.asarray` would read as numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} with masked entries; fill them, or leave their words out")
