"""Labels that are row numbers, "0" to "V - 1", stored without strings."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hstree._arrays import Int64, UInt8, offsets

#: Number of row numbers that are converted to text at a time.
_AT_ONCE = 1 << 18


class RowNumbers(Sequence[str]):
    """Immutable sequence of the strings "0", "1", ... for V rows; it equals the tuple of these.

    Examples
    --------
    >>> labels = RowNumbers(3)
    >>> labels[1], "3" in labels, labels == ("0", "1", "2")
    ('1', False, True)
    """

    def __init__(self, n_rows: int) -> None:
        self._rows = range(n_rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._rows)

    def __getitem__(self, at: Any) -> Any:
        rows = self._rows[at]
        return tuple(map(str, rows)) if isinstance(rows, range) else str(rows)

    def __contains__(self, label: object) -> bool:
        if not isinstance(label, str) or len(label) > 20 or not label.isdecimal():
            return False
        return str(int(label)) == label and int(label) in self._rows  # no "01"

    def index(self, label: str, start: int = 0, stop: int | None = None) -> int:
        """Return the row of a label. Raises ValueError if it is not between `start` and `stop`."""
        if label not in self or int(label) not in self._rows[start:stop]:
            raise ValueError(f"{label!r} is no row number from {start}")
        return int(label)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowNumbers):
            return len(self) == len(other)
        if not isinstance(other, tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(str.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)})"

    def packed(self) -> tuple[UInt8, Int64]:
        """Return all digits, a uint8 array, and the offsets (V + 1,) of the numbers in it."""
        blocks = range(0, len(self), _AT_ONCE)
        text = "".join("".join(self[first : first + _AT_ONCE]) for first in blocks)
        return np.frombuffer(text.encode(), np.uint8), _digit_offsets(len(self))

    @classmethod
    def from_packed(cls, digits: UInt8, start: Int64) -> "RowNumbers | None":
        """Return the row numbers in the result of `packed`; None for other strings."""
        n_rows = len(start) - 1
        if n_rows < 1 or not np.array_equal(start, _digit_offsets(n_rows)):
            return None
        return cls(n_rows) if np.array_equal(digits, cls(n_rows).packed()[0]) else None


def _digit_offsets(n_rows: int) -> Int64:
    """Return the offsets (V + 1,) of the numbers below V in their concatenated digits."""
    widths = np.arange(1, len(str(n_rows)) + 1)
    stops = np.minimum(10**widths, n_rows)
    return offsets(np.repeat(widths, np.diff(stops, prepend=0)))
