"""Ticks that have room, and names that do not overlap."""

import math
from itertools import pairwise

from hypothesis import assume, example, given
from hypothesis import strategies as st

from hstree.report.scales import CHARACTER, LINE, extent, spread, tick_label, ticks

ranges = st.tuples(
    st.sampled_from(["linear", "log", "count", "zero"]),
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 1e6),
    st.sampled_from([160.0, 262.0, 404.0]),
    st.booleans(),
)


def units(value, scale):
    return math.log10(value) if scale == "log" else value


def axis(scale, one, other):
    """The range of an axis over two figures; a chart's counts are whole."""
    low, high = sorted((one, other))
    assume(low == high or (high - low) / high > 1e-4)
    if scale == "count":
        high = float(math.ceil(min(high, 1e4)))
    return extent(units(low, scale), units(high, scale), scale)


@given(ranges)
@example(("log", 0.0625, 0.0625, 160.0, False))
@example(("linear", 5.0, 5.0, 262.0, False))
def test_every_axis_has_two_ticks_or_more_within_its_range(drawn):
    scale, one, other, length, vertical = drawn
    low, high = axis(scale, one, other)
    found = ticks(low, high, scale, length, vertical=vertical)
    assert len(found) >= 2
    assert found == sorted(set(found))
    assert all(low - 1e-9 <= units(max(tick, 1e-300), scale) <= high + 1e-9 or tick == 0
               for tick in found)  # fmt: skip
    labels = [tick_label(tick) for tick in found]
    assert len(set(labels)) == len(labels)


@given(ranges)
def test_more_than_two_ticks_have_room_for_their_labels(drawn):
    scale, one, other, length, vertical = drawn
    low, high = axis(scale, one, other)
    found = ticks(low, high, scale, length, vertical=vertical)
    places = [(units(tick, scale) - low) / (high - low) * length if tick else 0.0 for tick in found]
    for i in range(len(found) - 1) if len(found) > 2 else ():
        widths = [LINE if vertical else CHARACTER * len(tick_label(t)) for t in found[i : i + 2]]
        assert places[i + 1] - places[i] >= sum(widths) / 2


def test_ticks_are_written_short():
    labels = {0.5: "0.5", 2000: "2,000", 50_000: "50k", 1.5e6: "1.5M", 1.05: "1.05", 0: "0"}
    assert {value: tick_label(value) for value in labels} == labels


@given(st.lists(st.floats(0, 300), max_size=18))
def test_names_are_moved_apart_in_their_order(places):
    moved = spread(places, 15.0, 0.0, 300.0)
    assert [moved[i] for i in sorted(range(len(places)), key=places.__getitem__)] == sorted(moved)
    moved.sort()
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(moved))
    assert all(-1e-9 <= place <= 300 + 1e-9 for place in moved)
    assert spread([10.0, 40.0, 90.0], 15.0, 0.0, 100.0) == [10.0, 40.0, 90.0], "there is room"
