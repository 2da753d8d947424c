"""Ticks that have room, and names that do not overlap."""

import math
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from hstree.report.scales import CHARACTER, LINE, ticks

ranges = st.tuples(
    st.sampled_from(["linear", "log"]),
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 1e6),
    st.sampled_from([160.0, 262.0, 404.0]),
    st.booleans(),
)


def units(value, scale):
    return math.log10(value) if scale == "log" else value


def axis(scale, one, other, length, vertical=False):
    """The range of an axis over two figures and its ticks."""
    low, high = sorted((one, other))
    assume(low == high or (high - low) / high > 1e-4)
    return ticks(units(low, scale), units(high, scale), scale, length, vertical)


@given(ranges)
@example(("log", 0.0625, 0.0625, 160.0, False))
@example(("linear", 5.0, 5.0, 262.0, False))
def test_every_axis_has_two_ticks_or_more_and_these_have_room_for_their_labels(drawn):
    scale, one, other, length, vertical = drawn
    low, high, ticked = axis(scale, one, other, length, vertical)
    values, labels = list(ticked), list(ticked.values())
    assert len(values) >= 2
    assert values == sorted(set(values))
    at = [units(value, scale) if value else 0.0 for value in values]
    assert all(low - 1e-9 <= unit <= high + 1e-9 or unit == 0 for unit in at)
    assert len(set(labels)) == len(labels)
    pixels = [(unit - low) / (high - low) * length for unit in at]
    widths = [LINE if vertical else CHARACTER * len(label) for label in labels]
    for (a, b), (one, other) in zip(pairwise(pixels), pairwise(widths), strict=True):
        assert len(values) == 2 or b - a >= (one + other) / 2


def test_ticks_are_written_short():
    labels = {0.5: "0.5", 2000: "2,000", 50_000: "50k", 1.5e6: "1.5M", 1.05: "1.05", 0: "0"}
    ticked = [ticks(0.9, 1.1, "linear", 300.0)[2]]
    ticked += [ticks(0.0, high, "linear", 300.0)[2] for high in (2.0, 4000.0, 1.5e5, 2e6)]
    assert labels.items() <= {pair for labelled in ticked for pair in labelled.items()}
