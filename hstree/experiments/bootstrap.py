"""Bootstrap a tree from nothing but text (Mnih & Hinton 2008, section 4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hstree import progress
from hstree._files import make_folder
from hstree.data.corpus import Corpus
from hstree.errors import InputError, OptionError
from hstree.experiments.entries import Entry, EntryLike, Method, as_entries
from hstree.experiments.evaluation import Splits
from hstree.experiments.planning import Plan, check_minutes, fitted, kept_fit, plan
from hstree.experiments.results import RunResult
from hstree.experiments.runs import (
    built_tree,
    has_other_tree,
    kept_result,
    key_of,
    run,
)
from hstree.experiments.work import Work, builder_input
from hstree.models import config_of


def bootstrap(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    methods: Sequence[EntryLike] = ("gmm",),
    *,
    rounds: int | None = None,
    first: EntryLike = "random",
    warm_start: bool = False,
    minutes: float | None = None,
    force: bool = False,
    planned: Callable[[Plan], object] | None = None,
    **options: Any,
) -> Iterator[tuple[str, RunResult]]:
    """Train on a first tree, then on trees grown from the vectors that a model learned.

    Round 0 trains on a random tree, or another. Every later tree is grown from the mean predicted
    vectors of the model with the lowest validation perplexity so far; a method that needs no
    vectors builds from the text. Finished rounds are not done again.

    Iterate over it: a round is done when its result is asked for. Arguments are checked at once.

    Parameters
    ----------
    text : Splits or Corpus
        A corpus is split by `corpus_splits`. The training split's vocabulary makes the trees.
    folder : path
        Gets ``round-0``, ``round-1``, ..., each as `hstree.experiments.runs.run` leaves it.
    methods : sequence, default ("gmm",)
        Builders of the rounds from 1 on, each a name ("gmm"), one with its options (("classes",
        {"cluster_by": "vectors"})) or a `Method`; the last is that of all later rounds. Their
        `random_state` is by default that of `options`.
    rounds : int, optional
        Number of trees after the first; by default one for each of `methods`.
    first : str, tuple or Method, default "random"
        Builder of round 0, which needs no vectors.
    warm_start : bool, default False
        Whether every later round begins with the context model of that model, instead of random
        word vectors: its perplexity falls sooner, and may end a little higher.
    minutes : float, optional
        Budget of all rounds, to which the epochs of each are fitted as
        `hstree.experiments.planning.fitted` says; `epochs` of `options` stays the limit.
    force : bool, default False
        Whether to replace finished rounds of another text, tree, model, budget or start.
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
        When there are fewer rounds than methods, a method is none, or an option is invalid.
    InputError
        When a round is asked for whose folder has a finished run of something else.
    """
    splits, home = Splits.of(text), Path(folder)
    of_rounds = _methods(methods, rounds, first, options)
    if minutes is None and planned is None:
        return _rounds(splits, home, of_rounds, warm_start, force, options)
    plan_of_rounds = plan_of(
        splits,
        home,
        methods,
        rounds=rounds,
        first=first,
        warm_start=warm_start,
        minutes=minutes,
        force=force,
        **options,
    )
    if planned is not None:
        planned(plan_of_rounds)
    options |= plan_of_rounds.options
    make_folder(home)
    plan_of_rounds.save(home)
    return _shown(
        _rounds(splits, home, of_rounds, warm_start, force, options),
        plan_of_rounds,
        len(splits.train),
    )


def plan_of(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    methods: Sequence[EntryLike] = ("gmm",),
    *,
    rounds: int | None = None,
    first: EntryLike = "random",
    warm_start: bool = False,
    minutes: float | None = None,
    force: bool = False,
    **options: Any,
) -> Plan:
    """Predict the seconds of the rounds that are not finished, fitted to a budget.

    Parameters and errors are those of `bootstrap`.
    """
    began, home = time.perf_counter(), Path(folder)
    start, *later = _methods(methods, rounds, first, options)
    entries = [start, *(replace(e, vectors_from=start) if e.needs_vectors else e for e in later)]
    rows: list[Entry] = list({entry.slug: entry for entry in entries}.values())
    if minutes is not None:
        check_minutes(minutes, options)
    fit = None if force else kept_fit(home, minutes, equal_seconds=False)
    if fit is not None:
        options = {**options, **fit.options}
    with TemporaryDirectory() as temporary:
        work = Work.of(text, rows, temporary, 1, options)
        by_slug = {run.entry.slug: run for run in plan({"equal_epochs": work}, rows).runs}
    config = config_of(options)
    runs = [
        replace(
            by_slug[entry.slug],
            finished=_is_finished(home / f"round-{number}", config, warm_start and number > 0),
        )
        for number, entry in enumerate(entries)
    ]
    if minutes is None or fit is not None:
        return Plan(runs, measuring=0.0, fit=fit)
    spent = time.perf_counter() - began
    return fitted(
        Plan(runs, measuring=0.0), rows, minutes, equal_seconds=False, spent=spent, all_rows=True
    )


def _is_finished(folder: Path, config: Mapping[str, Any], is_warm: bool) -> bool:
    result = kept_result(folder)
    if result is None or result.options != config:
        return False
    return bool(result.warm_start) == is_warm


def _rounds(
    splits: Splits,
    home: Path,
    methods: Sequence[Method],
    warm_start: bool,
    force: bool,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, RunResult]]:
    """Yield each round when it is done; the arguments are checked."""
    best: RunResult | None = None
    best_folder = home
    for number, entry in enumerate(methods):
        folder = home / f"round-{number}"
        input, of_tree = builder_input(entry, entry.options, splits.train, best_folder)
        kept = None if force else kept_result(folder)
        if kept is not None and has_other_tree(input, folder, entry.method, of_tree):
            raise _refusal(folder)
        spec = entry.over(built_tree(input, folder, entry.method, of_tree))
        source = best_folder if warm_start and best is not None else None
        if kept is not None and kept.key != key_of(spec, splits, source, **options):
            raise _refusal(folder)
        result = run(spec, splits, folder, warm_start=source, **options)
        yield folder.name, result
        if best is None or result.valid < best.valid:
            best, best_folder = result, folder


def _shown(
    results: Iterator[tuple[str, RunResult]], planned: Plan, tokens: int
) -> Iterator[tuple[str, RunResult]]:
    """Yield results of rounds, and show the time left, which the plan weights."""
    with progress.task("all rounds", sum(run.seconds for run in planned.runs), "s") as task:
        for number, run in enumerate(planned.runs):
            task.note(f"round {number}, {run.entry.name}")
            with progress.counted(task, run.seconds, run.training / max(tokens * run.passes, 1e-9)):
                result = next(results)
            yield result


def _refusal(folder: Path) -> InputError:
    return InputError(
        f"{folder} has a finished round of another text, tree, model, budget or start; choose "
        "another folder, or force its replacement"
    )


def _methods(
    methods: Sequence[EntryLike],
    rounds: int | None,
    first: EntryLike,
    options: Mapping[str, Any],
) -> list[Method]:
    """Return the method of every round with the value of every option, all checked."""
    config_of(options)
    start, *given = (_method(each) for each in (first, *methods))
    if start.needs_vectors:
        raise OptionError(
            f"{start.name} needs word vectors, which the first round has not learned yet; begin "
            "with random, huffman or classes"
        )
    if not given:
        raise OptionError("there is no method for the rounds after the first; name one")
    n = len(given) if rounds is None else rounds
    if n < 1:
        raise OptionError(f"rounds is {n}; it must be 1 or more")
    if n < len(given):
        raise OptionError(f"rounds is {n}, for {len(given)} methods; every method needs a round")
    each = [start, *given, *[given[-1]] * (n - len(given))]
    seed = options.get("random_state", 0)
    return [replace(e, options=e.builder.effective(e.seeded(seed))) for e in each]


def _method(entry: EntryLike) -> Method:
    found = as_entries([entry])[0]
    if not isinstance(found, Method):
        raise OptionError(f"{found.name} is not a way to build a tree; name one, such as gmm")
    if found.vectors_from is not None:
        raise OptionError(f"{found.name}: a bootstrap chooses the round that vectors are from")
    return found
