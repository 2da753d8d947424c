"""What models take as sizes and as label ids, at the edges."""

import numpy as np
import pytest

from hstree.data.contexts import LARGEST, check_ids, checked_size
from hstree.errors import InputError, OptionError


@pytest.mark.parametrize("name", LARGEST)
def test_sizes_go_from_1_to_the_largest(name):
    assert checked_size(name, 1) == 1
    assert checked_size(name, np.int64(LARGEST[name])) == LARGEST[name]
    for wrong in (0, LARGEST[name] + 1):
        with pytest.raises(OptionError, match=f"{name} is {wrong}; it must be a whole number"):
            checked_size(name, wrong)


@pytest.mark.parametrize("lowest", [0, -1])
def test_ids_go_from_the_lowest_to_the_last_label(lowest):
    check_ids(np.array([lowest, 4]), 5, lowest)
    check_ids(np.empty(0, int), 5, lowest)
    for wrong in (lowest - 1, 5):
        with pytest.raises(InputError, match=f"ids outside {lowest} to 4"):
            check_ids(np.array([wrong]), 5, lowest)
