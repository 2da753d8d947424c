"""Finished runs, kept: a tree trained and scored once is not trained again.

A run is a folder with the tree, the trained model, the mean predicted vectors and, written last,
``result.json``. The result holds a key of all that it depends on, content, options and version;
a folder whose key is another one is done anew, so nothing stale is ever reused. What the model
gives each token of the test part is computed when it is asked for, and kept beside.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hstree._files import make_folder, replacing, write_json
from hstree._typing import Float64
from hstree._version import __version__
from hstree.data.text_score import perplexity
from hstree.data.vector_files import read_npy
from hstree.data.vectors import WordVectors
from hstree.errors import InputError
from hstree.experiments.evaluation import Splits, evaluate
from hstree.layers.registry import LayerSpec, layer_spec
from hstree.models import config_of
from hstree.models import load as load_model
from hstree.tree import Tree

Result = dict[str, Any]

#: What a finished run leaves in its folder, and the file that is written last.
ARTEFACTS = ("model", "vectors.npy", "vectors.labels.tsv")
RESULT = "result.json"
#: What `nll_of` keeps beside them; runs of earlier versions have none.
NLL = "test_nll.npy"


def run(
    output: Tree | LayerSpec, splits: Splits, folder: str | os.PathLike[str], **options: Any
) -> Result:
    """Train and score a tree, or return what a finished run of the same says.

    Parameters
    ----------
    output : Tree or LayerSpec
    splits : Splits
    folder : path
        Made if it is missing. Gets ``tree.json``, ``model/``, ``vectors.npy`` with its
        ``vectors.labels.tsv``, and ``result.json``.
    **options
        Those of `hstree.experiments.evaluation.evaluate`.

    Returns
    -------
    dict
        What `Evaluation.as_dict` says, and ``key``.

    Raises
    ------
    FileFormatError
        When the folder cannot be written.
    KeyboardInterrupt
        When the training was interrupted; the folder stays as it was.
    """
    home = Path(folder)
    spec = output if isinstance(output, LayerSpec) else layer_spec(output)
    key = _key(spec, splits, options)
    done = finished(home, key)
    if done is not None:
        return done
    found = evaluate(spec, splits, **options)
    if found.history.interrupted:
        raise KeyboardInterrupt
    make_folder(home)
    for name in (RESULT, NLL):
        (home / name).unlink(missing_ok=True)  # from here on they would speak of other files
    spec.write(home)
    found.model.save(home / "model")
    found.model.mean_predicted_vectors(found.splits.train).save(home / "vectors.npy")
    result = {**found.as_dict(), "key": key}
    write_json(home / RESULT, result)
    return result


def finished(folder: Path, key: str) -> Result | None:
    """Return the result kept in a folder if it is that of this key, and its files are there."""
    if not all((folder / name).exists() for name in ARTEFACTS):
        return None
    return kept_result(folder, key)


def kept_result(folder: Path, key: str) -> Result | None:
    """Return the ``result.json`` of a folder if it is that of this key."""
    try:
        result = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) and result.get("key") == key else None


def vectors_of(folder: str | os.PathLike[str]) -> WordVectors:
    """Return the mean predicted vectors that a finished run left."""
    return WordVectors.read(Path(folder) / "vectors.npy")


def nll_of(folder: str | os.PathLike[str], splits: Splits) -> Float64:
    """Return what the model of a finished run gives every token of the test part.

    Parameters
    ----------
    folder : path
        As `run` left it. Gets ``test_nll.npy``, which is read where it stands there already and
        has the perplexity that the run had.
    splits : Splits
        Those of the run.

    Returns
    -------
    float64 array (T,)
        Nats, in the order of the text.
    """
    home = Path(folder)
    told = json.loads((home / RESULT).read_bytes())["perplexity"]["test"]
    kept = kept_nll(home, len(splits.test))
    if kept is not None and math.isclose(
        perplexity(float(kept.sum()), len(kept)), told, rel_tol=1e-6
    ):
        return kept
    nll = load_model(home / "model").nll(splits.test)
    keep_nll(home, nll)
    return nll


def kept_nll(folder: Path, tokens: int) -> Float64 | None:
    """Return what a ``test_nll.npy`` holds; None where there is none for so many tokens."""
    try:
        kept = read_npy(os.fspath(folder / NLL))
    except InputError:
        return None
    return kept if kept.shape == (tokens,) and kept.dtype == np.float64 else None


def keep_nll(folder: Path, nll: Float64) -> None:
    """Write a ``test_nll.npy``."""
    with replacing(folder / NLL) as file:
        np.save(file, nll)


def _key(spec: LayerSpec, splits: Splits, options: Mapping[str, Any]) -> str:
    depends = {
        "hstree": __version__,
        **spec.key(),
        "parts": content_of(splits),
        "model": config_of(options),
    }
    return hashed(depends)


def content_of(splits: Splits) -> list[Any]:
    """Return what tells the texts of a run from others, for its key."""
    return [
        [part.sha256, list(part.lines), part.vocabulary.sha256]
        for part in (splits.train, splits.valid, splits.test)
    ]


def hashed(depends: Mapping[str, Any]) -> str:
    """Return the key of all that a run depends on."""
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()
