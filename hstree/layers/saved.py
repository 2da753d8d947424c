"""The folder of a trained model: ``config.json``, source of its layer, ``weights.safetensors``.

The source is ``tree.json`` for a tree, ``vocabulary.tsv`` otherwise. Nothing is unpickled or run.
The tensors are those of the context model, ``embedding`` (V, d) among them, and those of the output
layer: for a tree ``node_weight`` (R, d) and ``node_bias`` (R,), rows as in ``docs/tree-format.md``.
The config holds the model's options and name, the layer's name and options unless it is the
hierarchical softmax, and the texts and lines that the model was trained and validated on
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
#: The files of a model over a tree.
TREE_FILES = (CONFIG, SOURCES[Tree][0], WEIGHTS)
#: The files that a model's folder may hold; of the sources it holds one, `LayerSpec.file`.
FILES = (CONFIG, *(file for file, _, _ in SOURCES.values()), WEIGHTS)


class Saved(NamedTuple):
    """The content of a model's folder; config and tensors are not checked against each other."""

    folder: Path
    config: dict[str, Any]
    spec: LayerSpec
    tensors: dict[str, Array]
    texts: list[Text]

    def parameters(self) -> dict[str, Array]:
        """Return the tensors, as a model does."""
        return self.tensors


def read(folder: str | os.PathLike[str]) -> Saved:
    """Read a model's folder; raises FileFormatError as `hstree.load_model` does."""
    home = Path(folder)
    path = current_file(home, CONFIG)
    if not path.exists():
        problem = f"{folder} holds no model" if home.exists() else f"there is no folder {folder}"
        remedy = "give one that model.save or `hstree evaluate --save` wrote"
        raise FileFormatError(f"{problem}; {remedy}")

    # The config, of this format and version
    config = read_json(path, dict[str, Any], "give the folder of a saved model")
    if config.pop("format", None) != FORMAT:
        raise FileFormatError(f"{path} is not the config of a model that hstree saved")
    if (version := config.pop("version", None)) != VERSION:
        raise FileFormatError(
            f"{path}: version {brief(version)}; this hstree reads version {VERSION}"
        )

    # The output layer, with its tree or vocabulary
    try:
        spec = LayerSpec.read(home, config)
    except OptionError as error:
        raise FileFormatError(f"{home}: no output layer can be made of it: {error}") from error

    # The weights; the config has the hashes of the files that it was written for
    weights = current_file(home, WEIGHTS)
    content = read_regular(weights, FileFormatError)
    trained_on = collect_sources(config.pop("texts", None))
    written_for = spec.config() | {"weights_sha256": hashlib.sha256(content).hexdigest()}
    if any(config.pop(name, None) != value for name, value in written_for.items()):
        raise FileFormatError(
            f"{home}: {spec.file} and weights.safetensors are not the ones that config.json was "
            "written for; save the model again"
        )
    try:
        tensors = load_tensors(content)
    except (ValueError, KeyError, OverflowError, SafetensorError) as error:
        raise FileFormatError(f"{home}: no model can be made of it: {one_line(error)}") from error
    return Saved(home, config, spec, tensors, trained_on)
