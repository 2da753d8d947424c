"""The picture of a tree: where its rectangles are, and what they say."""

import pytest

from hstree import Tree, build
from hstree.errors import OptionError
from hstree.tree.branches import LABEL_COLOUR, NARROW_COLOUR, NODE_COLOUR
from tests import needs

TREE = Tree.from_children(
    ["a", "$b", "c", "d"], [[~0, 1, ~3], [~1, ~2]], counts=[4, 2, 1, 1], names=[None, "rare"]
)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason=needs.NOTEBOOK)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def rectangles(axes):
    """Return {(left, top, width): colour} of all rectangles."""
    from matplotlib.colors import to_hex

    [drawn] = axes.collections
    boxes = [path.get_extents() for path in drawn.get_paths()]
    colours = map(to_hex, drawn.get_facecolors())
    return {
        tuple(round(float(at), 9) for at in (box.x0, box.y0, box.width)): colour
        for box, colour in zip(boxes, colours, strict=True)
    }


def test_rectangles_and_texts(pyplot):
    axes = TREE.plot()
    assert rectangles(axes) == {
        (0, 0, 1): NODE_COLOUR,
        (0, 1, 1): NARROW_COLOUR,  # behind the branches of a node
        (0, 1, 0.5): LABEL_COLOUR,
        (0.5, 1, 0.375): NODE_COLOUR,
        (0.875, 1, 0.125): LABEL_COLOUR,
        (0.5, 2, 0.375): NARROW_COLOUR,
        (0.5, 2, 0.25): LABEL_COLOUR,
        (0.75, 2, 0.125): LABEL_COLOUR,
    }
    texts = {text.get_text(): text.get_position() for text in axes.texts}
    assert texts == {
        "a $b c": (0.5, 0.5),  # the root has no name, so its most frequent labels
        "a": (0.25, 1.5),
        "rare": (0.6875, 1.5),
        "d": (0.9375, 1.5),
        "$b": (0.625, 2.5),
        "c": (0.8125, 2.5),
    }
    assert axes.get_title() == "Tree(4 labels, 2 nodes)"
    assert axes.get_xlabel() == "fraction of the counts"
    axes.figure.canvas.draw()  # a dollar sign is no formula


def test_depth_is_limited_and_axes_may_be_given(pyplot):
    axes = pyplot.subplots()[1]
    assert TREE.plot(max_depth=1, ax=axes) is axes
    assert {top for _, top, _ in rectangles(axes)} == {0, 1}
    for depth in (0, -1):
        with pytest.raises(OptionError, match="max_depth is"):
            TREE.plot(max_depth=depth)


def test_narrow_branches_are_drawn_as_one(pyplot):
    flat = build("flat", {f"w{i}": 1 for i in range(5000)} | {"common": 5000})
    drawn = rectangles(flat.plot())
    assert drawn == {(0, 0, 1): NODE_COLOUR, (0, 1, 1): NARROW_COLOUR, (0.5, 1, 0.5): LABEL_COLOUR}
