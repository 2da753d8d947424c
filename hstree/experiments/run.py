"""Runner: takes candidates, a text and a stopping rule, and does jobs, each in a folder and once.

A job is a candidate and a random state. Its folder has the trained model, the negative
log-likelihood of each validation and test token and, written last, ``result.json`` with a hash of
all that it depends on. A finished job is not done again, a stopped one goes on from its checkpoint,
and one whose folder is damaged in any way is done anew.
"""

from __future__ import annotations

import hashlib
import math
import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import methodcaller
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np

from hstree import progress
from hstree._files import json_hash, locked, open_regular, read_regular, remove, replacing
from hstree._options import RANDOM_STATE
from hstree._parallel import n_threads
from hstree._text import brief, one_line
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.provenance import collect_sources
from hstree.data.splits import Splits, overlap, read_before, untrained_unk
from hstree.data.text_score import TextScore
from hstree.data.vectors import WordVectors
from hstree.data.word_files import LABELS
from hstree.errors import FileFormatError, HstreeError, InputError, OptionError, explained
from hstree.experiments import results
from hstree.experiments.candidate import Candidate, Job, parse_candidates
from hstree.experiments.differences import described, differences
from hstree.experiments.results import Epochs, Halving, JobResult, Steps, Stop
from hstree.kernels import backend_name, numpy_for_short_runs
from hstree.layers.registry import LayerSpec
from hstree.models import Model, config_of, kind_of, load_model, new_model
from hstree.models.base import MOST_EPOCHS
from hstree.tree import Tree, load
from hstree.tree.files import ENDINGS

Held = Literal["valid", "test"]
Artifact = TypeVar("Artifact", Tree, WordVectors)

RESULT, BUILD, MODEL, CHECKPOINTS = "result.json", "build.json", "model", "checkpoints"
#: Folder in that of a job with the scores of all held-out tokens, where the job scored a sample.
ALL = "all-tokens"
#: Files of the negative log-likelihood of every token of a split.
NLL: dict[Held, str] = {"valid": "valid_nll.npy", "test": "test_nll.npy"}
#: Maximum number of seeds.
MAX_SEEDS = 100
#: Tokens that an n-gram model is fitted to, for each second of a bounded time: at 800,000 tokens a
#: second, a thirteenth of it.
NGRAM_TOKENS_PER_SECOND = 60_000
#: Greatest product of words and tokens that a candidate scores of a held-out split in a bounded
#: time.
_MOST_SCORES = 2_000_000_000
#: Shares of the seconds of a candidate's first round: those that the vectors of its tree may take,
#: those of them in which their source trains, and those that are left to its own training at least.
VECTORS_SHARE, _SOURCE_SHARE, LEAST_SHARE = 1 / 2, 1 / 3, 1 / 4


class NotFinishedError(Exception):
    """A job would make something, and the runner does not."""


class _Build(results.Figures, frozen=True):
    """What ``build.json`` has beside a tree or vectors: the key and hash of these, and seconds."""

    key: str
    sha256: str
    vectors: results.Amount | None
    seconds: results.Amount | None


