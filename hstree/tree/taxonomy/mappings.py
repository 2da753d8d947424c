"""Taxonomies from mappings: nested, parents by child, or children by node.

The values decide which of the three it is:

- All values are names: they are the parents of the keys.
- The values are mappings, lists or missing, and a key is also a leaf below another key: they are
  the children of the keys.
- The same without such a key: nested mappings.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hstree._text import brief, quoted
from hstree.errors import InputError
from hstree.tree.names import is_missing
from hstree.tree.taxonomy.outline import Outline, is_collection, item_name, read_edges
from hstree.tree.taxonomy.tables import is_parent_title

#: Keys of a node of treelib's ``to_dict``, where the names of children are not keys.
_TREELIB_KEYS = ({"children"}, {"children", "data"})


def read_mapping(mapping: Mapping[Any, Any]) -> Outline:
    """Read a mapping, whose values decide its shape."""
    collections = [key for key, value in mapping.items() if is_collection(value)]
    has_names = not all(is_collection(value) or is_missing(value) for value in mapping.values())
    if has_names and collections:
        key = collections[0]
        raise InputError(
            f"{brief(key)} has {type(mapping[key]).__name__} and others a name; give nested "
            "mappings, or a name as the parent of each child"
        )
    if has_names:
        edges = ((parent, child) for child, parent in mapping.items())
        rule = "{child: parent}, since each value is one name"
        return read_edges(edges, "parents", read_as=rule)
    _refuse_columns(mapping)
    nested = _read_nested(mapping)
    repeated_key = _find_repeated_key(nested) if len(mapping) > 1 else None
    return nested if repeated_key is None else _read_children(nested, repeated_key)


def _refuse_columns(mapping: Mapping[Any, Any]) -> None:
    """Refuse the columns of a table, lists of the same length of which one is titled as parents."""
    titles = [title for title in mapping if isinstance(title, str) and is_parent_title(title)]
    lists = [value for value in mapping.values() if isinstance(value, Sequence)]
    if titles and len(lists) == len(mapping) > 1 and len(set(map(len, lists))) == 1:
        raise InputError(
            f"the mapping holds columns of a table, with parents in {titles[0]!r}; give "
            "pandas.DataFrame(...) of it, or pairs (parent, child)"
        )


# Nested mappings


class _Open(NamedTuple):
    """A collection that is being read."""

    members: Iterator[tuple[Any, Any]]  #: names that are still to be read, and what is below each
    parent: int  #: item of the names
    collection: Any


def _read_nested(mapping: Mapping[Any, Any]) -> Outline:
    """Read nested mappings of names to a mapping, a list of leaves or nothing, depth first."""
    outline = Outline("nested", read_as="nested mappings")
    root = -1 if len(mapping) == 1 else outline.add(None, -1)
    # The collections around the next item, and all that have been read, which keep their ids
    stack = [_Open(iter(mapping.items()), root, mapping)]
    open_ids = {id(mapping)}
    read: dict[int, Any] = {id(mapping): mapping}
    while stack:
        members, parent, collection = stack[-1]
        member = next(members, None)
        if member is None:
            open_ids.remove(id(collection))
            stack.pop()
            continue

        name, below = member
        if is_collection(name):
            path = outline.path(parent)
            where = f", below {path!r}" if path else ""
            raise InputError(
                f"{brief(name)} is in the place of a name{where}; give a mapping of names to what "
                "is below each"
            )
        item = outline.add(item_name(name), parent)
        if is_missing(below):
            continue
        if not is_collection(below):
            raise InputError(
                f"below {outline.path(item)!r} is {quoted(brief(below))}; give a mapping, a list "
                "of names, or None for a leaf"
            )

        if id(below) in open_ids:
            raise InputError(f"the collection below {outline.path(item)!r} contains itself")
        members = _members(below, outline.path(item))
        if id(below) in read:
            members = islice(members, 1)  # its leaves are duplicates: one is enough for the error
        read[id(below)] = below
        open_ids.add(id(below))
        stack.append(_Open(members, item, below))
    return outline


def _members(collection: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield the names in a mapping, a list, a set or an array, and what is below each.

    `path` is that of the item above them, for messages.
    """
    if isinstance(collection, Mapping):
        if set(collection) in _TREELIB_KEYS and is_collection(collection["children"]):
            raise InputError(
                f"below {path!r} is 'children' alone, as treelib's to_dict writes it; put the "
                "children there, or give {child: parent}"
            )
        yield from collection.items()
        return
    if hasattr(collection, "columns") or getattr(collection, "ndim", 1) > 1:
        raise InputError(
            f"below {path!r} is a table ({type(collection).__name__}); give a mapping, a list of "
            "names, or None for a leaf"
        )
    if isinstance(collection, set | frozenset):
        # The same order in each process
        collection = sorted(map(item_name, collection))
    for member in collection:
        if isinstance(member, Mapping):
            yield from member.items()
        else:
            yield member, None


# Children by node


def _find_repeated_key(nested: Outline) -> int | None:
    """Return a leaf that has the name of another key of the outermost mapping."""
    names = nested.names
    parents = nested.parents
    inner = set(parents)
    # (items,) the outermost key above or at each item; item 0 is the root above the keys
    key = [0] * len(names)
    for item in range(1, len(names)):
        key[item] = item if parents[item] == 0 else key[parents[item]]

    key_names = {names[item] for item in key[1:]}
    for item in range(1, len(names)):
        is_leaf = item not in inner and key[item] != item
        if is_leaf and names[item] in key_names and names[item] != names[key[item]]:
            return item
    return None


def _read_children(nested: Outline, repeated_key: int) -> Outline:
    """Read a mapping of nodes to their children again, from its outline as a nested one."""
    names = nested.names
    parents = nested.parents
    name = names[repeated_key]
    path = nested.path(repeated_key)
    # (items,) 1 for keys, 2 for their children
    depth = [0] * len(names)
    for item in range(1, len(names)):
        depth[item] = depth[parents[item]] + 1
    if max(depth) > 2:
        raise InputError(
            f"{name!r} is a key and the leaf {path!r}, too; put what is below the key there, put "
            "all keys below one, for nested mappings, or give a list of children for each node"
        )

    keys = [names[item] for item, level in enumerate(depth) if level == 1]
    edges = [(names[parents[item]], names[item]) for item, level in enumerate(depth) if level == 2]
    children = {child for _, child in edges}
    roots = [(None, key) for key in dict.fromkeys(keys) if key not in children]
    return read_edges(
        roots + edges,
        "children",
        read_as=f"{{node: its children}}, since {name!r} is a key and the leaf {path!r}, too",
        hint="; it is a mapping of nodes to their children: for parents, give {child: parent}",
    )
