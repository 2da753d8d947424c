"""Jobs of a runner: one at a time here, or several in processes that make the runner again.

Workers that see the comparison's folder do a job there; what jobs share, trees and the vectors that
they are built from, the first makes and the others wait for. Workers that do not see it get the
folders that a job reads as bytes, and send back those that it wrote.
"""

import io
import shutil
import socket
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from hstree import progress
from hstree._files import LOCK
from hstree._parallel import n_parallel, parallel
from hstree.data.corpus import corpus_address, open_corpus
from hstree.data.splits import Splits
from hstree.errors import WorkerError
from hstree.experiments.candidate import Candidate, Job, TreeCandidate
from hstree.experiments.results import JobResult
from hstree.experiments.run import BUILD, RESULT, Runner
from hstree.tree import load

#: What is done of a job: the vectors or the tree of its candidate, a part of its training, all of
#: it, or the scores of all held-out tokens.
Step = Literal["vectors", "tree", "advance", "run", "score_all"]


class _Plan(NamedTuple):
    """A runner as it is sent to workers, without candidates and the arrays of texts."""

    addresses: list[tuple[Any, ...]]
    fields: dict[str, Any]
    seconds: float | None
    is_shared: bool


class _Task(NamedTuple):
    """A step of a job as it is sent; `tree` is the file of a candidate that is a tree."""

    step: Step
    candidate: str
    seed: int
    tree: str | None
    packed: bytes


def jobs_done(
    runner: Runner,
    jobs: Iterable[Job],
    *,
    title: str,
    step: Step,
    seconds: float | None,
    n_jobs: int | None,
    is_shared: bool,
) -> Iterator[tuple[Job, JobResult | float]]:
    """Do jobs, several at a time; yield each when it is done, with its result, or the score so far.

    The step is "run", "advance" or "score_all", with the parameters of these methods of `Runner`;
    `title` is that of the progress. `is_shared` says whether all workers see the runner's folder.
    """
    jobs, home = list(dict.fromkeys(jobs)), runner.home.absolute()
    trees = {runner.folder(job, "trees"): job for job in jobs if job.candidate.kind == "tree"}
    # what is built from the text alone comes first: bad options are refused before any training
    missing = [
        job
        for folder, job in trees.items()
        if not (job.candidate.source or (folder / BUILD).exists())
    ]
    missing = missing if step == "run" else []
    if n_parallel(n_jobs) == 1:
        for job in missing:
            runner.tree(job)
        with progress.task(title, len(jobs), "candidates") as bar:
            for job in jobs:
                bar.note(job.candidate.name)
                result = getattr(runner, step)(job, seconds=seconds)
                bar.advance()
                yield job, result
        return
    sources = {Job(job.candidate.source, job.seed): job for job in jobs if job.candidate.source}
    first: list[tuple[Step, Job]] = [("vectors", job) for job in sources.values()]

    def order(job: Job) -> tuple[bool, bool]:
        """Those that take long first; last those that wait for vectors, or have learned them."""
        is_long = (
            job.candidate.kind == "layer" or job.candidate.layer is not None
        )  # a tree alone is fast
        return job.candidate.source is not None or job in sources, not is_long

    last = [(step, job) for job in sorted(jobs, key=order)]
    if is_shared:  # jobs wait for what others make
        stages = [first + [("tree", job) for job in missing] + last]
    else:
        stages = [first, [("tree", job) for job in trees.values()], last]
    kept = {f.name: getattr(runner, f.name) for f in fields(runner)} | {
        "home": home,
        "candidates": [],
    }
    addresses = [corpus_address(part) for part in kept.pop("splits")]
    plan = _Plan(addresses, kept, seconds, is_shared)

    def tasks(stage: list[tuple[Step, Job]]) -> Iterator[_Task]:
        for of, job in stage:
            tree: str | None = None
            if isinstance(job.candidate.tree_candidate, TreeCandidate):
                runner.tree(job)
                folder = runner.folder(job, "trees")
                tree = (folder / "tree.json").relative_to(runner.home).as_posix()
            packed = b"" if is_shared else _packed(runner.home, _folders(runner, job))
            yield _Task(of, job.candidate.name, job.seed, tree, packed)

    with progress.task(title, len(jobs), "jobs") as bar:
        n_done = 0
        for stage in stages:
            for number, (result, packed) in parallel(partial(_do, plan), tasks(stage), n_jobs):
                step_done, job = stage[number]
                _unpack(packed, runner.home, _folders(runner, job))
                if step_done == "vectors":
                    progress.report(f"vectors for {job.candidate}, seed {job.seed}: done")
                if result is not None:
                    n_done += 1
                    bar.note(job.candidate.name)
                    bar.advance()
                    name = f"{job.candidate}, seed {job.seed}"
                    what = "trained" if step == "advance" else "done"
                    progress.report(f"{name}: {what}, {n_done} of {len(jobs)} jobs")
                    yield job, result


