"""Which tree the weights of a `state_dict` are for.

All binary trees over V labels have V - 1 weight rows, so that the shapes of one's weights are those
of another's. The note goes where torch keeps the versions of modules, beside the tensors: it is
there after ``torch.save``, and not in a file of tensors alone, which is taken as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from hstree.tree import Tree
from hstree.tree.content import content_arrays

KEY = "hstree_tree"


def note_tree(state_dict: Mapping[str, Any], prefix: str, tree: Tree) -> None:
    """Write down the tree of the module whose tensors have this prefix."""
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        metadata.setdefault(prefix[:-1], {})[KEY] = _shape(tree)


def of_another_tree(local_metadata: Mapping[str, Any], tree: Tree) -> bool:
    """Tell whether the note of a module says another tree; its counts and names do not matter."""
    noted: str | None = local_metadata.get(KEY)
    return noted is not None and noted != _shape(tree)


def _shape(tree: Tree) -> str:
    """Hash what gives each label its weight rows: labels and children."""
    digest = hashlib.sha256()
    for array in content_arrays(tree.labels, None, tree.child_start, tree.child, None).values():
        digest.update(f"{array.nbytes}\n".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()
