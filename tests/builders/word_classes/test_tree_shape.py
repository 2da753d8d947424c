import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hstree._ragged import offsets
from hstree.builders.word_classes.tree_shape import (
    Shape,
    graft,
    huffman_shape,
    merged_shape,
    prefix_shape,
    wide,
)
from hstree.tree import Tree
from tests.builders.oracle import code_lengths
from tests.strategies import children_of

BY_FREQUENCY = np.array([2, 0, 1, 5, 4, 3, 6, 7])
COUNTS = np.array([8, 7, 9, 3, 4, 5, 2, 1])


def tree_of(shape):
    """The shape as a checked tree over its leaves, each a label."""
    labels = [f"leaf {leaf}" for leaf in range(len(shape.leaves))]
    return Tree(labels, offsets(shape.fan_out), shape.child, names=shape.names)


def codes(shape):
    """Branches on the path to each leaf."""
    if len(shape.fan_out) == 0:
        return [""]
    found, waiting = {}, [(0, "")]
    children = children_of(tree_of(shape))
    while waiting:
        node, path = waiting.pop()
        for branch, child in enumerate(children[node]):
            if child < 0:
                found[~child] = f"{path}{branch}"
            else:
                waiting.append((child, f"{path}{branch}"))
    return [found[leaf] for leaf in range(len(found))]


@st.composite
def prefix_codes(draw):
    """Bit strings, none of which begins another one, and without any that could be added."""
    strings = [""]
    for _ in range(draw(st.integers(0, 12))):
        parted = strings.pop(draw(st.integers(0, len(strings) - 1)))
        strings += [parted + "0", parted + "1"]
    return sorted(strings)


@given(prefix_codes(), st.sampled_from(["", "0", "01", "1"]))
def test_a_prefix_code_is_its_own_tree_less_the_bits_that_decide_nothing(strings, between):
    longer = [between + "".join(bit + between for bit in string) for string in strings]
    shape = prefix_shape(longer)
    assert codes(shape) == strings
    tree_of(shape)


def test_bits_whose_other_side_is_empty_make_no_node():
    assert codes(prefix_shape(["000", "0110", "0111", "1"])) == ["00", "010", "011", "1"]
    assert codes(prefix_shape(["0110"])) == [""]


def test_merges_become_nodes():
    shape = merged_shape(np.array([[1, 3], [0, 2], [4, 5]]), 4)
    assert codes(shape) == ["10", "00", "11", "01"]
    assert len(merged_shape(np.empty((0, 2), int), 1).fan_out) == 0


@st.composite
def shapes(draw):
    kind = draw(st.sampled_from(["wide", "huffman", "prefix"]))
    if kind == "wide":
        return wide(range(draw(st.integers(1, 6))))
    if kind == "huffman":
        return huffman_shape(np.array(draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))))
    return prefix_shape(draw(prefix_codes()))


@given(shapes(), st.data())
def test_a_grafted_leaf_is_reached_by_both_ways(top, data):
    below = []
    for _ in top.leaves:
        shape = data.draw(shapes())
        names = tuple(f"node {node}" for node in range(len(shape.fan_out)))
        leaves = np.arange(100, 100 + len(shape.leaves))
        below.append(Shape(shape.fan_out, shape.child, names, leaves))
    whole = graft(top, below)
    expected = [
        over + under
        for over, shape in zip(codes(top), below, strict=True)
        for under in codes(shape)
    ]
    assert codes(whole) == expected
    assert whole.leaves.tolist() == [leaf for shape in below for leaf in shape.leaves.tolist()]
    assert len(whole.names) == len(whole.fan_out)
    every_code_is_single = all(len(lengths) == 1 for lengths in code_lengths(tree_of(whole)))
    assert every_code_is_single
