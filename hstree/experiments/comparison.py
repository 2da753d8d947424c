"""Comparison of output layers: the same model trained with each, under the same budget.

Every layer gets the same text, starting vectors, batches and schedule, so that what differs is the
layer. Finished runs are kept (`runs`), so that a comparison goes on where it stopped, and a new
entry costs only its own training.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from hstree._options import Range, check_value
from hstree.data.corpus import Corpus
from hstree.errors import HstreeError, OptionError
from hstree.experiments import results, rows, words
from hstree.experiments.entries import FLAT, Ensemble, Entry, EntryLike, as_entries
from hstree.experiments.evaluation import Splits
from hstree.experiments.planning import (
    REFERENCE,
    Plan,
    PlannedRun,
    Speeds,
    carry_out,
    check_minutes,
    fitted,
    kept_fit,
    plan,
)
from hstree.experiments.previous import may_share, with_kept
from hstree.experiments.results import Comparison, Row, RunResult
from hstree.experiments.runs import locked
from hstree.experiments.work import Done, Work


def compare(
    text: Splits | Corpus,
    entries: Sequence[EntryLike],
    folder: str | os.PathLike[str],
    *,
    seeds: int = 1,
    minutes: float | None = None,
    equal_seconds: bool = False,
    within: float = rows.TOLERANCE,
    only: bool = False,
    force: bool = False,
    planned: Callable[[Plan], object] | None = None,
    updated: Callable[[Path], object] | None = None,
    compared: Callable[[Comparison], object] | None = None,
    **options: Any,
) -> Comparison:
    """Train the same model with several output layers; report costs and perplexities of each.

    Parameters
    ----------
    text : Splits or Corpus
        Splits over one vocabulary, or a corpus to split by `corpus_splits`. Trees are built from
        the training split alone.
    entries : sequence
        Rows of the comparison: a method or an output layer ("huffman", "sampled"), one with its
        options (("gmm", {"epsilon": 0.4})), a `Tree` or `LayerSpec`, a Kneser-Ney baseline ("kn2"
        to "kn7"), or an object of `hstree.experiments.entries`, which has a name. Methods that
        take vectors are built from the mean predicted vectors of a model on a random tree, trained
        once per random state. An `Ensemble` trains several models of one entry.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``runs``, a folder for each run as
        `hstree.experiments.runs.run` leaves it, ``results.json``, ``results.csv`` and
        ``words.json``.
    seeds : int, default 1
        Number of random states, at most `MAX_SEEDS`: `random_state` and those after it. Each has
        its own random trees, starting vectors and batches, the same for all rows.
    minutes : float, optional
        Budget of the whole comparison, to which epochs and rows are fitted as
        `hstree.experiments.planning.fitted` says; `epochs` of `options` stays the limit. The
        same budget in the same folder is fitted once. No limit by default.
    equal_seconds : bool, default False
        Whether to train every row for the same number of seconds of `minutes`, instead of the
        same number of epochs.
    within : float, default 0.03
        For `hstree.experiments.rows.choice`: how far above the lowest validation perplexity the
        chosen row may be, as a share of it.
    only : bool, default False
        Whether to leave out the other rows of a comparison that the folder holds.
    force : bool, default False
        Whether to replace a comparison of another text, model or budget that the folder holds.
    planned : callable, optional
        Called with the plan before the first training.
    updated : callable, optional
        Called with the folder when its files have got another row, while others are pending.
    compared : callable, optional
        Called with the comparison before its files are written, which may fail.
    **options
        Options of `hstree.models.new_model`; baselines are for the log-bilinear model alone.

    Returns
    -------
    Comparison
        The content of ``results.json``, with `best`, `show`, `frame` and `to_html`; a notebook
        shows its table.

    Raises
    ------
    OptionError
        Before anything is trained, for an invalid entry or option.
    InputError
        Likewise when a tree or layer is over other words than the text's vocabulary, the folder
        holds a comparison of another text, model or budget, or another process works in it.
    KeyboardInterrupt
        When it was interrupted; finished runs are kept.

    Examples
    --------
    >>> entries = ["huffman", ("gmm", {"epsilon": 0.4, "trees": 4}), "flat", "kn5"]
    >>> compare(corpus, entries, "runs", epochs=3).best.name               # doctest: +SKIP
    'gmm epsilon=0.4 trees=4'
    """
    check_value("within", within, Annotated[float, Range(0)])
    work, named = _work_of(text, entries, folder, seeds, minutes, equal_seconds, options)
    with locked(work.home):
        job = _job(work, named, minutes, equal_seconds, only=only, force=force)
        if planned is not None:
            planned(job.plan)
        trained = job.train(updated)
        speeds = job.work.speeds(job.entries)
        comparison = job.work.comparison(
            job.entries, trained, speeds, within, left_out=job.plan.left_out
        )
        if compared is not None:
            compared(comparison)
        words.save(job.work.words(job.entries, comparison), work.home)
        results.save(comparison, work.home)
    return comparison.in_folder(work.home)


def plan_of(
    text: Splits | Corpus,
    entries: Sequence[EntryLike],
    folder: str | os.PathLike[str],
    *,
    seeds: int = 1,
    minutes: float | None = None,
    equal_seconds: bool = False,
    only: bool = False,
    force: bool = False,
    **options: Any,
) -> Plan:
    """Return the plan of a comparison: what it would train, and the seconds that this takes.

    Parameters and errors are those of `compare`. Trees that are built from counts are left in the
    folder.
    """
    work, named = _work_of(text, entries, folder, seeds, minutes, equal_seconds, options)
    with locked(work.home):
        return _job(work, named, minutes, equal_seconds, only=only, force=force).plan


def _work_of(
    text: Splits | Corpus,
    entries: Sequence[EntryLike],
    folder: str | os.PathLike[str],
    seeds: int,
    minutes: float | None,
    equal_seconds: bool,
    options: Mapping[str, Any],
) -> tuple[Work, list[Entry]]:
    """Return the work and the entries of a comparison, its arguments checked."""
    named = as_entries(entries)
    if minutes is not None:
        check_minutes(minutes, options)
    elif equal_seconds:
        raise OptionError("equal_seconds divides a budget of minutes; give minutes")
    return Work.of(text, named, folder, seeds, options), named


@dataclass(frozen=True)
class _Job:
    """What is to do for a comparison: its entries and their plan."""

    work: Work
    entries: list[Entry]
    plan: Plan

    def train(self, updated: Callable[[Path], object] | None) -> dict[str, list[RunResult]]:
        """Do the planned runs; write the results of finished rows when there is another."""
        self.plan.save(self.work.home)
        done: Done = {}
        fitted: set[str] = set()
        if not (self.work.home / results.JSON).exists():
            self._write(done, fitted)

        def ended(run: PlannedRun, result: RunResult | None) -> None:
            if result is None:
                fitted.add(run.entry.slug)
            else:
                done.setdefault(run.entry.slug, {})[run.seed] = result
            if not run.finished and run is not self.plan.runs[-1]:
                self._write(done, fitted)
                if updated is not None:
                    updated(self.work.home)

        carry_out(self.plan, {"equal_epochs": self.work}, ended)
        return self.work.finished(self.entries, done)

    def _write(self, done: Done, fitted: Collection[str]) -> None:
        """Write the results of all finished rows."""
        comparison = self.work.so_far(self.entries, done, fitted, left_out=self.plan.left_out)
        results.save(comparison, self.work.home)


def _job(
    work: Work,
    named: list[Entry],
    minutes: float | None,
    equal_seconds: bool,
    *,
    only: bool,
    force: bool,
) -> _Job:
    """Plan the entries that are named and those that the folder holds, fitted to a budget."""
    began = time.perf_counter()
    fit = None if force else kept_fit(work.home, minutes, equal_seconds=equal_seconds)
    if fit is not None:
        work = work.with_options(fit.options)
        named = [entry for entry in named if entry.name not in fit.left_out]
    is_same = may_share(work.home, work.splits, work.config, force=force)
    kept = _rows_in(work.home) if is_same and not only else []
    entries = with_kept(named, kept, work.home)
    several = next((entry for entry in entries if isinstance(entry, Ensemble)), None)
    if equal_seconds and several is not None:
        raise OptionError(
            f"equal_seconds would train each model of {several.name} as long as any row; compare "
            "it after equal epochs, in another folder if it is kept in this one"
        )
    work.build_trees(entries)
    measured: dict[str, Speeds] = {}
    planned = plan({"equal_epochs": work}, entries, measured)
    if minutes is None or fit is not None:
        return _Job(work, entries, replace(planned, fit=fit))

    def fitting(planned: Plan) -> Plan:
        spent = time.perf_counter() - began
        return fitted(planned, entries, minutes, equal_seconds=equal_seconds, spent=spent)

    planned = fitting(planned)
    if FLAT in planned.left_out and not any(entry.slug == REFERENCE.slug for entry in entries):
        entries.append(REFERENCE)
        planned = fitting(plan({"equal_epochs": work}, entries, measured))
    entries = [entry for entry in entries if entry.name not in planned.left_out]
    return _Job(work.with_options(planned.options), entries, planned)


def _rows_in(folder: Path) -> list[Row]:
    """Return the rows of the comparison that a folder holds; none if it cannot be read."""
    try:
        return results.load(folder).rows
    except HstreeError:
        return []
