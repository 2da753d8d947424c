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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from hstree._files import replacing_together, standing
from hstree._input_files import read_regular
from hstree.data.provenance import texts
from hstree.errors import FileFormatError, HstreeError
from hstree.models.base import TreeModel
from hstree.models.kinds import new_model
from hstree.models.language_model import LanguageModel
from hstree.tree import files as treefile
from hstree.tree.json_format import to_json
from hstree.tree.weight_rows import row_start

FORMAT, VERSION = "hstree model", 1
#: The files of a model's folder.
CONFIG, TREE, WEIGHTS = FILES = "config.json", "tree.json", "weights.safetensors"


def save(model: TreeModel[Any], folder: str | os.PathLike[str]) -> None:
    """Write a model's folder, made if it is missing; files of these names are replaced together.

    A process that is killed here leaves the old model or the new one.

    Raises
    ------
    FileFormatError
        When the folder cannot be made or written.
    """
    weights = tensors_to_bytes(_tensors(model))
    config = {
        "format": FORMAT,
        "version": VERSION,
        "tree_sha256": model.tree.sha256,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "texts": model.texts,
        **model.config(),
    }
    with replacing_together(folder) as new:
        with (new / TREE).open("wb") as file:
            file.writelines(to_json(model.tree))
        (new / WEIGHTS).write_bytes(weights)
        (new / CONFIG).write_bytes((json.dumps(config, indent=2) + "\n").encode())


def load(folder: str | os.PathLike[str]) -> TreeModel[Any]:
    """Read a model's folder.

    Raises
    ------
    FileFormatError
        When a file is missing, damaged, of another version or does not fit the others.
    """
    home = Path(folder)
    config = _read_config(standing(home, CONFIG))
    tree = treefile.load(standing(home, TREE))
    weights = standing(home, WEIGHTS)
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
        model = new_model(tree, **config)
        read = load_tensors(content)
    except (TypeError, ValueError, KeyError, OverflowError, SafetensorError, HstreeError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"{home}: no model can be made of it: {reason}") from error
    # Checked before the model allocates its own, which may claim far more than the file holds.
    for name, shape in _shapes(model).items():
        _check(read.get(name), shape, f"{weights}: {name}")
    for name, own in _tensors(model).items():
        own[...] = read[name]
    model.texts = trained_on
    return model


def _check(read: NDArray[Any] | None, shape: tuple[int, ...], what: str) -> None:
    """Refuse a tensor that is missing, of another type or shape, or not finite."""
    if read is None or read.shape != shape or read.dtype != np.float32:
        found = "nothing" if read is None else f"{read.dtype} of shape {read.shape}"
        raise FileFormatError(f"{what} wants float32 of shape {shape}, found {found}")
    if not np.isfinite(read).all():
        raise FileFormatError(f"{what} holds numbers that are not finite; train the model again")


def _shapes(model: TreeModel[Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of `_tensors`, from the model's options and tree alone."""
    d, rows = model.dim, int(row_start(model.tree)[-1])
    shapes = {"embedding": (model.tree.n_labels, d), "node_weight": (rows, d), "node_bias": (rows,)}
    if isinstance(model, LanguageModel):
        shapes["position"] = (model.context, d, d) if model.full else (model.context, d)
    return shapes


def _tensors(model: TreeModel[Any]) -> dict[str, NDArray[np.float32]]:
    return {
        **model.model.tensors(),
        "node_weight": model.layer.weight,
        "node_bias": model.layer.bias,
    }


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
