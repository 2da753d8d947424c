"""Contexts of label ids: their range."""

import numpy as np
import pytest

from hstree.data.contexts import check_ids
from hstree.errors import InputError


@pytest.mark.parametrize("lowest", [0, -1])
def test_ids_go_from_the_lowest_to_the_last_label(lowest):
    check_ids(np.array([lowest, 4]), 5, lowest)
    check_ids(np.empty(0, int), 5, lowest)
    for wrong in (lowest - 1, 5):
        with pytest.raises(InputError, match=f"ids outside {lowest} to 4"):
            check_ids(np.array([wrong]), 5, lowest)
