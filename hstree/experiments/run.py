"""Runner: does jobs, each in a folder of its own and each once.

A job is a row and a random state. Its folder has the trained model, the negative log-likelihood of
each validation and test token and, written last, ``result.json`` with a hash of all that it depends
on. A finished job is not done again, a stopped one goes on from its checkpoint, and one whose
folder is damaged in any way is done anew.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import safe_open

from hstree import progress
from hstree._compiled import kernels, n_threads
from hstree._files import hash_of, make_folder, read_regular, replacing
from hstree._typing import Float64
from hstree._version import __version__
from hstree.data.provenance import texts
from hstree.data.splits import Splits, first_tokens, read_before, seen
from hstree.data.text_score import TextScore, perplexity
from hstree.data.vector_files import read_npy
from hstree.data.vectors import WordVectors
from hstree.errors import FileFormatError, HstreeError, InputError
from hstree.experiments.results import (
    SAMPLE,
    Amount,
    Figures,
    JobResult,
    NormaliserFigures,
    Steps,
    Stop,
    TreeFigures,
    finite,
    read_struct,
    write_struct,
)
from hstree.experiments.row import Job
from hstree.layers.registry import LayerSpec
from hstree.models import Model, new_model
from hstree.models import load as load_model
from hstree.models.files import content_key
from hstree.tree import Tree, load

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RESULT, BUILD, MODEL, CHECKPOINTS = "result.json", "build.json", "model", "checkpoints"
#: File that the process at work in a folder locks.
LOCK = ".lock"
#: Files of the negative log-likelihood of every token of a split.
NLL: dict[str, str] = {"valid": "valid_nll.npy", "test": "test_nll.npy"}
#: Tokens that an n-gram model is fitted to, for each second of a bounded time.
NGRAM_TOKENS_PER_SECOND = 20_000
#: Seconds of training that are left to a row whose vectors and tree took all of its time.
_LEAST = 0.01

Held = Literal["valid", "test"]


class _Build(Figures, frozen=True):
    """What ``build.json`` has beside a tree: the hashes that it is of, and seconds."""

    key: str
    tree: str
    vectors: Amount | None
    seconds: Amount | None


@dataclass(frozen=True)
class Runner:
    """Trains models and scores held-out tokens, each once.

    Attributes
    ----------
    splits : Splits
        Over one vocabulary; validation and test are scored whole.
    home : Path
        Folder of the comparison.
    config : mapping
        Options of every model but its random state, epochs and seconds.
    stop : Epochs, Seconds or Halving
    first_seconds : float or None
        Seconds of a row's first round, where the time is bounded.
    score_train : bool
        Whether to score the first `SAMPLE` training tokens, too.
    """

    splits: Splits
    home: Path
    config: Mapping[str, Any]
    stop: Stop
    first_seconds: float | None = None
    score_train: bool = False

    def folder(self, job: Job, kind: str = "runs") -> Path:
        """Return the folder of a job's model, tree or vectors."""
        folder = self.home / kind / job.row.folder
        return folder if job.row.kind == "ngram" else folder / f"seed-{job.seed}"

    def relative(self, path: Path) -> str:
        """Return a path in the comparison's folder relative to it."""
        return path.relative_to(self.home).as_posix()

    def run(self, job: Job, **limit: Any) -> JobResult:
        """Do a job, or return the result of a finished one.

        Parameters
        ----------
        job : Job
        **limit
            ``seconds`` from the text, where the time is bounded; ``warm_start``, the folder of a
            job whose model's word vectors the training begins with; ``trained``, called with the
            trained model before it is scored: then an interrupted training is scored, too.

        Raises
        ------
        FileFormatError
            When the folder cannot be written.
        KeyboardInterrupt
            When the training was interrupted. The same call goes on from a checkpoint.
        """
        return job.row.run(self, job, **limit)

    # Trees, and the vectors that they are built from

    def vectors(self, job: Job) -> tuple[Path, float]:
        """Return the file of the vectors that a source learned, and the seconds that this took.

        Under a bounded time, the source trains for half of a row's first round.
        """
        folder, limit = self.folder(job, "vectors"), {}
        if self.first_seconds is not None:
            limit = {"seconds": self.first_seconds / 2, "folder": folder}
        result = self.run(job, **limit)
        model = (folder if limit else self.folder(job)) / MODEL
        return self.vectors_of(model, result, folder)

    def vectors_of(self, model: Path, result: JobResult, folder: Path) -> tuple[Path, float]:
        """Return the file of a finished job's vectors, written if it is not there, and seconds."""
        file, kept = folder / "vectors.npy", _read(folder / BUILD, _Build)
        if kept is None or kept.key != result.key or not _is_sound(file):
            began = time.perf_counter()
            trained = load_model(model)
            make_folder(folder)
            trained.mean_predicted_vectors(trained.reencode(self.splits.train)).save(file)
            seconds = (result.steps.total or 0.0) + time.perf_counter() - began
            kept = _Build(key=result.key, tree="", vectors=0.0, seconds=seconds)
            write_struct(folder / BUILD, kept)
        return file, kept.seconds or 0.0

    def tree(self, job: Job) -> tuple[Tree | None, Steps]:
        """Return a row's tree, built if it is not there, and the seconds of vectors and building.

        Rows that differ in their layers share the tree.
        """
        row = job.row
        if row.kind != "tree":
            return None, Steps()
        row = row.tree_row
        folder = self.folder(Job(row, job.seed), "trees")
        file, vectors, learned = folder / "tree.json", None, 0.0
        if row.source is not None:
            vectors, learned = self.vectors(Job(row.source, job.seed))
        key = hash_of(
            {
                "hstree": __version__,
                "row": str(row),
                "read": texts(row.made_from),
                "seed": job.seed,
                "text": content_of(self.splits),
                "files": {
                    name: _file_hash(value)
                    for name, value in {**row.options, "vectors": vectors}.items()
                    if isinstance(value, Path)
                },
            }
        )
        kept = _read(folder / BUILD, _Build)
        if kept is not None and kept.key == key:
            try:
                tree = load(file)
                if tree.sha256 == kept.tree:
                    return tree, Steps(vectors=kept.vectors, tree=kept.seconds)
            except HstreeError as error:
                warnings.warn(f"{error}; the tree is built anew", stacklevel=2)
        began = time.perf_counter()
        with progress.task(f"building {row}"):
            built = row.build(self.splits.train, job.seed, vectors)
        seconds = time.perf_counter() - began
        if built is None:
            return None, Steps()
        steps = (
            Steps(vectors=learned, tree=seconds) if row.is_timed else Steps(vectors=None, tree=None)
        )
        make_folder(folder)
        built.save(file)
        build = _Build(key=key, tree=built.sha256, vectors=steps.vectors, seconds=steps.tree)
        write_struct(folder / BUILD, build)
        return built, steps

    def output(self, job: Job) -> tuple[LayerSpec, Steps]:
        """Return the output layer of a job, over its tree if it has one, and seconds."""
        tree, steps = self.tree(job)
        return job.row.spec(self.splits.train.counted_vocabulary(), tree), steps

    # Models

    def advance(self, job: Job, seconds: float) -> float:
        """Train a job until some seconds from the text, and pause; return its validation score."""
        history = self._fitted(job, seconds, self.folder(job), None)[0].history_
        if history.interrupted:
            raise KeyboardInterrupt
        valid = [epoch.valid for epoch in history.epochs if epoch.valid is not None]
        return min(valid, default=math.inf)

    def train(
        self,
        job: Job,
        *,
        seconds: float | None = None,
        warm_start: Path | None = None,
        folder: Path | None = None,
        trained: Callable[[Model[Any]], object] | None = None,
    ) -> JobResult:
        """Train and score the model of a job; see `run`."""
        home = self.folder(job) if folder is None else folder
        spec, _ = self.output(job)
        key = self._key(job, spec, seconds, warm_start)
        if (kept := self.kept(home, key)) is not None:
            shutil.rmtree(home / CHECKPOINTS, ignore_errors=True)  # left by a kill at the end
            return kept
        model, steps = self._fitted(job, seconds, home, warm_start)
        if model.history_.interrupted and trained is None:
            raise KeyboardInterrupt
        if trained is not None:
            trained(model)
        make_folder(home)
        (home / RESULT).unlink(missing_ok=True)  # from here on it would be of other files
        model.save(home / MODEL)
        splits = Splits(*(model.reencode(part) for part in self.splits))
        scores = {
            split: model.score(part, details=True)
            for split, part in (("valid", splits.valid), ("test", splits.test))
        }
        sample = model.score(first_tokens(splits.train, SAMPLE)) if self.score_train else None
        history, test = model.history_, scores["test"]
        result = JobResult(
            key=key,
            row=str(job.row),
            seed=job.seed,
            perplexity={
                "valid": finite(scores["valid"].perplexity),
                "test": finite(test.perplexity),
                "test_without_oov": finite(test.perplexity_without_oov),
            },
            parameters=parameters_of(home / MODEL),
            options=model.config(),
            steps=steps,
            epochs=history.epochs,
            converged=history.converged,
            out_of_time=history.out_of_time,
            interrupted=history.interrupted,
            tree=None if model.tree is None else TreeFigures.of(model.tree.stats()),
            log_normaliser=NormaliserFigures.of(test.log_normaliser),
            train=None if sample is None else finite(sample.perplexity),
            seen=seen_by(splits, spec) or read_before("training", model.texts, splits.test),
            kernels=history.kernels or kernels(),
        )
        return self._keep(home, result, scores, model)

    def _fitted(
        self, job: Job, seconds: float | None, home: Path, warm_start: Path | None
    ) -> tuple[Model[Any], Steps]:
        """Return a trained model, and the seconds of each step."""
        spec, steps = self.output(job)
        limit: dict[str, Any] = {"epochs": self.stop.max_epochs}
        if seconds is not None:
            left = seconds - (steps.vectors or 0.0) - (steps.tree or 0.0)
            limit["seconds"] = max(left, _LEAST)
        model = new_model(spec, **self.config, random_state=job.seed, **limit)
        train, valid = model.reencode(self.splits.train), model.reencode(self.splits.valid)
        model.fit(
            train,
            valid,
            warm_start=None if warm_start is None else load_model(warm_start / MODEL),
            checkpoints=home / CHECKPOINTS,
            pauses=seconds is not None,
        )
        history = model.history_
        return model, Steps(
            vectors=steps.vectors,
            tree=steps.tree,
            preparation=history.preparation,
            training=history.seconds,
        )

    def _key(
        self, job: Job, spec: LayerSpec, seconds: float | None, warm_start: Path | None
    ) -> str:
        """Return a hash of all that a job depends on.

        How far a training comes in a bounded time depends on kernels and threads, too.
        """
        depends = {
            "hstree": __version__,
            **spec.key(),
            "text": content_of(self.splits),
            "read": texts(spec.made_from),
            "model": dict(self.config),
            "seed": job.seed,
            "epochs": self.stop.max_epochs,
        }
        if seconds is not None:
            depends |= {"seconds": seconds, "kernels": kernels(), "threads": n_threads()}
        if warm_start is not None:
            depends["warm start"] = content_key(warm_start / MODEL)
        return hash_of(depends)

    # N-gram models

    def fit_ngrams(self, job: Job) -> JobResult:
        """Fit and score a Kneser-Ney model, on the first tokens where the time is bounded."""
        # Imported here, so that a comparison without n-gram models does not wait for it.
        from hstree.ngrams.kneser_ney import KneserNey

        home, train = self.folder(job), self.splits.train
        if (budget := self.stop.total_seconds) is not None:
            train = first_tokens(train, int(budget * NGRAM_TOKENS_PER_SECOND))
        options = {**job.row.options, "tokens": len(train)}
        key = hash_of(
            {"hstree": __version__, "text": content_of(self.splits), "kneser-ney": options}
        )
        if (kept := self.kept(home, key)) is not None:
            return kept
        began = time.perf_counter()
        with progress.task(f"fitting {job.row}"):
            model = KneserNey(order=options["order"], discount=options["discount"]).fit(train)
        steps = Steps(training=time.perf_counter() - began)
        scores = {}
        for split, part in (("valid", self.splits.valid), ("test", self.splits.test)):
            nll = np.asarray(model.nll(part), np.float64)
            is_oov = part.with_vocabulary(train.vocabulary).ids(slice(None)) < 0
            of_oov = float(nll[is_oov].sum())
            scores[split] = TextScore(
                float(nll.sum()), len(nll), of_oov, int(is_oov.sum()), of_tokens=nll
            )
        result = JobResult(
            key=key,
            row=str(job.row),
            seed=None,
            perplexity={
                "valid": finite(scores["valid"].perplexity),
                "test": finite(scores["test"].perplexity),
                "test_without_oov": finite(scores["test"].perplexity_without_oov),
            },
            parameters=int(sum(model.n_grams_)),
            options=options,
            steps=steps,
            seen=seen(self.splits),
        )
        make_folder(home)
        return self._keep(home, result, scores, None)

    # What is kept

    def kept(self, folder: Path, key: str | None = None) -> JobResult | None:
        """Return the result of a finished job; None where there is none, or none of this key.

        A folder that is damaged in any way counts as none, with a warning.
        """
        if not (folder / RESULT).exists():
            return None
        try:
            result = read_struct(folder / RESULT, JobResult, "")
            if result.interrupted or (key is not None and result.key != key):
                return None
            if result.seed is not None:
                load_model(folder / MODEL)
            for split in NLL:
                _kept_nll(folder, split, result)
        except (HstreeError, OSError, KeyError) as error:
            warnings.warn(f"{error}".rstrip("; ") + "; the job is done anew", stacklevel=2)
            return None
        return result

    def _keep(
        self,
        folder: Path,
        result: JobResult,
        scores: Mapping[str, TextScore],
        model: Model[Any] | None,
    ) -> JobResult:
        """Write the nll of every held-out token and the result of a job, and return this."""
        (folder / RESULT).unlink(missing_ok=True)
        for split, score in scores.items():
            if score.of_tokens is not None:
                with replacing(folder / NLL[split]) as file:
                    np.save(file, score.of_tokens, allow_pickle=False)
        write_struct(folder / RESULT, result)
        if model is not None:
            model.remove_checkpoints()
        return result

    def nll(self, job: Job, split: Held) -> Float64:
        """Return the nll in nats of every token of a split under a finished job, (T,)."""
        return _kept_nll(
            self.folder(job), split, read_struct(self.folder(job) / RESULT, JobResult, "")
        )


