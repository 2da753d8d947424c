"""A trained model as a folder: ``config.json``, ``tree.json`` and ``weights.safetensors``.

No pickle, nothing that runs. The tensors are ``embedding`` (V, d), ``node_weight`` (R, d) and
``node_bias`` (R,), rows as in ``docs/tree-format.md``, and for the log-bilinear model ``position``
(n, d) or (n, d, d). The config of another model names it: ``"model": "cbow"``. Its ``texts`` are
the texts and lines that the model was trained and validated on (`hstree.data.provenance`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from hstree._files import current_file, read_regular, replacing_together
from hstree._typing import Array, Float32
from hstree.data.provenance import Text, texts
from hstree.errors import FileFormatError
from hstree.tree import Tree
from hstree.tree import load as load_tree
from hstree.tree.json_format import to_json

FORMAT, VERSION = "hstree model", 1
#: The files of a model's folder.
CONFIG, TREE, WEIGHTS = FILES = "config.json", "tree.json", "weights.safetensors"


class Saved(NamedTuple):
    """The content of a model's folder; the tensors are not checked against the options."""

    config: dict[str, Any]
    tree: Tree
    tensors: dict[str, Array]
    texts: list[Text]


def write(
    folder: str | os.PathLike[str],
    tree: Tree,
    config: Mapping[str, Any],
    tensors: Mapping[str, Float32],
    texts: list[Text],
) -> None:
    """Write a model's folder, made if it is missing; files of these names are replaced together.

    A process that is killed here leaves the old model or the new one.

    Raises
    ------
    FileFormatError
        When the folder cannot be made or written.
    """
    weights = tensors_to_bytes(dict(tensors))
    content = {
        "format": FORMAT,
        "version": VERSION,
        "tree_sha256": tree.sha256,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "texts": texts,
        **config,
    }
    with replacing_together(folder) as new:
        with (new / TREE).open("wb") as file:
            file.writelines(to_json(tree))
        (new / WEIGHTS).write_bytes(weights)
        (new / CONFIG).write_bytes((json.dumps(content, indent=2) + "\n").encode())


def read(folder: str | os.PathLike[str]) -> Saved:
    """Read a model's folder.

    Raises
    ------
    FileFormatError
        When a file is missing, damaged, of another version or does not fit the others.
    """
    home = Path(folder)
    config = _read_config(current_file(home, CONFIG))
    tree = load_tree(current_file(home, TREE))
    weights = current_file(home, WEIGHTS)
    try:
        content = read_regular(weights)
    except OSError as error:
        raise FileFormatError(f"cannot read {weights}: {error.strerror}") from error
    trained_on = texts(config.pop("texts", None))
    of_tree, of_weights = config.pop("tree_sha256", None), config.pop("weights_sha256", None)
    if (of_tree, of_weights) != (tree.sha256, hashlib.sha256(content).hexdigest()):
        raise FileFormatError(
            f"{home}: tree.json and weights.safetensors are not the ones that config.json was "
            "written for; save the model again"
        )
    try:
        tensors = load_tensors(content)
    except (ValueError, KeyError, OverflowError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{home}: no model can be made of it: {reason}") from error
    return Saved(config, tree, tensors, trained_on)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"cannot read {path}: {reason}; is it a model's folder?") from error
    if not isinstance(config, dict) or config.pop("format", None) != FORMAT:
        raise FileFormatError(f"{path} is not the config of a model that hstree saved")
    if (version := config.pop("version", None)) != VERSION:
        raise FileFormatError(f"{path}: version {version!r}; this hstree reads version {VERSION}")
    return config
