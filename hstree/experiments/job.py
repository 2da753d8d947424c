"""One job: vectors, a tree, a trained model and scores, each loaded from the store if available.

A finished job is not repeated, an interrupted job continues from its checkpoint, and a job with
damaged files runs again.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hstree import progress
from hstree._arrays import Float64
from hstree._text import named_error, one_line
from hstree.builders import build
from hstree.data.splits import Splits, read_before
from hstree.data.text_score import perplexity
from hstree.data.vectors import WordVectors
from hstree.errors import HstreeError, OptionError, TrainingError
from hstree.experiments.candidate import Job
from hstree.experiments.results import (
    SCORED,
    JobResult,
    NormaliserRecord,
    Scored,
    Timings,
    TokenCounts,
)
from hstree.experiments.setting import SAMPLE, Budget, Setting
from hstree.experiments.store import (
    ALL_TOKENS,
    BUILD,
    CHECKPOINTS,
    RESULT,
    VECTORS,
    ArtifactKind,
    BuildRecord,
    HeldOut,
    NotFinishedError,
    Store,
    all_tokens_key,
    job_key,
    ngram_key,
    read_record,
    tree_key,
)
from hstree.layers.registry import LayerSpec
from hstree.models import BaseModel, kind_of, load_model, new_model
from hstree.tree import Tree, load

#: Fractions of the seconds in the first round of a candidate: maximum for the vectors of its tree,
#: training of the source of these vectors, and minimum for training the candidate itself.
VECTORS_FRACTION = 1 / 2
SOURCE_FRACTION = 1 / 3
#: Fraction of these seconds for word vectors that another model learns.
WORD_VECTORS_FRACTION = 1 / 16
MIN_TRAINING_FRACTION = 1 / 4
#: Errors that end one candidate (tree, training, scoring or speeds); others end the comparison.
FAILURES = (TrainingError, OptionError, MemoryError)
#: Validation perplexity of a failed training, which is ranked last; JSON has no infinity.
FAILED = 1e300
#: Maximum number of tokens for fitting an n-gram model, per second of a time limit. It fits 800,000
#: tokens per second, so this takes a thirteenth of the time.
NGRAM_TOKENS_PER_SECOND = 60_000


def find_result(
    job: Job, setting: Setting, store: Store, budget: Budget | None = None
) -> JobResult | None:
    """Return the result of a finished job, or None, without training or writing anything."""
    try:
        return run_job(job, setting, Store(store.home, is_read_only=True), budget)
    except NotFinishedError:
        return None


def run_job(
    job: Job,
    setting: Setting,
    store: Store,
    budget: Budget | None = None,
    *,
    kind: ArtifactKind = "runs",
    on_trained: Callable[[BaseModel], object] | None = None,
) -> JobResult:
    """Train one model and score it, or load it; return its result.

    Parameters
    ----------
    job, setting, store
    budget : Budget, optional
        Approximate total seconds of vectors, tree and training; None without a time limit.
    kind : {"runs", "vectors"}
        Whether the model is that of the job, or the source of vectors, which has another folder.
    on_trained : callable, optional
        Called with the trained model before it is scored. If given, the first `SAMPLE` training
        tokens are scored too, an interrupted training is scored, and a failed training raises its
        error. Otherwise an interrupted training raises KeyboardInterrupt; the same call continues
        it.
    """
    home = store.folder(job, kind)
    if not job.candidate.is_trained:
        with store.lock_folder(home):
            return _run_ngram_job(job, setting, store, home)

    # Layers share a tree, and its seconds count in the total time of each layer
    try:
        tree, timings = build_tree(job, setting, store, budget)
    except FAILURES as error:
        store.require_writable()
        if on_trained is not None:
            raise
        # Without a tree, there is no key: the same comparison tries again
        with store.lock_folder(home):
            return _save_failure(job, setting, store, home, "", Timings(), error)
    spec = job.candidate.spec(setting.splits.train.counted_vocabulary(), tree)
    key = job_key(setting, spec, job.seed, None if budget is None else budget.seconds)
    with store.lock_folder(home):
        kept = store.load_result(home, key, store.model_folder(job, kind))
        if kept is not None:
            return kept

        try:
            model = _train(job, setting, store, spec, timings, budget, home)
            # An interrupted training can be continued, unless the caller needs its results
            history = model.history_
            if history.interrupted and on_trained is None:
                raise KeyboardInterrupt
            if on_trained is not None:
                on_trained(model)

            # The model is saved before it is scored, and the record is written last
            store.save_model(home, model)
            training_perplexity: float | None = None
            if on_trained is not None:
                first = model.reencode(setting.splits.train.first_tokens(SAMPLE))
                training_perplexity = _finite(model.score(first).perplexity)
            fields, nlls = _score(model, setting.sample)
        except FAILURES as error:
            if on_trained is not None:
                raise
            return _save_failure(job, setting, store, home, key, timings, error)
        timings = msgspec.structs.replace(
            timings, preparation=history.preparation, training=history.seconds
        )
        result = JobResult(
            key=key,
            files={},
            candidate=job.candidate.name,
            seed=job.seed,
            parameters=sum(array.size for array in model.parameters().values()),
            options=model.config(),
            timings=timings,
            epochs=history.epochs,
            converged=history.converged,
            out_of_time=history.out_of_time,
            interrupted=history.interrupted,
            train=training_perplexity,
            **fields,
        )
        return store.save_result(home, result, nlls)


def continue_job(job: Job, setting: Setting, store: Store, budget: Budget | None = None) -> float:
    """Train until a budget is used and keep a checkpoint; return the best validation perplexity.

    It is `FAILED` if the tree cannot be built, which `run_job` reports, or if training fails, which
    is saved as the result of the job.
    """
    try:
        tree, timings = build_tree(job, setting, store, budget)
    except FAILURES:
        return FAILED
    spec = job.candidate.spec(setting.splits.train.counted_vocabulary(), tree)
    home = store.folder(job)
    with store.lock_folder(home):
        try:
            history = _train(job, setting, store, spec, timings, budget, home).history_
        except FAILURES as error:
            key = job_key(setting, spec, job.seed, None if budget is None else budget.seconds)
            _save_failure(job, setting, store, home, key, timings, error)
            return FAILED
    if history.interrupted:
        raise KeyboardInterrupt
    perplexities = [epoch.valid for epoch in history.epochs if epoch.valid is not None]
    return min(perplexities, default=FAILED)


def score_all_tokens(
    job: Job, setting: Setting, store: Store, budget: Budget | None = None
) -> JobResult:
    """Score a finished job on all held-out tokens, or load these scores; return its result.

    The scores are kept beside those of the sample, which remain.
    """
    home = store.folder(job)
    model_folder = store.model_folder(job)
    with store.lock_folder(home):
        result = read_record(home / RESULT, JobResult)
        folder = home / ALL_TOKENS
        key = all_tokens_key(result, setting.splits)
        if (kept := store.load_result(folder, key, model_folder)) is not None:
            return kept
        # Only the fields that depend on the scores change
        try:
            fields, nlls = _score(load_model(model_folder), setting.splits)
        except FAILURES as error:
            return _save_failure(job, setting, store, folder, key, result.timings, error)
        result = msgspec.structs.replace(result, key=key, **fields)
        return store.save_result(folder, result, nlls)


# Vectors and trees


def learn_vectors(
    job: Job, setting: Setting, store: Store, budget: Budget | None = None
) -> tuple[Path, float]:
    """Return the file of the vectors that a source has learned, and the seconds.

    With a budget, they take at most `VECTORS_FRACTION` of the first round: the source trains for
    `SOURCE_FRACTION` of the round. In the remaining time, it predicts twice as many tokens as it
    could train on, because predicting a token takes less than half the time of training.
    """
    folder = store.folder(job, "vectors")
    # Some models, such as those in PyTorch, use the word vectors of another model
    vector_options = kind_of(setting.options).model.vector_options
    if vector_options is not None:
        return learn_word_vectors(job, setting, store, budget, vector_options)
    # Without a budget, train the source as a candidate, and average over all tokens
    if budget is None:
        result = run_job(job, setting, store)
        return mean_vectors(store.model_folder(job), result, setting, store, folder)
    # With a budget, train for a shorter time, and average over the tokens that time allows
    seconds = SOURCE_FRACTION * budget.first_round
    source_budget = Budget(seconds, budget.first_round)
    result = run_job(job, setting, store, source_budget, kind="vectors")
    left = max(VECTORS_FRACTION * budget.first_round - (result.timings.total or 0.0), 0.0)
    speed = max((epoch.tokens_per_second for epoch in result.epochs), default=0.0)
    model_folder = store.model_folder(job, "vectors")
    return mean_vectors(model_folder, result, setting, store, folder, int(2 * left * speed))


def learn_word_vectors(
    job: Job, setting: Setting, store: Store, budget: Budget | None, options: Mapping[str, Any]
) -> tuple[Path, float]:
    """Return the file of the word vectors of a model with these options, and the seconds.

    The model trains with a Huffman tree. With a budget, it takes `WORD_VECTORS_FRACTION` of the
    first round.
    """
    folder = store.folder(job, "vectors")
    train = setting.splits.train
    spec = LayerSpec(build("huffman", train))
    options = kind_of(options).model.for_vectors(spec, options)
    seconds = None if budget is None else WORD_VECTORS_FRACTION * budget.first_round
    # The key of a job with these options, independent of the model of the comparison
    key = job_key(replace(setting, options=options), spec, job.seed, seconds)
    with store.lock_folder(folder):
        file = folder / VECTORS
        kept = store.load_built(file, key, WordVectors.read)
        if kept is not None:
            return file, kept[1].seconds or 0.0
        store.require_writable()
        began = time.perf_counter()
        model: Any = new_model(spec, **options, seconds=seconds, random_state=job.seed)
        vectors = model.fit(train).vectors(train)
        if model.history_.interrupted:
            raise KeyboardInterrupt
        taken = time.perf_counter() - began
        record = BuildRecord(key, vectors.sha256, 0.0, taken)
        store.save_built(file, vectors, record)
        return file, taken


def mean_vectors(
    model_folder: Path,
    result: JobResult,
    setting: Setting,
    store: Store,
    folder: Path,
    n_tokens: int | None = None,
) -> tuple[Path, float]:
    """Return the file in `folder` of the mean predicted vectors of a finished job, and the seconds.

    They are means over the first `n_tokens` training tokens (default: all).
    """
    if result.failed is not None:
        raise TrainingError(f"{result.candidate} has no vectors: {result.failed}")
    with store.lock_folder(folder):
        file = folder / VECTORS
        kept = store.load_built(file, result.key, WordVectors.read)
        if kept is not None:
            return file, kept[1].seconds or 0.0
        store.require_writable()
        began = time.perf_counter()
        model = load_model(model_folder)
        train = model.reencode(setting.splits.train)
        text = train if n_tokens is None else train.first_tokens(n_tokens)
        vectors = model.mean_predicted_vectors(text)
        if n_tokens is not None:
            # Use the counts of all training tokens, not only the first
            vectors = WordVectors.of(vectors, counts=train.counts)
        seconds = (result.timings.total or 0.0) + time.perf_counter() - began
        record = BuildRecord(result.key, vectors.sha256, 0.0, seconds)
        store.save_built(file, vectors, record)
        return file, seconds


def build_tree(
    job: Job, setting: Setting, store: Store, budget: Budget | None = None
) -> tuple[Tree | None, Timings]:
    """Return the tree of a candidate, or None, and the seconds for building it.

    Candidates that differ only in their layers share the tree.
    """
    candidate = job.candidate.tree_candidate
    if not candidate.has_tree:
        return None, Timings()

    # Options of the builder, and other inputs
    inputs: dict[str, Any] = dict(candidate.options)
    vectors: Path | None = None
    learning_seconds = 0.0
    is_timed = candidate.is_timed
    if candidate.source is not None:
        with progress.task(f"vectors for {candidate.name}", unit="candidates"):
            source = Job(candidate.source, job.seed)
            vectors, learning_seconds = learn_vectors(source, setting, store, budget)
        inputs["vectors"] = vectors
    elif candidate.vectors_file is not None:
        vectors = candidate.vectors_file
        build_record = vectors.parent / BUILD
        if not vectors.is_absolute() and (store.home / build_record).exists():
            # Vectors that were learned in a round of a bootstrap
            learned = store.load(str(build_record), BuildRecord)
            if learned is not None:
                learning_seconds = learned.seconds or 0.0
            is_timed = learning_seconds > 0 and candidate.options.get("from") is None
            vectors = store.home / vectors
            inputs["vectors_file"] = vectors

    files = {
        name: value
        for name, value in inputs.items()
        if isinstance(value, Path) or (isinstance(value, str) and os.path.isfile(value))
    }

    # The key includes the content of the files, not only their names
    key = tree_key(setting, candidate, job.seed, files)
    file = store.tree_file(job)
    with store.lock_folder(file.parent):
        kept = store.load_built(file, key, load)
        if kept is not None:
            tree, record = kept
            return tree, Timings(vectors=record.vectors, tree=record.seconds)
        store.require_writable()
        began = time.perf_counter()
        with progress.task(f"building {candidate.name}"):
            tree = candidate.build(setting.splits.train, job.seed, vectors)
        timings = Timings(vectors=learning_seconds, tree=time.perf_counter() - began)
        # The time for vectors or a tree from a file is unknown
        if not is_timed:
            timings = Timings(vectors=None, tree=None)
        record = BuildRecord(key, tree.sha256, timings.vectors, timings.tree)
        store.save_built(file, tree, record)
        return tree, timings


# Training and scoring


def _train(
    job: Job,
    setting: Setting,
    store: Store,
    spec: LayerSpec,
    timings: Timings,
    budget: Budget | None,
    home: Path,
) -> BaseModel:
    """Train the model of a job; `timings` contains the seconds of its vectors and tree.

    These seconds are subtracted from the budget, but training gets at least a fraction of the first
    round. If the vectors or the tree are from a file, the whole budget is used for training.
    """
    store.require_writable()
    limit: dict[str, Any] = {"epochs": setting.stop.max_epochs}
    if budget is not None:
        # Subtract the seconds of vectors and tree, but keep a minimum for the training
        before = (timings.vectors or 0.0) + (timings.tree or 0.0)
        left = budget.seconds - before if job.candidate.is_timed else budget.seconds
        limit["seconds"] = max(left, MIN_TRAINING_FRACTION * budget.first_round)
    model = new_model(spec, **setting.options, random_state=job.seed, **limit)
    return model.fit(
        model.reencode(setting.splits.train),
        model.reencode(setting.sample.valid),
        checkpoints=home / CHECKPOINTS,
        pauses=budget is not None,
    )


def _save_failure(
    job: Job,
    setting: Setting,
    store: Store,
    folder: Path,
    key: str,
    timings: Timings,
    error: Exception,
) -> JobResult:
    """Warn that a job failed, and keep this as its result; the same job is not repeated."""
    reason = warn_of_failure(job.candidate.name, error)
    result = JobResult(
        key=key,
        files={},
        candidate=job.candidate.name,
        seed=job.seed,
        perplexity=dict.fromkeys(SCORED),
        parameters=0,
        options=setting.options,
        timings=msgspec.structs.replace(timings, training=None),
        scored=TokenCounts(0, 0),
        failed=reason,
    )
    return store.save_result(folder, result, {})


def warn_of_failure(name: str, error: Exception) -> str:
    """Warn that a candidate failed; return the error on one line."""
    reason = one_line(error) if isinstance(error, HstreeError) else named_error(error)
    warnings.warn(f"{name}: {reason}", stacklevel=4)
    return reason


def _score(model: BaseModel, splits: Splits) -> tuple[dict[str, Any], dict[HeldOut, Float64]]:
    """Score the held-out splits under a model.

    Returns the fields of a `JobResult` that depend on the scores, and the nll (T,) of every token.
    """
    began = time.perf_counter()
    valid = model.score(model.reencode(splits.valid), details=True)
    test = model.score(model.reencode(splits.test), details=True)
    seconds = time.perf_counter() - began
    nlls: dict[HeldOut, Float64] = {
        "valid": np.asarray(valid.token_nll),
        "test": np.asarray(test.token_nll),
    }
    # The source texts of the tree or layer, and the training texts
    output = "layer" if model.spec.tree is None else "tree"
    provenance = {output: model.spec.provenance, "training": model.texts}
    fields = {**_score_fields(nlls, splits, provenance), "scoring_seconds": seconds}
    if test.log_normaliser is not None:
        values = {name: _finite(value) for name, value in vars(test.log_normaliser).items()}
        fields["log_normaliser"] = NormaliserRecord(**values)
    return fields, nlls


def _run_ngram_job(job: Job, setting: Setting, store: Store, home: Path) -> JobResult:
    """Fit and score a Kneser-Ney model; with a time limit, use only the first tokens."""
    train = setting.splits.train
    splits = setting.splits
    if (seconds := setting.stop.total_seconds) is not None:
        most = int(seconds * NGRAM_TOKENS_PER_SECOND)
        train = train.first_tokens(most)
        # Scoring a token takes less time than fitting it
        n_held_out = len(splits.valid) + len(splits.test)
        splits = splits if n_held_out <= most else setting.sample
    options = {**job.candidate.options, "tokens": len(train)}
    key = ngram_key(setting, train, splits, options)
    if (kept := store.load_result(home, key)) is not None:
        return kept

    store.require_writable()
    began = time.perf_counter()
    with progress.task(f"fitting {job.candidate.name}"):
        # A comparison without n-gram models does not wait for this import
        from hstree.ngrams.kneser_ney import KneserNey

        model = KneserNey(**job.candidate.options).fit(train)
    timings = Timings(training=time.perf_counter() - began)
    nlls: dict[HeldOut, Float64] = {
        "valid": model.nll(splits.valid),
        "test": model.nll(splits.test),
    }
    result = JobResult(
        key=key,
        files={},
        candidate=job.candidate.name,
        seed=None,
        parameters=int(sum(model.n_grams_)),
        options=options,
        timings=timings,
        **_score_fields(nlls, splits, {}),
    )
    return store.save_result(home, result, nlls)


def _score_fields(
    nlls: Mapping[HeldOut, Float64], splits: Splits, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a `JobResult` that depend on the nll (T,) of every token."""
    # (T,) whether each test token is in the vocabulary
    is_known = ~splits.test.with_vocabulary(splits.train.vocabulary).is_oov()
    scored: dict[Scored, Float64] = {
        "valid": nlls["valid"],
        "test": nlls["test"],
        "test_without_oov": nlls["test"][is_known],
    }
    return {
        "perplexity": {
            name: _finite(perplexity(float(nll.sum()), len(nll))) for name, nll in scored.items()
        },
        "scored": TokenCounts(len(splits.valid), len(splits.test)),
        "seen": read_before(
            splits.test,
            train=splits.train.source,
            valid=splits.valid.source,
            vocabulary=splits.train.record.get("vocabulary"),
            **provenance,
        ),
    }


def _finite(value: float) -> float | None:
    """Return a number, or None if it is not finite."""
    return value if math.isfinite(value) else None
