"""A trained model as a folder: ``config.json``, ``tree.json`` and ``weights.safetensors``.

No pickle, nothing that runs. The tensors are ``embedding`` (V, d), ``position`` (n, d) or
(n, d, d), ``node_weight`` (R, d) and ``node_bias`` (R,), rows as in ``docs/tree-format.md``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensors_to_bytes

from hstree import treefile
from hstree.errors import FileFormatError, HstreeError
from hstree.files import replacing
from hstree.language_model import LanguageModel

FORMAT, VERSION = "hstree model", 1


def save(model: LanguageModel, folder: str | os.PathLike[str]) -> None:
    """Write a model's folder, made if it is missing; files of these names are replaced.

    Raises
    ------
    FileFormatError
        When the folder cannot be made or written.
    """
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"cannot make the folder {home}: {error.strerror}") from error
    treefile.save(model.tree, home / "tree.json")
    with replacing(home / "weights.safetensors") as file:
        file.write(tensors_to_bytes(_tensors(model)))
    config = {"format": FORMAT, "version": VERSION, **model.config()}
    with replacing(home / "config.json") as file:
        file.write((json.dumps(config, indent=2) + "\n").encode())


def load(folder: str | os.PathLike[str]) -> LanguageModel:
    """Read a model's folder.

    Raises
    ------
    FileFormatError
        When a file is missing, damaged, of another version or does not fit the others.
    """
    home = Path(folder)
    config = _read_config(home / "config.json")
    tree = treefile.load(home / "tree.json")
    weights = home / "weights.safetensors"
    try:
        model = LanguageModel(tree, **config)
    except (TypeError, HstreeError) as error:
        raise FileFormatError(f"{home / 'config.json'}: {error}") from error
    try:
        read = load_tensors(weights.read_bytes())
    except (OSError, SafetensorError, ValueError) as error:
        raise FileFormatError(f"cannot read {weights}: {error}") from error
    for name, own in _tensors(model).items():
        if name not in read or read[name].shape != own.shape:
            found = f"shape {read[name].shape}" if name in read else "nothing"
            raise FileFormatError(
                f"{weights}: {name} wants shape {own.shape} for this tree, found {found}"
            )
        own[...] = read[name]
    return model


def _tensors(model: LanguageModel) -> dict[str, NDArray[np.float32]]:
    return {
        "embedding": model.model.embedding,
        "position": model.model.position,
        "node_weight": model.layer.weight,
        "node_bias": model.layer.bias,
    }


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"cannot read {path}: {reason}; is it a model's folder?") from error
    if not isinstance(config, dict) or config.pop("format", None) != FORMAT:
        raise FileFormatError(f"{path} is not the config of a model that hstree saved")
    if (version := config.pop("version", None)) != VERSION:
        raise FileFormatError(f"{path}: version {version!r}; this hstree reads version {VERSION}")
    return config
