"""Bootstrap a tree from nothing but text (Mnih & Hinton 2008, section 4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hstree._files import make_folder
from hstree.builders import BuilderInput, builder
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, OptionError
from hstree.experiments.entries import Entry, Method
from hstree.experiments.evaluation import Splits
from hstree.experiments.planning import Plan, check_minutes, fitted, kept_fit, plan
from hstree.experiments.results import RunResult
from hstree.experiments.runs import (
    built_tree,
    has_other_tree,
    kept_result,
    key_of,
    run,
    vectors_of,
)
from hstree.experiments.work import RANDOM, Work
from hstree.layers.registry import layer_spec
from hstree.models import config_of


def bootstrap(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    *,
    rounds: int = 1,
    method: str = "gmm",
    build_options: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    force: bool = False,
    planned: Callable[[Plan], object] | None = None,
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
    minutes : float, optional
        Budget of all rounds, to which the epochs of each are fitted as
        `hstree.experiments.planning.fitted` says; `epochs` of `options` stays the limit.
    force : bool, default False
        Whether to replace finished rounds of another text, tree, model or budget.
    planned : callable, optional
        Called with the plan before the first training.
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
    InputError
        When a round is asked for whose folder has a finished run of something else.
    """
    splits, home, grown = (
        Splits.of(text),
        Path(folder),
        _grown(rounds, method, build_options, options),
    )
    if minutes is not None or planned is not None:
        of_rounds = plan_of(
            splits, home, rounds=rounds, method=method, build_options=build_options,
            minutes=minutes, force=force, **options,
        )  # fmt: skip
        if planned is not None:
            planned(of_rounds)
        options |= of_rounds.options
        make_folder(home)
        of_rounds.save(home)
    return _rounds(splits, home, rounds, grown, force, options)


def plan_of(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    *,
    rounds: int = 1,
    method: str = "gmm",
    build_options: Mapping[str, Any] | None = None,
    minutes: float | None = None,
    force: bool = False,
    **options: Any,
) -> Plan:
    """Predict the seconds of the rounds that are not finished, fitted to a budget.

    Parameters and errors are those of `bootstrap`.
    """
    began, home = time.perf_counter(), Path(folder)
    rows: list[Entry] = [RANDOM, _grown(rounds, method, build_options, options)]
    if minutes is not None:
        check_minutes(minutes, options)
    fit = None if force else kept_fit(home, minutes, equal_seconds=False)
    if fit is not None:
        options = {**options, **fit.options}
    with TemporaryDirectory() as temporary:
        work = Work.of(text, rows, temporary, 1, options)
        first, later = plan({"equal_epochs": work}, rows).runs
    config = config_of(options)
    runs = [
        replace(run, finished=_is_finished(home / f"round-{number}", config))
        for number, run in enumerate([first, *[later] * rounds])
    ]
    if minutes is None or fit is not None:
        return Plan(runs, measuring=0.0, fit=fit)
    spent = time.perf_counter() - began
    return fitted(
        Plan(runs, measuring=0.0), rows, minutes, equal_seconds=False, spent=spent, all_rows=True
    )


def _is_finished(folder: Path, config: Mapping[str, Any]) -> bool:
    result = kept_result(folder)
    return result is not None and result.options == config


def _rounds(
    splits: Splits,
    home: Path,
    rounds: int,
    grown: Method,
    force: bool,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, RunResult]]:
    """Yield each round when it is done; the arguments are checked."""

    def done(
        folder: Path, input: BuilderInput, method: str, of_tree: Mapping[str, Any]
    ) -> RunResult:
        kept = None if force else kept_result(folder)
        if kept is not None and has_other_tree(input, folder, method, of_tree):
            raise _refusal(folder)
        tree = built_tree(input, folder, method, of_tree)
        if kept is not None and kept.key != key_of(layer_spec(tree), splits, **options):
            raise _refusal(folder)
        return run(tree, splits, folder, **options)

    best_folder = home / "round-0"
    seed = {"random_state": options.get("random_state", 0)}
    best = done(best_folder, splits.train, "random", seed)
    yield best_folder.name, best
    for number in range(1, rounds + 1):
        folder = home / f"round-{number}"
        result = done(folder, vectors_of(best_folder), grown.method, grown.options)
        yield folder.name, result
        if result.valid < best.valid:
            best, best_folder = result, folder


def _refusal(folder: Path) -> InputError:
    return InputError(
        f"{folder} has a finished round of another text, tree, model or budget; choose another "
        "folder, or force its replacement"
    )


def _grown(
    rounds: int,
    method: str,
    build_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> Method:
    """Return the method of the later rounds with the value of every option, all checked."""
    if rounds < 1:
        raise OptionError(f"rounds is {rounds}; it must be 1 or more")
    config_of(options)
    chosen = builder(method)
    if chosen.takes is not WordVectors:
        raise OptionError(
            f"{method} takes {chosen.takes_text}; a bootstrap builds its trees from word vectors"
        )
    seed = options.get("random_state", 0)
    given = Method(method, build_options or {})
    return Method(method, chosen.effective(given.seeded(seed)), given.name)
