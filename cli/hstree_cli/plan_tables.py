"""The plan of a comparison or survey: what is trained, and how long that takes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hstree._text import duration, plural
from hstree.experiments.entries import Baseline, Ensemble, Method
from hstree.experiments.work import RANDOM
from hstree_cli.tables import facts, narrow, table
from hstree_cli.terminal import say

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.experiments.entries import Entry
    from hstree.experiments.planning import Plan, PlannedRun, Regime

#: Columns of the regimes.
TITLES: dict[Regime, str] = {
    "equal_epochs": "equal\nepochs",
    "equal_seconds": "equal\nseconds",
}

#: Seconds of a plan that comes with a word on how to bound them.
LONG = 3600


def announce(plan: Plan, rows: Sequence[Entry], train: Corpus) -> None:
    """Print the plan of work that begins now; what cannot be printed stops no work."""
    with suppress(OSError):
        print_plan(plan, rows, train)
        sys.stdout.flush()


def print_plan(plan: Plan, rows: Sequence[Entry], train: Corpus) -> None:
    """Print what a comparison or survey of these rows is going to do, and how long that takes."""
    notes = _notes(rows)
    regimes = list(dict.fromkeys(run.regime for run in plan.runs))
    columns = ["\nan epoch", *(TITLES[r] if len(regimes) > 1 else "\ntime" for r in regimes)]
    filled = table("\nto do", *columns, text=("\nto do",))
    for name in dict.fromkeys(run.entry.name for run in plan.runs):
        of_row = [run for run in plan.runs if run.entry.name == name]
        epoch = max(run.epoch + run.validation for run in of_row)
        cells = [duration(epoch) if epoch else "-"]
        cells += [_time([run for run in of_row if run.regime == regime]) for regime in regimes]
        filled.add_row(f"{name} ({'; '.join(notes[name])})" if name in notes else name, *cells)
    say(narrow(filled, *columns))
    measuring = f", of which {duration(plan.measuring)} to measure speeds" if plan.measuring else ""
    lines = [
        ("tokens", f"{len(train):,} to train on, {len(train.vocabulary):,} words"),
        *_budget(plan),
        (
            "time",
            f"about {duration(plan.seconds)}{measuring}; from some batches of each row: trainings "
            "may converge before their last epoch; importance sampling slows as the model learns",
        ),
        *_shorter(plan),
        *((f"left out: {name}", reason) for name, reason in plan.left_out.items()),
    ]
    say(facts(lines))


def _shorter(plan: Plan) -> list[tuple[str, str]]:
    """Return how to bound the time of a plan that takes long, and what takes most of it."""
    if plan.seconds < LONG or plan.fit is not None:
        return []
    slowest = max(plan.runs, key=lambda run: run.seconds)
    return [
        (
            "shorter",
            f"{slowest.entry.name} alone takes {duration(slowest.seconds)}; --minutes N fits the "
            "epochs to a time and leaves out what is too slow; --lines 10% reads part of the text",
        )
    ]


def _budget(plan: Plan) -> list[tuple[str, str]]:
    """Return how long each row is trained."""
    runs = [run for run in plan.runs if not isinstance(run.entry, Baseline) and not run.finished]
    by_seconds = {run.budget for run in runs if run.budget is not None}
    by_epochs = {run.epochs for run in runs if run.budget is None}
    limits = [f"at most {plural(epochs, 'epoch')}" for epochs in by_epochs]
    limits += [f"{seconds:,.0f} seconds" for seconds in by_seconds]
    return [("each row", " or ".join(limits))] if limits else []


def _time(runs: Sequence[PlannedRun]) -> str:
    """Return the time of the runs of a row; none of a finished row."""
    if not runs:
        return "-"
    return "kept" if all(run.finished for run in runs) else duration(sum(r.seconds for r in runs))


def _notes(rows: Sequence[Entry]) -> dict[str, list[str]]:
    """Return what each training that is no row itself, or not alone, is for."""
    names = {row.name for row in rows}
    learners: dict[str, list[str]] = {}
    notes: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, Ensemble):
            notes.setdefault(row.of.name, []).append(f"models of {row.name}")
        trained = row.of if isinstance(row, Ensemble) else row
        if isinstance(trained, Method) and trained.needs_vectors:
            source = (trained.vectors_from or RANDOM).name
            if source not in names:
                learners.setdefault(source, []).append(row.name)
    for source, taught in learners.items():
        notes.setdefault(source, []).append(f"vectors for {', '.join(taught)}")
    return notes
