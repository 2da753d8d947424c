"""Folder of a saved label tree: ``config.json``, ``tree.json`` and ``weights.safetensors``.

The weights are ``start`` (E + 2,), ``feature`` and ``weight`` of a CSR array, ``bias`` (E + 1,),
and ``scale`` (n_features,), by which features are multiplied. The configuration has the hashes of
the other two files, so that files of different classifiers are not mixed up.
"""

import hashlib
import os
from typing import Any, Literal

import msgspec
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from hstree._arrays import Array
from hstree._files import current_file, read_json, read_regular, replacing_together, write_json
from hstree._text import brief
from hstree.errors import FileFormatError
from hstree.tree import Tree, load

FORMAT = "hstree label tree"
VERSION = 1
CONFIG = "config.json"
TREE = "tree.json"
WEIGHTS = "weights.safetensors"
FILES = (CONFIG, TREE, WEIGHTS)
_REMEDY = "give the folder of a saved classifier"

Folder = str | os.PathLike[str]


class Config(msgspec.Struct):
    """Content of ``config.json``: a classifier without its tree and arrays."""

    parameters: dict[str, Any]
    classes: list[str | int | float | bool] | None  # None if columns have no names
    feature_names: list[str] | None
    has_unit_length: bool
    sparse: bool
    dtype: str
    #: Kind of `classes`: one class per sample, columns, or labels in lists.
    classes_of: Literal["y", "columns", "lists"] = "y"
    #: Words that the features count.
    words: list[str] | None = None


def write_folder(folder: Folder, tree: Tree, tensors: dict[str, Array], config: Config) -> None:
    """Write the files of a classifier; all are replaced together."""
    content = tensors_to_bytes(tensors)
    fields = {"format": FORMAT, "version": VERSION, **msgspec.structs.asdict(config)}
    fields |= _hashes(tree, content)
    with replacing_together(folder) as new:
        tree.save(new / TREE)
        (new / WEIGHTS).write_bytes(content)
        write_json(new / CONFIG, fields)


def read_folder(folder: Folder) -> tuple[Tree, dict[str, Array], dict[str, Any]]:
    """Return the tree, the tensors and the fields of the configuration of a saved classifier.

    Raises FileFormatError if their hashes differ from those in the configuration.
    """
    fields = read_json(current_file(folder, CONFIG), dict[str, Any], _REMEDY)
    name = fields.get("format")
    version = fields.get("version")
    if (name, version) != (FORMAT, VERSION):
        raise FileFormatError(
            f"{folder} holds {brief(name)}, version {brief(version)}, not {FORMAT!r}, "
            f"version {VERSION}; {_REMEDY}"
        )
    content = read_regular(current_file(folder, WEIGHTS), FileFormatError, _REMEDY)
    tree = load(current_file(folder, TREE))
    if any(fields.get(field) != value for field, value in _hashes(tree, content).items()):
        raise FileFormatError(
            f"{folder}: {TREE} and {WEIGHTS} are not those that {CONFIG} names; save it again"
        )
    return tree, load_tensors(content), fields


def _hashes(tree: Tree, weights: bytes) -> dict[str, str]:
    return {"tree_sha256": tree.sha256, "weights_sha256": hashlib.sha256(weights).hexdigest()}
