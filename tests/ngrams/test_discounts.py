"""Discounts: the formula on numbers worked by hand, and the fallback."""

import numpy as np
import pytest

from hstree.ngrams.kneser_ney import FALLBACK, modified_discounts


def test_the_formula_by_hand():
    # Y = 10 / (10 + 2 * 5) = 1/2: 1 - 2/2 * 5/10, 2 - 3/2 * 4/5, 3 - 4/2 * 3/4.
    counts = np.repeat([1, 2, 3, 4, 5, 99], [10, 5, 4, 3, 7, 7])
    assert modified_discounts(counts).tolist() == pytest.approx([0.5, 0.8, 1.5])


@pytest.mark.parametrize(
    "n",
    [
        (0, 5, 4, 3),
        (10, 0, 4, 3),
        (10, 5, 0, 3),
        (10, 5, 4, 0),
        (10, 5, 8, 3),  # 2 - 3/2 * 8/5 is below zero
        (10, 5, 4, 6),  # 3 - 4/2 * 6/4 is zero
    ],
)
def test_what_the_formula_cannot_give_falls_back(n):
    assert tuple(modified_discounts(np.repeat([1, 2, 3, 4], n))) == FALLBACK
    assert tuple(modified_discounts(np.repeat([1, 2, 3, 4, 8], [*n, 3]))) == FALLBACK