def _folders(runner: Runner, job: Job, step: Step | None = None) -> list[Path]:
    """Return the folders that a job reads or writes, or those that one of its steps writes."""
    folders: dict[Step, list[Path]] = {"run": [runner.folder(job)], "vectors": [], "tree": []}
    if job.candidate.kind == "tree":
        folders["tree"] = [runner.folder(job, "trees")]
    if job.candidate.source is not None:
        source, kinds = Job(job.candidate.source, job.seed), ("runs", "trees", "vectors")
        folders["vectors"] = [runner.folder(source, kind) for kind in kinds]
    if (file := job.candidate.vectors_file) is not None and runner.is_own(file):
        folders["vectors"].append(runner.home / file.parent)
    folders["advance"] = folders["score_all"] = folders["run"]
    return folders[step] if step else [*folders["run"], *folders["vectors"], *folders["tree"]]


def _do(plan: _Plan, task: _Task) -> tuple[JobResult | float | None, bytes]:
    """Do a task in a worker; return the result of a job or its score so far, and packed folders."""
    with ExitStack() as stack:
        home: Path = plan.fields["home"]
        if not plan.is_shared:
            home = Path(stack.enter_context(TemporaryDirectory(prefix="hstree-")))
            _unpack(task.packed, home)
        elif not (home / LOCK).exists():
            raise WorkerError(
                f"{socket.gethostname()} does not see the folder {home}; share it, or have jobs "
                "send their files (is_shared=False, or --no-shared-folder)"
            )
        splits = Splits(*map(open_corpus, plan.addresses))
        runner = Runner(splits, **plan.fields | {"home": home})
        stack.enter_context(runner.backend())
        candidate = Candidate.parse(
            task.candidate, None if task.tree is None else load(home / task.tree)
        )
        job = Job(candidate, task.seed)
        result: JobResult | float | None = None
        if task.step == "vectors":
            runner.vectors(Job(candidate.source or candidate, task.seed))
        elif task.step == "tree":
            runner.tree(job)
        else:
            result = getattr(runner, task.step)(job, seconds=plan.seconds)
        written = [] if plan.is_shared else _folders(runner, job, task.step)
        return result, _packed(home, written)


def _packed(home: Path, folders: list[Path]) -> bytes:
    """Return the files of folders; that which says that a folder is complete comes last."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for file in sorted(files, key=lambda file: (file.name in (RESULT, BUILD), file)):
            if file.name != LOCK:
                archive.write(file, file.relative_to(home))
    return buffer.getvalue() if files else b""


def _unpack(packed: bytes, home: Path, folders: list[Path] | None = None) -> None:
    """Write packed files in the place of what their folders below `home` hold.

    Raises WorkerError, and changes nothing, where a name leads elsewhere, or not below one of
    `folders`: those of a job, whose files another machine sent.
    """
    if not packed:
        return
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = [Path(name) for name in archive.namelist()]
        for name in names:
            above = (home / name).parents
            is_below = above[0] != home and any(folder in above for folder in folders or [home])
            if ".." in name.parts or not is_below:
                raise WorkerError(
                    f"a worker sent the file {str(name)!r}, which its job does not write; use "
                    "only workers that you trust"
                )
        for folder in {name.parent for name in names}:
            shutil.rmtree(home / folder, ignore_errors=True)
        archive.extractall(home)
