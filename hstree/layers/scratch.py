"""Memory used again from batch to batch: fresh pages cost more than what is done on them."""

from __future__ import annotations

import math
import threading

import numpy as np
from numpy.typing import DTypeLike

from hstree._typing import Array, UInt8

#: The most bytes that are kept under one name; a larger array is an ordinary one.
LARGEST = 1 << 26


class Scratch(threading.local):
    """Arrays by name, each thread's its own; asking for one again overwrites it."""

    def __init__(self) -> None:
        self._kept: dict[str, UInt8] = {}

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # a copy of a layer begins without any

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an array whose content is undefined, valid until `name` is asked for again."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > LARGEST:
            return np.empty(shape, dtype)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size, np.uint8)
        return kept[:size].view(dtype).reshape(shape)
