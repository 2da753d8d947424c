"""Speeds of trained models."""

import time

from hstree.experiments.speed import _per_second


def test_kernels_that_a_larger_batch_compiles_are_not_counted():
    compiled = []

    def score(n):
        if n > 1 and not compiled:
            time.sleep(0.3)
            compiled.append(n)

    assert _per_second(score, 4) > 1000
