"""A probabilistic label tree as a folder: its options, its tree, and its weights.

The weights are safetensors: `start` (E + 2,), `feature` and `weight` are the rows of a sparse
(E + 1, n_features) array, those of the edges in the order of the tree's children and last that of
the root; `bias` (E + 1,); `scale` (n_features,) is what features are multiplied by. Nothing is
unpickled.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from hstree._files import current_file, read_json, read_regular, replacing_together, write_json
from hstree._typing import Array
from hstree.errors import FileFormatError
from hstree.tree import Tree, load

FORMAT, VERSION = "hstree label tree", 1
FILES = CONFIG, TREE, WEIGHTS = "config.json", "tree.json", "weights.safetensors"
_REMEDY = "give the folder of a saved classifier"


def write(
    folder: str | os.PathLike[str],
    config: Mapping[str, Any],
    tree: Tree,
    tensors: dict[str, Array],
) -> None:
    """Write the three files, which replace former ones together."""
    content = tensors_to_bytes(tensors)
    hashes = {"tree_sha256": tree.sha256, "weights_sha256": hashlib.sha256(content).hexdigest()}
    with replacing_together(folder) as new:
        tree.save(new / TREE)
        (new / WEIGHTS).write_bytes(content)
        write_json(new / CONFIG, {"format": FORMAT, "version": VERSION, **config, **hashes})


def read(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], Tree, dict[str, Array]]:
    """Read them.

    Raises FileFormatError when they are not there or not of one classifier, what their readers
    raise (ValueError, KeyError, SafetensorError) when they are damaged.
    """
    home = Path(folder)
    config = read_json(current_file(home, CONFIG), _REMEDY)
    if (config.get("format"), config.get("version")) != (FORMAT, VERSION):
        holds = f"{config.get('format')!r}, version {config.get('version')!r}"
        raise FileFormatError(f"{home} holds {holds}, not {FORMAT!r}, version {VERSION}; {_REMEDY}")
    content = read_regular(current_file(home, WEIGHTS), FileFormatError, _REMEDY)
    tree, tensors = load(current_file(home, TREE)), load_tensors(content)
    hashes = {"tree_sha256": tree.sha256, "weights_sha256": hashlib.sha256(content).hexdigest()}
    if any(config.get(name) != value for name, value in hashes.items()):
        raise FileFormatError(
            f"{home}: {TREE} and {WEIGHTS} are not those that {CONFIG} names; save it again"
        )
    return config, tree, tensors
