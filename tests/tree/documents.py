"""Helpers for tests of tree files: a tree with everything in it, and bad files' errors."""

import io

import numpy as np
import pytest

from hstree.errors import HstreeError
from hstree.tree import Tree, load
from hstree.tree.files import to_npz

META = {
    "method": "wordnet",
    "options": {"depth": None, "share": 0.5, "of": ["a", "ü"]},
    "random_state": 0,
    "hstree": "0.1.0",
    "input": {"kind": "vocabulary", "sha256": "0" * 64, "lines": [0, 9]},
    "other": True,
}
TREE = Tree.from_children(
    ["the", "a\nb", "", 'é"漢🎈', "a\nb "],
    [[1, ~0, 2], [~1, ~2], [~3, 3], [~4, ~1]],
    counts=[2**63 - 1, 0, 5, 1, 1],
    names=["entity.n.01", None, "", "\u2028"],
    meta=META,
)
DOCUMENT = {
    "format": "hstree",
    "version": 1,
    "labels": ["a", "b", "c"],
    "counts": [3, 2, 1],
    "children": [[-1, 1], [-2, -3]],
    "names": None,
    "meta": {},
}


def refusal(path, error=HstreeError):
    """Load a bad file; return the error's one line without the path that must open it."""
    with pytest.raises(error) as caught:
        load(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    return message.replace(str(path), "FILE")


def members_of(tree):
    """Return the members of a tree's .npz as NumPy reads them."""
    file = io.BytesIO()
    to_npz(tree, file)
    file.seek(0)
    with np.load(file) as members:
        return dict(members)
