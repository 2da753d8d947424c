"""Bootstrap a tree from nothing but text (Mnih & Hinton 2008, section 4).

A random tree is trained first; the mean predicted vectors of its words are the features from
which a mixture tree is grown, and that is trained in turn. Every further round grows its tree
from the features of the best model so far, by validation perplexity. Every artefact is kept
under a plain name, and what is finished is not done again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hstree._files import make_folder, write_json
from hstree._typing import Int64
from hstree.builders import BuilderInput, build, builder
from hstree.builders.registry import recorded
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, OptionError
from hstree.experiments.evaluation import Splits
from hstree.experiments.runs import Result, run, vectors_of
from hstree.tree import Tree, load

#: The file beside a tree that says how long building it took.
BUILD = "build.json"


def bootstrap(
    splits: Splits,
    folder: str | os.PathLike[str],
    *,
    rounds: int = 1,
    method: str = "gmm",
    build_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[str, Result]]:
    """Train a random tree, then trees grown from what was learned.

    Parameters
    ----------
    splits : Splits
        The training part's own vocabulary makes the trees.
    folder : path
        Gets ``round-0``, ``round-1``, ..., each as `hstree.experiments.runs.run` leaves it.
    rounds : int, default 1
        Trees grown from vectors, one after the other.
    method : str, default "gmm"
        A builder that takes vectors.
    build_options : mapping, optional
        The builder's own. Its random state is `options`' unless it stands here.
    **options
        Those of `hstree.experiments.evaluation.evaluate`.

    Yields
    ------
    name : str
        "round-0", ...
    result : dict
        As `hstree.experiments.runs.run` returns it, when the round is done.

    Raises
    ------
    OptionError
        When `rounds` is below 1, or the method takes no vectors or not these options.
    """
    if rounds < 1:
        raise OptionError(f"rounds is {rounds}; it must be 1 or more")
    home = Path(folder)
    seed = options.get("random_state", 0)
    chosen = _effective(method, seed, build_options or {})
    random = grown(splits.train, home / "round-0", "random", {"random_state": seed})
    best = run(random, splits, home / "round-0", **options)
    best_folder = home / "round-0"
    yield "round-0", best
    for number in range(1, rounds + 1):
        own = home / f"round-{number}"
        tree = grown(vectors_of(best_folder), own, method, chosen)
        result = run(tree, splits, own, **options)
        yield own.name, result
        if result["perplexity"]["valid"] < best["perplexity"]["valid"]:
            best, best_folder = result, own


def _effective(method: str, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a method, checked before the first tree is trained."""
    chosen = builder(method)
    if chosen.takes is not WordVectors:
        raise OptionError(f"{method} takes {chosen.takes_text}; a bootstrap grows trees of vectors")
    if any(option.name == "random_state" for option in chosen.options):
        given = {"random_state": seed, **given}
    return chosen.effective(given)


def grown(input: BuilderInput, folder: Path, method: str, options: Mapping[str, Any]) -> Tree:
    """Build a tree into ``folder/tree.json``, or read the one that stands there.

    The file is taken as it is where its meta says that it was made so, of this input, and it has
    the input's words and counts. A folder that an option names is not looked into: with one, the
    tree is always built. The seconds that building took are kept beside it; see `build_seconds`.
    """
    place = folder / "tree.json"
    kept = _kept(place)
    if kept is not None and _made_so(kept, input, method, options):
        return kept
    began = time.perf_counter()
    tree = build(method, input, **options)
    seconds = time.perf_counter() - began
    make_folder(folder)
    write_json(folder / BUILD, {"tree": tree.sha256, "seconds": seconds})
    tree.save(place)
    return tree


def build_seconds(folder: Path, tree_sha256: str) -> float | None:
    """Return the seconds that `grown` took to build a tree; None where that is not known.

    Parameters
    ----------
    folder : Path
        The tree's.
    tree_sha256 : str
        The tree's hash: seconds of another tree do not count.
    """
    try:
        found = json.loads((folder / BUILD).read_bytes())
    except (OSError, ValueError):
        return None
    match found:
        case {"tree": str(sha256), "seconds": int(seconds) | float(seconds)}:
            return float(seconds) if sha256 == tree_sha256 else None
    return None


def _kept(place: Path) -> Tree | None:
    """Return the tree of a file, None where there is none that can be read."""
    try:
        return load(place) if place.exists() else None
    except HstreeError:
        return None


def _made_so(tree: Tree, input: BuilderInput, method: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a tree was made by this method and version, of this input."""
    if any(isinstance(value, str | Path) and os.path.isdir(value) for value in options.values()):
        return False
    expected = recorded(method, input, **options)
    if any(tree.meta.get(name) != value for name, value in expected.items()):
        return False
    # A corpus is named by its text and lines, whatever the vocabulary that it is seen through.
    return tree.labels == _words(input) and _same_counts(tree.counts, input.counts)


def _words(input: BuilderInput) -> tuple[str, ...]:
    if isinstance(input, WordVectors):
        return input.labels
    return input.words if isinstance(input, Vocabulary) else input.vocabulary.words


def _same_counts(one: Int64 | None, other: Int64 | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
