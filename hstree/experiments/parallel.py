"""Stages of jobs: one at a time in this process, or several at a time in other processes.

All processes see the folder of the comparison. Jobs share trees and the vectors from which these
are built. The first job that needs one makes it, and the others wait.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hstree import progress
from hstree._parallel import n_parallel, parallel
from hstree.errors import WorkerError
from hstree.experiments.candidate import Candidate, Job
from hstree.experiments.job import build_tree, learn_vectors
from hstree.experiments.results import JobResult
from hstree.experiments.setting import Budget, Setting, SettingAddress
from hstree.experiments.store import Store
from hstree.tree import load

#: What is done of a job: `run_job`, `continue_job` or `score_all_tokens`.
Stage = Callable[[Job, Setting, Store, Budget | None], JobResult | float]


#: A stage, or what is made for several jobs before it.
_AnyStage = Callable[[Job, Setting, Store, Budget | None], JobResult | float | None]


class _Task(NamedTuple):
    """A stage of a job as it is sent to another process.

    A candidate that is a given tree is sent as the file of the tree, below the folder of the
    comparison.
    """

    stage: _AnyStage
    candidate: str
    seed: int
    tree_file: str | None


def run_stage(
    stage: Stage,
    jobs: Iterable[Job],
    setting: Setting,
    store: Store,
    budget: Budget | None,
    *,
    title: str,
    n_jobs: int | None,
    builds_trees_first: bool = False,
) -> Iterator[tuple[Job, JobResult | float]]:
    """Do a stage of jobs, `n_jobs` at a time; yield each job with its result when it is done.

    `title` is that of the progress. If `builds_trees_first`, trees that need no vectors are built
    before any training, so that invalid options of a builder are refused at once.
    """
    jobs = list(dict.fromkeys(jobs))

    unbuilt: list[Job] = []
    if builds_trees_first:
        by_tree = {store.tree_file(job): job for job in jobs if job.candidate.has_tree}
        unbuilt = [
            job
            for job in by_tree.values()
            if job.candidate.source is None and not store.has_tree(job)
        ]

    if n_parallel(n_jobs) == 1:
        for job in unbuilt:
            build_tree(job, setting, store, budget)
        with progress.task(title, len(jobs), "candidates") as bar:
            for job in jobs:
                bar.note(job.candidate.name)
                result = stage(job, setting, store, budget)
                bar.advance()
                yield job, result
        return

    stages = _ordered_stages(stage, jobs, unbuilt)
    tasks = (_task(work, job, setting, store) for work, job in stages)
    do = partial(_do, setting.address(), store.home.absolute(), budget)
    n_done = 0
    with progress.task(title, len(jobs), "jobs") as bar:
        for number, outcome in parallel(do, tasks, n_jobs):
            work, job = stages[number]
            if work is _make_vectors:
                progress.report(f"vectors for {job.candidate}, seed {job.seed}: done")
            if outcome is None:
                continue
            n_done += 1
            bar.note(job.candidate.name)
            bar.advance()
            done = f"done, {n_done} of {len(jobs)} jobs"
            progress.report(f"{job.candidate}, seed {job.seed}: {done}")
            yield job, outcome


def _ordered_stages(
    stage: Stage, jobs: Sequence[Job], unbuilt: Iterable[Job]
) -> list[tuple[_AnyStage, Job]]:
    """Return the stages of jobs in the order in which processes begin them.

    The vectors of all sources are learned first, and then trees are built. Of the jobs, those that
    take long begin first, and those that need vectors, or learn them, last.
    """
    sources = [Job(job.candidate.source, job.seed) for job in jobs if job.candidate.source]

    def order(job: Job) -> tuple[bool, bool]:
        has_vectors = job.candidate.source is not None or job in sources
        return has_vectors, not job.candidate.trains_slowly

    return [
        *((_make_vectors, job) for job in dict.fromkeys(sources)),
        *((_make_tree, job) for job in unbuilt),
        *((stage, job) for job in sorted(jobs, key=order)),
    ]


def _task(stage: _AnyStage, job: Job, setting: Setting, store: Store) -> _Task:
    """Return a stage as it is sent; a given tree is written into the folder first."""
    tree_file: str | None = None
    if job.candidate.tree is not None:
        build_tree(job, setting, store)
        tree_file = store.relative(store.tree_file(job))
    return _Task(stage, job.candidate.name, job.seed, tree_file)


def _make_vectors(job: Job, setting: Setting, store: Store, budget: Budget | None) -> None:
    """Learn the vectors of a source, which the trees of several jobs may need."""
    learn_vectors(job, setting, store, budget)


def _make_tree(job: Job, setting: Setting, store: Store, budget: Budget | None) -> None:
    """Build a tree, which several jobs may share."""
    build_tree(job, setting, store, budget)


def _do(
    address: SettingAddress, home: Path, budget: Budget | None, task: _Task
) -> JobResult | float | None:
    """Do a task in a worker; return the result of a job, or None for vectors and trees."""
    store = Store(home)
    if not store.is_visible():
        raise WorkerError(
            f"{socket.gethostname()} does not see the folder {home}; choose one that all workers "
            "share"
        )
    tree = None if task.tree_file is None else load(home / task.tree_file)
    job = Job(Candidate.parse(task.candidate, tree), task.seed)
    setting = address.open()
    with setting.backend():
        return task.stage(job, setting, store, budget)
