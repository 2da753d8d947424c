"""Valid tree files, changed at random: a tree, or a clear error, and nothing else."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree.errors import HstreeError
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS, save
from tests.strategies import children_of, json_values, trees
from tests.tree.documents import TREE, members_of


@settings(max_examples=120, deadline=None)
@given(data=st.data(), ending=st.sampled_from(ENDINGS))
def test_changed_bytes_are_a_tree_or_a_clear_error(tmp_path_factory, data, ending):
    path = tmp_path_factory.getbasetemp() / f"mutant{ending}"
    save(TREE, path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "insert", "end"]))
        if change == "set":
            content[place] = data.draw(st.integers(0, 255))
        elif change == "cut":
            del content[place : place + data.draw(st.integers(1, 9))]
        elif change == "insert":
            content[place:place] = data.draw(st.binary(min_size=1, max_size=4))
        else:
            del content[place + 1 :]
        if not content:
            break
    path.write_bytes(content)
    valid_or_refused(path)


@settings(max_examples=120, deadline=None)
@given(data=st.data(), tree=trees(max_labels=6))
def test_changed_json_is_a_tree_or_a_clear_error(tmp_path_factory, data, tree):
    path = tmp_path_factory.getbasetemp() / "mutant.json"
    save(tree, path)
    document = json.loads(path.read_text("utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        mutate(document, data)
    path.write_text(json.dumps(document), "utf-8")
    valid_or_refused(path)


def mutate(document, data):
    """Change one value anywhere in a JSON document: put another, take it out, or double it."""
    place, key = document, data.draw(st.sampled_from(sorted(document) or ["new"]))
    while isinstance(place.get(key) if isinstance(place, dict) else place[key], dict | list):
        inner = place[key]
        if not inner or data.draw(st.booleans()):
            break
        place = inner
        keys = sorted(inner) if isinstance(inner, dict) else range(len(inner))
        key = data.draw(st.sampled_from(keys))
    change = data.draw(st.sampled_from(["put", "number", "take", "double"]))
    if change == "put":
        place[key] = data.draw(json_values)
    elif change == "number":
        place[key] = data.draw(
            st.integers(-8, 8) | st.integers() | st.sampled_from([2**63, -(2**63)])
        )
    elif change == "take" and key in (place if isinstance(place, dict) else range(len(place))):
        del place[key]
    elif isinstance(place, list):
        place.insert(key, place[key])


@settings(max_examples=80, deadline=None)
@given(data=st.data(), tree=trees(max_labels=6))
def test_changed_members_are_a_tree_or_a_clear_error(tmp_path_factory, data, tree):
    path = tmp_path_factory.getbasetemp() / "mutant.npz"
    members = members_of(tree)
    name = data.draw(st.sampled_from(sorted(members)))
    array = members[name].copy()
    if array.size and data.draw(st.booleans()):
        lowest = np.iinfo(array.dtype)
        array[data.draw(st.integers(0, len(array) - 1))] = data.draw(
            st.integers(int(lowest.min), int(lowest.max)) | st.integers(0, 9)
        )
    else:
        array = data.draw(
            st.sampled_from([array[1:], array[:-1], np.append(array, array[:1]), array[::-1]])
        )
    np.savez(path, **members | {name: array})
    valid_or_refused(path)


def valid_or_refused(path):
    """A loaded tree is sound through and through; anything else is one line naming the file."""
    try:
        tree = load(path)
    except HstreeError as error:
        message = str(error)
    else:
        message = f"{path} is valid"
        children = children_of(tree)
        again = Tree.from_children(tree.labels, children, counts=tree.counts, names=tree.names)
        assert again == tree
    assert len(message.splitlines()) == 1
    assert str(path) in message
