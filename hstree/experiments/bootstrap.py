"""Bootstrap a tree from nothing but text (Mnih & Hinton 2008, section 4)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hstree.builders import builder
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import RunResult
from hstree.experiments.runs import built_tree, run, vectors_of
from hstree.models import config_of


def bootstrap(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    *,
    rounds: int = 1,
    method: str = "gmm",
    build_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Iterator[tuple[str, RunResult]]:
    """Train on a random tree, then on trees grown from the vectors that a model learned.

    Round 0 trains on a random tree. Every later tree is grown from the mean predicted vectors of
    the model with the lowest validation perplexity so far. Finished rounds are not done again.

    Iterate over it: a round is done when its result is asked for. Arguments are checked at once.

    Parameters
    ----------
    text : Splits or Corpus
        A corpus is split by `corpus_splits`. The training split's vocabulary makes the trees.
    folder : path
        Gets ``round-0``, ``round-1``, ..., each as `hstree.experiments.runs.run` leaves it.
    rounds : int, default 1
        Number of trees grown from vectors.
    method : str, default "gmm"
        A builder that takes vectors.
    build_options : mapping, optional
        Options of the builder; `random_state` is by default that of `options`.
    **options
        Options of `hstree.models.new_model`.

    Yields
    ------
    name : str
        "round-0", "round-1", ...
    result : RunResult
        Yielded when the round is done.

    Raises
    ------
    OptionError
        When `rounds` is below 1, the method does not take vectors, or an option is invalid.
    """
    if rounds < 1:
        raise OptionError(f"rounds is {rounds}; it must be 1 or more")
    splits, seed = Splits.of(text), options.get("random_state", 0)
    config_of(options)
    checked_options = _checked(method, seed, build_options or {})
    return _rounds(splits, Path(folder), rounds, method, checked_options, options)


def _rounds(
    splits: Splits,
    home: Path,
    rounds: int,
    method: str,
    build_options: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Iterator[tuple[str, RunResult]]:
    """Yield each round when it is done; the arguments are checked."""
    best_folder = home / "round-0"
    seed = {"random_state": options.get("random_state", 0)}
    random = built_tree(splits.train, best_folder, "random", seed)
    best = run(random, splits, best_folder, **options)
    yield best_folder.name, best
    for number in range(1, rounds + 1):
        round_folder = home / f"round-{number}"
        tree = built_tree(vectors_of(best_folder), round_folder, method, build_options)
        result = run(tree, splits, round_folder, **options)
        yield round_folder.name, result
        if result.valid < best.valid:
            best, best_folder = result, round_folder


def _checked(method: str, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every option of a method, checked before the first tree is trained."""
    chosen = builder(method)
    if chosen.takes is not WordVectors:
        raise OptionError(
            f"{method} takes {chosen.takes_text}; a bootstrap builds its trees from word vectors"
        )
    if any(option.name == "random_state" for option in chosen.options):
        options = {"random_state": seed, **options}
    return chosen.effective(options)
