"""Types of arrays, for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Floating = NDArray[np.floating]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Integer = NDArray[np.integer]
UInt8 = NDArray[np.uint8]
