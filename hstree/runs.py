"""Finished runs, kept: a tree trained and scored once is not trained again.

A run is a folder with the tree, the trained model, the mean predicted vectors and, written last,
``result.json``. The result holds a key of all that it depends on, content, options and version;
a folder whose key is another one is done anew, so nothing stale is ever reused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hstree import treefile
from hstree.evaluation import Parts, evaluate
from hstree.files import make_folder
from hstree.jsonfile import write_json
from hstree.language_model import LanguageModel
from hstree.tree import Tree
from hstree.vectors import WordVectors
from hstree.version import __version__

Result = dict[str, Any]

#: What a finished run leaves in its folder, and the file that is written last.
ARTEFACTS = ("tree.json", "model", "vectors.npy", "vectors.labels.tsv")
RESULT = "result.json"


def run(tree: Tree, parts: Parts, folder: str | os.PathLike[str], **options: Any) -> Result:
    """Train and score a tree, or return what a finished run of the same says.

    Parameters
    ----------
    tree : Tree
    parts : Parts
    folder : path
        Made if it is missing. Gets ``tree.json``, ``model/``, ``vectors.npy`` with its
        ``vectors.labels.tsv``, and ``result.json``.
    **options
        Those of `hstree.evaluation.evaluate`.

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
    key = _key(tree, parts, options)
    done = finished(home, key)
    if done is not None:
        return done
    found = evaluate(tree, parts, **options)
    if found.history.interrupted:
        raise KeyboardInterrupt
    make_folder(home)
    (home / RESULT).unlink(missing_ok=True)  # from here on it would speak of other files
    treefile.save(tree, home / "tree.json")
    found.model.save(home / "model")
    found.model.mean_predicted_vectors(found.parts.train).save(home / "vectors.npy")
    result = {**found.as_dict(), "key": key}
    write_json(home / RESULT, result)
    return result


def finished(folder: Path, key: str) -> Result | None:
    """Return the result kept in a folder if it is that of this key, and its files are there."""
    try:
        result = json.loads((folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    if not all((folder / name).exists() for name in ARTEFACTS):
        return None
    return result if isinstance(result, dict) and result.get("key") == key else None


def vectors_of(folder: str | os.PathLike[str]) -> WordVectors:
    """Return the mean predicted vectors that a finished run left."""
    return WordVectors.read(Path(folder) / "vectors.npy")


def _key(tree: Tree, parts: Parts, options: Mapping[str, Any]) -> str:
    depends = {
        "hstree": __version__,
        "tree": tree.sha256,
        "parts": [_content(part) for part in (parts.train, parts.valid, parts.test)],
        "model": LanguageModel(tree, **options).config(),
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _content(part: Any) -> list[Any]:
    return [part.sha256, list(part.lines), part.vocabulary.sha256]
