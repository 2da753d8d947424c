"""Folder of a trained model: ``config.json``, ``weights.safetensors`` and the layer's source.

The source is ``tree.json`` for a tree, and ``vocabulary.tsv`` otherwise. Reading a folder runs no
code from it. The tensors belong to the context model, such as ``embedding`` (V, d), and to the
output layer: for a tree ``node_weight`` (R, d) and ``node_bias`` (R,), with rows as in
``docs/tree-format.md``. The config has the name and options of the model, those of the layer unless
it is the hierarchical softmax, and the texts and lines used for training and validation
(`hstree.data.provenance`).
"""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from hstree._arrays import Array
from hstree._files import current_file, read_json, read_regular
from hstree._text import brief, one_line
from hstree.data.provenance import Text, collect_sources
from hstree.errors import FileFormatError, OptionError
from hstree.layers.registry import SOURCES, LayerSpec
from hstree.tree import Tree

FORMAT = "hstree model"
VERSION = 1
CONFIG = "config.json"
WEIGHTS = "weights.safetensors"
#: Files of a model over a tree.
TREE_FILES = (CONFIG, SOURCES[Tree][0], WEIGHTS)
#: Files that the folder of a model may contain, with only one of the sources (`LayerSpec.file`).
FILES = (CONFIG, *(file for file, _, _ in SOURCES.values()), WEIGHTS)


class Saved(NamedTuple):
    """Content of a model's folder; config and tensors are not checked against each other."""

    folder: Path
    config: dict[str, Any]
    spec: LayerSpec
    tensors: dict[str, Array]
    texts: list[Text]

    def parameters(self) -> dict[str, Array]:
        """Return the tensors, like the method of a model."""
        return self.tensors


def read(folder: str | os.PathLike[str]) -> Saved:
    """Read a model's folder. Raises FileFormatError as `hstree.load_model` does."""
    home = Path(folder)
    path = current_file(home, CONFIG)
    if not path.exists():
        problem = f"{folder} holds no model" if home.exists() else f"there is no folder {folder}"
        remedy = "give one that was written by model.save or `hstree evaluate --save`"
        raise FileFormatError(f"{problem}; {remedy}")

    # Read the config, and check its format and version
    config = read_json(path, dict[str, Any], "give the folder of a saved model")
    if config.pop("format", None) != FORMAT:
        raise FileFormatError(f"{path} is not the config of a saved model; save the model again")
    if (version := config.pop("version", None)) != VERSION:
        raise FileFormatError(
            f"{path}: version {brief(version)}; this hstree reads version {VERSION}"
        )

    # Read the output layer, with its tree or vocabulary
    try:
        spec = LayerSpec.read(home, config)
    except OptionError as error:
        raise FileFormatError(f"{home}: no output layer can be made from it: {error}") from error

    # Read the weights; the config has hashes of the other files
    weights = current_file(home, WEIGHTS)
    content = read_regular(weights, FileFormatError)
    trained_on = collect_sources(config.pop("texts", None))
    written_for = spec.config() | {"weights_sha256": hashlib.sha256(content).hexdigest()}
    if any(config.pop(name, None) != value for name, value in written_for.items()):
        raise FileFormatError(
            f"{home}: {spec.file} and weights.safetensors are not the ones that config.json "
            "describes; save the model again"
        )
    try:
        tensors = load_tensors(content)
    except (ValueError, KeyError, OverflowError, SafetensorError) as error:
        raise FileFormatError(f"{home}: no model can be made from it: {one_line(error)}") from error
    return Saved(home, config, spec, tensors, trained_on)
