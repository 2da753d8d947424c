"""Stages of jobs: one at a time in this process, or in parallel in other processes.

All processes see the folder of the comparison. Jobs share trees and the vectors from which trees
are built. The first job that needs them creates them, and other jobs wait.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hstree import progress
from hstree._files import LOCK
from hstree._parallel import n_parallel, parallel
from hstree.data.corpus import corpus_address, open_corpus
from hstree.data.splits import Splits
from hstree.errors import WorkerError
from hstree.experiments.candidate import Candidate, Job
from hstree.experiments.job import FAILURES, build_tree, learn_vectors
from hstree.experiments.results import JobResult
from hstree.experiments.setting import Budget, Setting
from hstree.experiments.store import Store
from hstree.tree import Tree

#: A function that does a part of a job: `run_job`, `continue_job` or `score_all_tokens`.
Stage = Callable[[Job, Setting, Store, Budget | None], JobResult | float]


def run_stage(
    stage: Stage,
    jobs: Sequence[Job],
    setting: Setting,
    store: Store,
    budget: Budget | None,
    *,
    title: str,
    n_jobs: int | None,
    builds_trees_first: bool = False,
) -> Iterator[tuple[Job, JobResult | float]]:
    """Run a stage of jobs, `n_jobs` in parallel; yield each job with its result when it is done.

    `title` is the title of the progress display. If `builds_trees_first`, trees that need no
    vectors are built before any training, so that invalid options of builders are refused at once.
    """
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

    # Learn the vectors of all sources, then build trees, then run the jobs: slow jobs first, jobs
    # that need or learn vectors last
    sources = [Job(job.candidate.source, job.seed) for job in jobs if job.candidate.source]
    ordered = sorted(
        jobs,
        key=lambda job: (
            job.candidate.source is not None or job in sources,
            not job.candidate.trains_slowly,
        ),
    )
    stages: list[tuple[Callable[..., object], Job]] = [
        *((learn_vectors, job) for job in dict.fromkeys(sources)),
        *((build_tree, job) for job in unbuilt),
        *((stage, job) for job in ordered),
    ]
    tasks = ((work, job.candidate.name, job.candidate.tree, job.seed) for work, job in stages)
    # Texts are sent as addresses, without their arrays
    texts = [corpus_address(part) for part in setting.splits]
    conditions = {
        "options": setting.options,
        "stop": setting.stop,
        "seeds": setting.seeds,
        "sample_size": setting.sample_size,
    }
    do = partial(_do_task, texts, conditions, store.home.absolute(), budget)
    n_done = 0
    with progress.task(title, len(jobs), "jobs") as bar:
        for number, outcome in parallel(do, tasks, n_jobs):
            work, job = stages[number]
            if work is learn_vectors:
                progress.report(f"vectors for {job.candidate}, seed {job.seed}: done")
            if outcome is None:
                continue
            n_done += 1
            bar.note(job.candidate.name)
            bar.advance()
            done = f"done, {n_done} of {len(jobs)} jobs"
            progress.report(f"{job.candidate}, seed {job.seed}: {done}")
            yield job, outcome


def _do_task(
    texts: Sequence[tuple[Any, ...]],
    conditions: Mapping[str, Any],
    home: Path,
    budget: Budget | None,
    task: tuple[Callable[..., object], str, Tree | None, int],
) -> JobResult | float | None:
    """Run a task in a worker; return the result of a job, or None for vectors and trees."""
    # A worker sees the lock of the comparison only if it shares the folder
    stage, name, tree, seed = task
    store = Store(home)
    if not (home / LOCK).exists():
        raise WorkerError(
            f"the worker {socket.gethostname()} cannot see the folder {home}; choose a folder that "
            "all workers share"
        )
    setting = Setting(Splits(*map(open_corpus, texts)), **conditions)
    # The jobs that need vectors report why there are none
    result: object = None
    failures = FAILURES if stage is learn_vectors else ()
    with setting.backend(), suppress(*failures):
        result = stage(Job(Candidate.parse(name, tree), seed), setting, store, budget)
    return result if isinstance(result, JobResult | float) else None
