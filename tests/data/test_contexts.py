"""Contexts of label ids: their range."""

import numpy as np
import pytest

from hstree.data.contexts import check_ids, checked_ids
from hstree.errors import InputError


@pytest.mark.parametrize("lowest", [0, -1])
def test_ids_go_from_the_lowest_to_the_last_label(lowest):
    check_ids(np.array([lowest, 4]), 5, lowest)
    check_ids(np.empty(0, int), 5, lowest)
    for wrong in (lowest - 1, 5):
        with pytest.raises(InputError, match=f"ids outside {lowest} to 4"):
            check_ids(np.array([wrong]), 5, lowest)


def test_an_array_of_contexts_has_one_row_per_context():
    assert checked_ids([[0, 4]], 2, 5).dtype == np.int64
    for wrong in ([0, 4], [[0, 4, 1]], [[[0, 4]]]):
        with pytest.raises(InputError, match=r"this model takes \(B, 2\)"):
            checked_ids(wrong, 2, 5)
