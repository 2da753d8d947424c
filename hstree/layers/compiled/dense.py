"""Exponentials of the logits of a softmax, and their sums, in one pass over the logits."""

from typing import Any

import numpy as np

from hstree._compiled import jit, takes
from hstree._typing import Array
from hstree.layers.compiled.arithmetic import ZERO, check_shape, exp

#: The largest number of which `exp` is computed; a sum with it is too large, so that logits are
#: shifted.
_MOST = np.float32(88)


@jit
def _exponentials(logits, bias, shift, total):
    for b in range(len(logits)):
        of_item, sum_of_item = logits[b], ZERO
        for j in range(len(bias)):
            power = exp(min(of_item[j] + (bias[j] - shift[b]), _MOST))
            of_item[j] = power
            sum_of_item += power
        total[b] = sum_of_item


def exponentials(logits: Array, bias: Array, shift: Array, total: Array) -> Any:
    """Twin of `dense.exponentials`."""
    if not takes(logits, bias, shift, total):
        return NotImplemented
    check_shape("logits", logits.shape, (len(total), len(bias)))
    check_shape("shifts", shift.shape, total.shape)
    _exponentials(logits, bias, shift, total)
    return None
