"""Taxonomies from mappings: nested mappings, child to parent, or node to children.

The values determine the form:

- All values are names: the values are the parents of the keys.
- No value contains another collection, and a key is also below another key: the values are the
  children of the keys.
- Otherwise: nested mappings.
"""

from collections.abc import Mapping
from typing import Any

from hstree._text import brief, quoted
from hstree.errors import InputError
from hstree.tree.names import is_missing
from hstree.tree.taxonomy.outline import Outline, is_collection, item_name, read_edges


def read_mapping(mapping: Mapping[Any, Any]) -> Outline:
    """Read a mapping; its values determine the form."""
    collections = [key for key, value in mapping.items() if is_collection(value)]
    has_names = not all(is_collection(value) or is_missing(value) for value in mapping.values())
    if has_names and collections:
        key = collections[0]
        raise InputError(
            f"the value of {brief(key)} is a {type(mapping[key]).__name__}, and other values are "
            "names; give nested mappings, or a name as the parent of each child"
        )
    if has_names:
        edges = ((parent, child) for child, parent in mapping.items())
        return read_edges(edges, "parents", "{child: parent}, since each value is one name")

    # The names below each key, each with the collection below it
    members = {item_name(key): _members(value) for key, value in mapping.items()}
    children = [(key, item_name(name)) for key, pairs in members.items() for name, _ in pairs]
    is_flat = all(_is_leaf(below) for pairs in members.values() for _, below in pairs)
    repeated = [name for key, name in children if name in members and name != key]
    if not (is_flat and repeated):
        return _read_nested(members)

    # Keys that are not below another key are roots
    below_keys = {name for _, name in children}
    roots = [(None, key) for key in members if key not in below_keys]
    rule = f"{{node: its children}}, since {repeated[0]!r} is a key and below another key"
    return read_edges(roots + children, "children", rule)


def _read_nested(mapping: Mapping[str, list[tuple[Any, Any]]]) -> Outline:
    """Read nested mappings, depth first; the values of `mapping` are already lists of pairs."""
    outline = Outline("nested", read_as="nested mappings")
    root = -1 if len(mapping) == 1 else outline.add(None, -1)
    # Items whose members are being read, and all collections so far by id (kept alive)
    stack = [(root, iter(mapping.items()))]
    read: dict[int, Any] = {}
    while stack:
        parent, members = stack[-1]
        member = next(members, None)
        if member is None:
            stack.pop()
            continue
        name, below = member
        item = outline.add(item_name(name), parent)
        if _is_leaf(below):
            continue
        if not is_collection(below):
            raise InputError(
                f"below {outline.path(item)!r} is {quoted(brief(below))}; give a mapping, a list "
                "of names, or None for a leaf"
            )
        # Refuse repeated collections; a cycle would be read forever
        if id(below) in read:
            raise InputError(
                f"the collection below {outline.path(item)!r} contains itself, or is in two "
                "places; rename its leaves in one, since labels are unique"
            )
        read[id(below)] = below
        pairs = below if parent == root else _members(below)
        stack.append((item, iter(pairs)))
    return outline


def _is_leaf(below: Any) -> bool:
    """Return whether a value means that an item is a leaf: missing, or an empty collection."""
    is_sized = is_collection(below) and hasattr(below, "__len__")
    return is_missing(below) or (is_sized and len(below) == 0)


def _members(collection: Any) -> list[tuple[Any, Any]]:
    """Return the names in a mapping, a list, a set or an array, each with the value below it."""
    if is_missing(collection):
        return []
    if isinstance(collection, Mapping):
        return list(collection.items())
    if hasattr(collection, "columns") or getattr(collection, "ndim", 1) > 1:
        raise InputError(
            f"a table ({type(collection).__name__}) is below a name; give a mapping, a list of "
            "names, or None for a leaf"
        )
    if isinstance(collection, set | frozenset):
        # Sort sets, so that the order is the same in each process
        collection = sorted(map(item_name, collection))
    pairs = list[tuple[Any, Any]]()
    for member in collection:
        pairs += member.items() if isinstance(member, Mapping) else [(member, None)]
    return pairs