def _kept_nll(folder: Path, split: str, result: JobResult) -> Float64:
    """Read the nll of every token; FileFormatError when it is not of the job's perplexity."""
    file = folder / NLL[split]
    try:
        nll = read_npy(os.fspath(file))
    except InputError as error:
        raise FileFormatError(str(error)) from error
    reported = result.perplexity["valid" if split == "valid" else "test"]
    if nll.dtype != np.float64 or nll.ndim != 1:
        raise FileFormatError(f"{file} is damaged")
    own = perplexity(float(nll.sum()), len(nll))
    if reported is not None and not math.isclose(own, reported, rel_tol=1e-6):
        raise FileFormatError(f"{file} is damaged: it gives a perplexity of {own}, not {reported}")
    return nll


def _read(file: Path, kind: type[_Build]) -> _Build | None:
    """Return what a file holds; None where it is missing or damaged."""
    try:
        return read_struct(file, kind, "")
    except FileFormatError:
        return None


def _is_sound(vectors: Path) -> bool:
    """Return whether a file of vectors and that of their labels can be read."""
    try:
        return len(WordVectors.read(str(vectors)).labels) > 0
    except HstreeError:
        return False


def seen_by(splits: Splits, spec: LayerSpec) -> str | None:
    """Name test lines that splits, vocabulary or output layer have read, in one sentence."""
    return seen(splits, spec.made_from, reader="layer" if spec.tree is None else "tree")


def content_of(splits: Splits) -> list[Any]:
    """Return hashes and lines of texts, for the key of what is made from them."""
    return [[part.sha256, list(part.lines), part.vocabulary.sha256] for part in splits]


def parameters_of(model: Path) -> int:
    """Return the number of trained parameters of a saved model, without reading them.

    Tensors of integers are tables of the training text, which nothing trains.
    """
    with safe_open(model / "weights.safetensors", "numpy") as tensors:
        slices = [tensors.get_slice(name) for name in tensors.keys()]  # noqa: SIM118
        return sum(math.prod(t.get_shape()) for t in slices if t.get_dtype().startswith("F"))


def _file_hash(path: Path) -> str:
    return hashlib.sha256(read_regular(path)).hexdigest()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder while the body runs; the folder is made if missing.

    The lock ends with the process. On systems without `flock` nothing is locked. Raises InputError
    when another process holds the lock, FileFormatError when the folder cannot be written.
    """
    make_folder(folder)
    try:
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise FileFormatError(f"cannot write in {folder}: {error.strerror}") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(
                    f"another process is at work in {folder}; "
                    "wait until it has ended, or choose another folder"
                ) from error
        yield