@dataclass(frozen=True)
class Runner:
    """Trains candidates on a text and scores held-out tokens, each job once.

    The splits are over one vocabulary. `sample_size` is the maximum number of tokens of a held-out
    split that every job scores; None where jobs score all of them. `seeds` has the random state of
    the first model of each seed, `config` every option of the models but its random state, epochs
    and seconds, `content` the hashes and lines of `sample`, for the keys of what is made from it.
    A training has at most `max_epochs`. A candidate's first round takes `first_seconds`, where
    the time is bounded. `score_train` says whether to score the first `SAMPLE` training tokens,
    `makes` whether what is not finished may be made.
    """

    splits: Splits
    home: Path
    candidates: list[Candidate]
    stop: Stop
    seeds: range
    config: dict[str, Any]
    content: list[Any]
    max_epochs: int
    first_seconds: float | None
    score_train: bool = False
    makes: bool = True
    sample_size: int | None = None

    @cached_property
    def sample(self) -> Splits:
        """The splits that every job reads: the first lines of held-out ones, with a sample size."""
        if self.sample_size is None:
            return self.splits
        train, valid, test = self.splits
        n = self.sample_size
        return Splits(train, valid.first_tokens(n), test.first_tokens(n))

    @property
    def is_sampling(self) -> bool:
        """Whether `sample` leaves held-out tokens out."""
        return any(
            len(some) < len(part) for some, part in zip(self.sample, self.splits, strict=True)
        )

    @classmethod
    def of(
        cls,
        text: Any,
        candidates: Iterable[Candidate | str | Tree] | None,
        folder: str | os.PathLike[str],
        stop: Stop | None,
        seeds: int,
        options: Mapping[str, Any],
    ) -> Runner:
        """Return the runner of the arguments of `compare`, all checked; raises as that does."""
        for name in ("epochs", "seconds", "minutes"):
            if options.get(name) is not None:
                typed = "Halving(10)" if name == "minutes" else f"{name.capitalize()}(20)"
                raise OptionError(f"{name} is a rule of when to stop: stop=hstree.{typed}")
        try:  # NumPy's numbers become Python's
            given = Halving() if stop is None else stop
            fields = msgspec.to_builtins(given, enc_hook=methodcaller("item"))
            rule: Stop = msgspec.convert(fields, Stop)
        except (msgspec.MsgspecError, AttributeError) as error:
            rules = "hstree.Epochs(20), hstree.Seconds(240) or hstree.Halving(10)"
            raise OptionError(f"stop is {brief(stop)}; give {rules}: {one_line(error)}") from error
        if not 1 <= seeds <= MAX_SEEDS:
            raise OptionError(f"seeds is {brief(seeds)}; it must be 1 to {MAX_SEEDS}")
        config = config_of(options)
        first = config.pop("random_state")
        config.pop("epochs")
        parsed = parse_candidates(candidates, config)
        parts = Splits.of(text)
        trees = [candidate.single.tree for candidate in parsed if candidate.single.tree is not None]
        if trees and parts.train.has_automatic_words:
            parts = parts.over_labels(trees[0])
        words = parts.train.vocabulary
        splits = Splits(*(part.with_vocabulary(words) for part in parts))
        sample_size: int | None = None
        if rule.total_seconds is not None:
            if not any(option.name == "seconds" for option in kind_of(config).options):
                raise OptionError(f"the model {kind_of(config).name} has no budget of seconds")
            sample_size = min(results.SAMPLE, max(_MOST_SCORES // len(words), 5_000))
        for split in splits:
            overlap(split)
        if (untrained := untrained_unk(*splits)) is not None:
            warnings.warn(untrained, stacklevel=4)
        last = first + seeds * max(candidate.models for candidate in parsed) - 1
        RANDOM_STATE.checked(last)
        for candidate in parsed:
            candidate.check(words, config)
        runner = cls(
            splits=splits,
            home=Path(folder),
            candidates=parsed,
            stop=rule,
            seeds=range(first, first + seeds),
            config=config,
            content=[],
            max_epochs=rule.epochs if isinstance(rule, Epochs) else MOST_EPOCHS,
            first_seconds=None if isinstance(rule, Halving) else rule.total_seconds,
            sample_size=sample_size,
        )
        order = json_hash({"words": list(words.words)})
        content = [
            [part.sha256, list(part.lines), bool(part.source.get("lower")), order]
            for part in runner.sample
        ]
        return replace(runner, content=content)

    def with_kept(self, *, only: bool, force: bool) -> Runner:
        """Return a runner of the candidates that the folder holds, too, if they can share a table.

        Raises InputError when the folder holds a comparison of something else, unless `force`.
        """
        if not (self.home / results.JSON).exists():
            return self
        try:
            kept = results.load(self.home)
        except HstreeError as error:
            warnings.warn(f"{error}; its candidates are left out", stacklevel=3)
            return self
        if differing := differences(kept, self.home, self.splits, self.config, self.stop):
            if force:
                return self
            raise InputError(
                f"{self.home} holds a comparison that cannot share a table with this one: "
                f"{described(differing)}, choose another folder, or force its replacement"
            )
        named = {candidate.name: candidate for candidate in self.candidates}
        others: list[Candidate] = []
        for one in () if only else kept.candidates:
            output = shlex.split(one.name)[0 if one.models == 1 else 2]
            is_gone = output.endswith(ENDINGS) and not Path(output).exists()
            with suppress(HstreeError):  # what its candidate names is gone, and its tree, too
                if one.name in named:
                    others.append(named.pop(one.name))
                else:
                    tree = load(self.home / str(one.tree_file)) if is_gone else None
                    others.append(Candidate.parse(one.name, tree))
        # candidates that were finished before they were to train anew, which was interrupted
        for name in () if only else [name for name in kept.pending if name not in named]:
            with suppress(HstreeError):
                candidate = Candidate.parse(name)
                if all(
                    os.path.lexists(self.folder(job) / RESULT) for job in self.all_jobs(candidate)
                ):
                    others.append(candidate)
        return replace(self, candidates=[*others, *named.values()])

    def backend(self) -> AbstractContextManager[None]:
        """Return a context in which kernels do all jobs, or NumPy where the text is short."""
        n_tokens = len(self.splits.train) * self.max_epochs
        asked = bool(self.config.get("online"))  # which kernels alone can do
        return numpy_for_short_runs(n_tokens, self.stop.total_seconds, always=asked)

    def jobs_of(self, candidate: Candidate) -> list[list[Job]]:
        """Return the jobs of a candidate for each seed; an n-gram model has one for all."""
        n_seeds = len(self.seeds) if candidate.is_trained else 1
        states = range(self.seeds[0], self.seeds[0] + n_seeds * candidate.models)
        jobs = [Job(candidate.single, state) for state in states]
        return [jobs[i : i + candidate.models] for i in range(0, len(jobs), candidate.models)]

    def all_jobs(self, *candidates: Candidate) -> list[Job]:
        """Return the jobs of candidates for all seeds, each once."""
        return list(
            dict.fromkeys(
                job for candidate in candidates for jobs in self.jobs_of(candidate) for job in jobs
            )
        )

    def folder(self, job: Job, kind: str = "runs") -> Path:
        """Return the folder of a job's model, tree or vectors; layers over a tree share it."""
        candidate = job.candidate.tree_candidate if kind == "trees" else job.candidate
        folder = self.home / kind / candidate.folder
        return folder / f"seed-{job.seed}" if job.candidate.is_trained else folder

    # Trees, and the vectors that they are built from

    def vectors(self, job: Job) -> tuple[Path, float]:
        """Return the file of the vectors that a source learned, and the seconds that this took.

        Under a bounded time that is half of a candidate's first round at most: the source trains in
        a third of the round, and then predicts twice as many tokens as it would train on in the
        rest of the half. Predicting a token takes less than half of a training step's time.
        """
        if self.first_seconds is None:
            result = self.run(job)
            return self.vectors_of(self.folder(job) / MODEL, result, self.folder(job, "vectors"))
        folder = self.folder(job, "vectors")
        result = self.run(job, seconds=_SOURCE_SHARE * self.first_seconds, folder=folder)
        left = VECTORS_SHARE * self.first_seconds - (result.steps.total or 0.0)
        speed = max((epoch.tokens_per_second for epoch in result.epochs), default=0.0)
        return self.vectors_of(folder / MODEL, result, folder, int(2 * max(left, 0.0) * speed))

    def vectors_of(
        self, model: Path, result: JobResult, folder: Path, tokens: int | None = None
    ) -> tuple[Path, float]:
        """Return the file of a finished job's vectors, written if it is not there, and seconds.

        The vectors are means over the first training tokens, over all by default.
        """
        file = folder / "vectors.npy"
        with self._locked(folder):
            kept = self._kept_artifact(file, result.key, WordVectors.read)
            if kept is not None:
                _, build = kept
                return file, build.seconds or 0.0
            if not self.makes:
                raise NotFinishedError
            began = time.perf_counter()
            trained = load_model(model)
            train = trained.reencode(self.splits.train)
            some = train if tokens is None else train.first_tokens(tokens)
            vectors = trained.mean_predicted_vectors(some)
            if tokens is not None:
                vectors.counts = train.counts
            _make_room(folder, BUILD, file.name, f"{file.stem}{LABELS}")
            vectors.save(file)
            seconds = (result.steps.total or 0.0) + time.perf_counter() - began
            results.write_kept(folder / BUILD, _Build(result.key, vectors.sha256, 0.0, seconds))
            return file, seconds

    def is_own(self, file: Path) -> bool:
        """Return whether a file of vectors is one of the comparison's own.

        Candidates that are built from it, the rounds of a bootstrap, name it by its path below the
        comparison's folder.
        """
        return not file.is_absolute() and (self.home / file.parent / BUILD).exists()

    def tree(self, job: Job) -> tuple[Tree | None, Steps]:
        """Return a candidate's tree, built if it is not there, and the seconds that it took.

        Candidates that differ in their layers share the tree.
        """
        candidate, seed = job.candidate.tree_candidate, job.seed
        if candidate.kind != "tree":
            return None, Steps()
        folder = self.folder(job, "trees")
        file, reads, learned = folder / "tree.json", dict(candidate.options), 0.0
        is_timed = candidate.is_timed
        if candidate.source is not None:
            with progress.task(f"vectors for {candidate.name}", unit="candidates"):
                reads["vectors"], learned = self.vectors(Job(candidate.source, seed))
        elif candidate.vectors_file is not None and self.is_own(candidate.vectors_file):
            reads["vectors_file"] = self.home / candidate.vectors_file
            made = results.kept_struct(reads["vectors_file"].parent / BUILD, _Build)
            learned = (made and made.seconds) or 0.0
            is_timed = learned > 0 and candidate.options.get("from") is None
        files = {
            name: _input_hashes(Path(value))
            for name, value in reads.items()
            if isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
        }
        key = json_hash(
            {
                "hstree": __version__,
                "candidate": candidate.name,
                "read": collect_sources(candidate.provenance),
                "seed": seed,
                "text": self.content,
                "files": files,
            }
        )
        with self._locked(folder):
            kept = self._kept_artifact(file, key, load)
            if kept is not None:
                tree, build = kept
                return tree, Steps(vectors=build.vectors, tree=build.seconds)
            if not self.makes:
                raise NotFinishedError
            began = time.perf_counter()
            with progress.task(f"building {candidate.name}"):
                vectors = reads.get("vectors") or reads.get("vectors_file")
                built = candidate.build(self.splits.train, seed, vectors)
            seconds = time.perf_counter() - began
            steps = Steps(vectors=learned, tree=seconds)
            if not is_timed:
                steps = Steps(vectors=None, tree=None)
            _make_room(folder, BUILD, file.name)
            built.save(file)
            results.write_kept(folder / BUILD, _Build(key, built.sha256, steps.vectors, steps.tree))
            return built, steps

    # Models

    def advance(self, job: Job, seconds: float) -> float:
        """Train a job until some seconds from the text, and pause; return its validation score."""
        tree, steps = self.tree(job)
        spec = job.candidate.spec(self.splits.train.counted_vocabulary(), tree)
        home = self.folder(job)
        with self._locked(home):
            history = self._fitted(job, spec, steps, seconds, home).history_
        if history.interrupted:
            raise KeyboardInterrupt
        valid = [epoch.valid for epoch in history.epochs if epoch.valid is not None]
        return min(valid, default=math.inf)

    def run(
        self,
        job: Job,
        *,
        seconds: float | None = None,
        folder: Path | None = None,
        trained: Sequence[Callable[[Model[Any]], object]] = (),
    ) -> JobResult:
        """Do a job, or return the result of a finished one.

        It trains for some seconds from the text, where the time is bounded. `folder` replaces the
        job's own. `trained` are called with the trained model before it is scored; then a training
        that was interrupted is scored, too. Otherwise it raises KeyboardInterrupt, and the same
        call goes on from a checkpoint.
        """
        home = self.folder(job) if folder is None else folder
        if not job.candidate.is_trained:
            with self._locked(home):
                return self._fit_ngrams(job, home)
        tree, steps = self.tree(job)
        spec = job.candidate.spec(self.splits.train.counted_vocabulary(), tree)
        depends = {
            "hstree": __version__,
            **spec.config(),
            "text": self.content,
            "read": collect_sources(spec.provenance),
            "model": dict(self.config),
            "seed": job.seed,
            "epochs": self.max_epochs,
            "kernels": backend_name(),
        }
        if seconds is not None:  # how far a training comes depends on threads, too
            depends |= {"seconds": seconds, "threads": n_threads()}
        key = json_hash(depends)
        with self._locked(home):
            if (kept := self.kept(home, key, home / MODEL)) is not None:
                _remove_checkpoints(home)  # left by a kill at the end
                return kept
            model = self._fitted(job, spec, steps, seconds, home)
            history = model.history_
            if history.interrupted and not trained:
                raise KeyboardInterrupt
            for call in trained:
                call(model)
            # the result first, which is of the others
            _make_room(home, RESULT, ALL, MODEL, *NLL.values())
            model.save(home / MODEL)
            train: float | None = None
            if self.score_train:
                first = model.reencode(self.splits.train.first_tokens(results.SAMPLE))
                train = model.score(first).perplexity
                train = train if math.isfinite(train) else None
            result = self._score(
                home,
                model,
                self.sample,
                key=key,
                candidate=job.candidate.name,
                seed=job.seed,
                parameters=sum(array.size for array in model.parameters().values()),
                options=model.config(),
                steps=msgspec.structs.replace(
                    steps, preparation=history.preparation, training=history.seconds
                ),
                epochs=history.epochs,
                converged=history.converged,
                out_of_time=history.out_of_time,
                interrupted=history.interrupted,
                train=train,
            )
            if not history.interrupted:
                _remove_checkpoints(home)
            return result

    def score_all(self, job: Job, *, seconds: float | None = None) -> JobResult:
        """Score a finished job on all held-out tokens, or return the result of having done so.

        The scores are kept beside those of the sample, which remain. `seconds` are those that the
        job has trained for.
        """
        result = self.run(job, seconds=seconds)
        home = self.folder(job)
        model, folder = home / MODEL, home / ALL
        held_out = [list(part.lines) for part in (self.splits.valid, self.splits.test)]
        key = json_hash({"job": result.key, "held out": held_out})
        of_sample = {"files", "perplexity", "log_normaliser", "seen", "scored", "scoring_seconds"}
        names = set(result.__struct_fields__) - of_sample
        figures = {name: getattr(result, name) for name in names} | {"key": key}
        with self._locked(home):
            if (kept := self.kept(folder, key, model)) is not None:
                return kept
            if not self.makes:
                raise NotFinishedError
            _make_room(folder, RESULT, *NLL.values())
            return self._score(folder, load_model(model), self.splits, **figures)

    def _score(self, folder: Path, model: Model[Any], splits: Splits, **figures: Any) -> JobResult:
        """Score held-out splits by a model, and keep the scores with the figures of its job."""
        began = time.perf_counter()
        splits = Splits(*(model.reencode(part) for part in splits))
        scores: dict[Held, TextScore] = {
            "valid": model.score(splits.valid, details=True),
            "test": model.score(splits.test, details=True),
        }
        seconds = time.perf_counter() - began
        made_of = "layer" if model.spec.tree is None else "tree"
        read = {made_of: model.spec.provenance, "training": model.texts}
        return self._keep(folder, splits, scores, read, scoring_seconds=seconds, **figures)

    def _fitted(
        self,
        job: Job,
        spec: LayerSpec,
        steps: Steps,
        seconds: float | None,
        home: Path,
    ) -> Model[Any]:
        """Return the trained model of a job whose tree took some steps.

        A candidate whose vectors and tree took the time of its first round trains for a share of
        it. Where either is from a file, as in a bootstrap, the seconds are those of the training.
        """
        if not self.makes:
            raise NotFinishedError
        limit: dict[str, Any] = {"epochs": self.max_epochs}
        if seconds is not None:
            before = (steps.vectors or 0.0) + (steps.tree or 0.0)
            left = seconds - before if job.candidate.is_timed else seconds
            limit["seconds"] = max(left, LEAST_SHARE * (self.first_seconds or seconds))
        model = new_model(spec, **self.config, random_state=job.seed, **limit)
        model.fit(
            model.reencode(self.splits.train),
            model.reencode(self.sample.valid),
            checkpoints=home / CHECKPOINTS,
            pauses=seconds is not None,
        )
        return model

    # N-gram models

    def _fit_ngrams(self, job: Job, home: Path) -> JobResult:
        """Fit and score a Kneser-Ney model, on the first tokens where the time is bounded."""
        # Imported here, so that a comparison without n-gram models does not wait for it.
        from hstree.ngrams.kneser_ney import KneserNey

        train, splits = self.splits.train, self.splits
        if (budget := self.stop.total_seconds) is not None:
            most = int(budget * NGRAM_TOKENS_PER_SECOND)
            train = train.first_tokens(most)
            # scoring a token takes less time than fitting it
            n_held_out = len(self.splits.valid) + len(self.splits.test)
            splits = self.splits if n_held_out <= most else self.sample
        options = {**job.candidate.options, "tokens": len(train)}
        held_out = [list(part.lines) for part in (splits.valid, splits.test)]
        depends = {
            "hstree": __version__,
            "text": self.content,
            "held out": held_out,
            "read": collect_sources(train.record),
            "kneser-ney": options,
        }
        key = json_hash(depends)
        if (kept := self.kept(home, key)) is not None:
            return kept
        if not self.makes:
            raise NotFinishedError
        began = time.perf_counter()
        with progress.task(f"fitting {job.candidate.name}"):
            model = KneserNey(order=options["order"], discount=options["discount"]).fit(train)
        steps = Steps(training=time.perf_counter() - began)
        scores: dict[Held, TextScore] = {}
        for split in NLL:
            part: Corpus = getattr(splits, split)
            is_oov = part.with_vocabulary(train.vocabulary).ids(slice(None)) < 0
            scores[split] = TextScore.of(np.asarray(model.nll(part), np.float64), is_oov)
        _make_room(home, RESULT, *NLL.values())
        return self._keep(
            home,
            splits,
            scores,
            {},
            key=key,
            candidate=job.candidate.name,
            seed=None,
            parameters=int(sum(model.n_grams_)),
            options=options,
            steps=steps,
        )

    # What is kept

    def _locked(self, folder: Path) -> AbstractContextManager[None]:
        """Keep other processes out of a folder, waiting for them, where this runner writes.

        The locks of two folders are never held at once, so that nobody waits in a circle.
        """
        return locked(folder, wait=True) if self.makes else nullcontext()

    def kept(self, folder: Path, key: str, model: Path | None = None) -> JobResult | None:
        """Return the result of a finished job in a folder; None where there is none of this key.

        `model` is the folder of its trained model; None for an n-gram model, which has none.
        A folder that is damaged in any way counts as none, with a warning where this runner makes
        it anew.
        """
        if not os.path.lexists(folder / RESULT):
            return None
        try:
            result = results.read_kept(folder / RESULT, JobResult)
            if result.interrupted or result.key != key:
                return None
            if model is not None:
                load_model(model)
            for name in NLL.values():
                digest = hashlib.sha256(read_regular(folder / name)).hexdigest()
                if digest != result.files.get(name):
                    raise FileFormatError(f"{folder / name} is not the file that was written")
        except (HstreeError, OSError) as error:
            self._warn_of_damage(error, "the job is done anew")
            return None
        return result

    def _kept_artifact(
        self, file: Path, key: str, read: Callable[[Path], Artifact]
    ) -> tuple[Artifact, _Build] | None:
        """Return the tree or the vectors of a file, and its ``build.json``.

        None where there are none of this key. Damaged ones count as none, with a warning where this
        runner makes them anew.
        """
        if not os.path.lexists(file.parent / BUILD):
            return None
        try:
            build = results.read_kept(file.parent / BUILD, _Build)
            if build.key != key:
                return None
            artifact = read(file)
            if artifact.sha256 != build.sha256:
                raise FileFormatError(
                    f"{file} is damaged: it is not the one that {BUILD} was written for"
                )
        except (HstreeError, OSError) as error:
            self._warn_of_damage(error, "it is made anew")
            return None
        return artifact, build

    def _warn_of_damage(self, error: Exception, consequence: str) -> None:
        """Warn of a damaged file where this runner replaces it."""
        if self.makes:
            warnings.warn(f"{one_line(error).rstrip('; ')}; {consequence}", stacklevel=4)

    def _keep(
        self,
        folder: Path,
        splits: Splits,
        scores: Mapping[Held, TextScore],
        provenance: Mapping[str, Any],
        **figures: Any,
    ) -> JobResult:
        """Write the nll of every held-out token and the result of a job, and return this.

        `provenance` are records of what the model was made from; see `read_before`.
        """
        files = {}
        for split, score in scores.items():
            path = folder / NLL[split]
            with replacing(path) as file:
                np.save(file, np.asarray(score.token_nll), allow_pickle=False)
            files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        test = scores["test"]
        of_splits: dict[results.Scored, float] = {
            "valid": scores["valid"].perplexity,
            "test": test.perplexity,
            "test_without_oov": test.perplexity_without_oov,
        }
        normaliser = test.log_normaliser
        if normaliser is not None:
            names = results.NormaliserFigures.__struct_fields__
            of_layer = {name: getattr(normaliser, name) for name in names}
            finite = {name: z if math.isfinite(z) else None for name, z in of_layer.items()}
            figures["log_normaliser"] = results.NormaliserFigures(**finite)
        result = JobResult(
            files=files,
            perplexity={name: p if math.isfinite(p) else None for name, p in of_splits.items()},
            scored=results.TokenCounts(len(splits.valid), len(splits.test)),
            seen=read_before(
                splits.test,
                train=splits.train.source,
                valid=splits.valid.source,
                vocabulary=splits.train.record.get("vocabulary"),
                **provenance,
            ),
            **figures,
        )
        results.write_kept(folder / RESULT, result)
        return result


def _input_hashes(file: Path) -> list[str]:
    """Return the hashes of an input file and of the labels beside it; of a folder, of its files.

    Raises InputError when one of them cannot be read.
    """
    files = [file]
    with explained(f"read {file}"):
        if file.is_dir():
            files = sorted(path for path in file.iterdir() if path.is_file())
        labels = file.parent / f"{file.stem}{LABELS}"
        if labels.exists():
            files.append(labels)
        hashes = []
        for path in files:
            with open_regular(path) as content:
                hashes.append(hashlib.file_digest(content, "sha256").hexdigest())
    return hashes


def _remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of a job's folder, if that can be."""
    with suppress(OSError):
        remove(folder / CHECKPOINTS)


def _make_room(folder: Path, *names: str) -> None:
    """Make a folder and remove what is in the place of files in it, in the order of their names.

    Raises FileFormatError where that fails.
    """
    with explained(f"write in {folder}", FileFormatError, "remove it, or choose another folder"):
        if not folder.is_dir():
            remove(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            remove(folder / name)
