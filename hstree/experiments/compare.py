"""Comparison of candidates: the same model trained with each, under the same stopping rule.

Every candidate gets the same text in the same order, the same starting vectors and the same
learning rates, so that only the output layer differs. Finished jobs are kept. A comparison
continues where it stopped, and a new candidate costs only its own training. By halving, candidates
share the time, so that all train again with a new one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hstree._files import locked
from hstree._options import checked_count
from hstree._parallel import limited_threads, threads_of_job
from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.errors import InputError, OptionError
from hstree.experiments import schedule, speed
from hstree.experiments.candidate import Candidate
from hstree.experiments.continuation import with_kept_candidates
from hstree.experiments.halving import affordable_speed_rounds
from hstree.experiments.job import run_job
from hstree.experiments.results import CandidateResult, Comparison, Epochs, Ratio, Stop
from hstree.experiments.schedule import Schedule
from hstree.experiments.setting import read_setting
from hstree.experiments.statistics import paired_ratio
from hstree.experiments.store import Store
from hstree.experiments.writer import ResultsWriter
from hstree.models import BaseModel, load_model
from hstree.tree import Tree


def compare(
    text: Any,
    candidates: Iterable[Candidate | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    speed_rounds: int = speed.ROUNDS,
    only: bool = False,
    force: bool = False,
    updated: Callable[[Comparison], object] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Comparison:
    """Train the same model with several output layers; return costs and perplexities of each.

    Parameters
    ----------
    text : Splits, Corpus, or what `Corpus.of` takes
        Splits over one vocabulary, or a text to split by `Splits.of`. Trees are built from
        the training split alone.
    candidates : iterable of str, Candidate or Tree, optional
        Candidates as `Candidate.parse` reads them: "huffman", "gmm epsilon=0.4",
        "classes + ngrams", "2 x flat", "kn5", a tree's file, or a named set, "trees" or
        "approximations"; by default `hstree.experiments.candidate.DEFAULT`.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``trees``, ``runs``,
        ``words.tsv``, ``results.json`` and ``results.csv``.
    stop : Epochs, Seconds or Halving, optional
        When trainings stop; ten minutes by halving by default. Where the time is bounded,
        candidates are scored on the first 50,000 tokens of a split, and at the end on all of them
        as far as that takes a tenth of the time: the candidates that trained longest first.
    seeds : int, default 1
        Number of random states, from `random_state` on. Each has its own random trees, starting
        vectors and order of the text, the same for all candidates.
    speed_rounds : int, default 3
        Number of turns of each candidate in which speeds are measured; 0 for none. Candidates of an
        earlier comparison in the folder keep the speeds that were measured then.
    only : bool, default False
        Whether to leave out the other candidates of a comparison that the folder holds.
    force : bool, default False
        Whether to replace a comparison of another text, model or rule that the folder holds.
    updated : callable, optional
        Called with the comparison so far when its files have got another candidate.
    n_jobs : int, optional
        Number of jobs at a time, in other processes; -1 for all cores. By default 1, or what an
        ambient ``joblib.parallel_config`` says, which may also name a cluster whose workers all see
        `folder`. Jobs divide the threads; speeds are measured afterwards, in this
        process.
    **options
        Options of `hstree.models.new_model` but `epochs` and `seconds`, which are rules.

    Returns
    -------
    Comparison
        The content of ``results.json``, with `best`, `show` and `to_frame`.
        `hstree.report.write` makes a page of it.

    Raises
    ------
    OptionError
        Before anything is trained, for an invalid candidate or option.
    InputError
        Likewise when a tree is over other words than the text's vocabulary, the folder holds a
        comparison of another text, model or rule, or another process works in it.
    KeyboardInterrupt
        When it was interrupted; finished jobs are kept, and the same call continues the others.

    Examples
    --------
    >>> candidates = ["huffman", "gmm epsilon=0.4", "flat", "kn5"]
    >>> rule = hstree.Epochs(3)                                       # doctest: +SKIP
    >>> comparison = compare(corpus, candidates, "which", stop=rule)    # doctest: +SKIP
    >>> comparison.best.name                                           # doctest: +SKIP
    'gmm epsilon=0.4'
    """
    speed_rounds = checked_count("speed_rounds", speed_rounds, 0)
    setting, parsed = read_setting(text, candidates, stop, seeds, options)
    store = Store(folder)
    with locked(store.home), setting.backend():
        # with the candidates that the folder holds; refused if these are of another comparison
        parsed = with_kept_candidates(parsed, setting, store, only=only, force=force)
        store.save_words(setting.splits.train.counted_vocabulary())
        speed_rounds = affordable_speed_rounds(setting, parsed, speed_rounds)
        jobs = Schedule(parsed, setting, store, n_jobs=n_jobs, speed_rounds=speed_rounds)
        writer = ResultsWriter(parsed, setting, store, updated)
        # what is finished when Ctrl-C comes is in the files
        with writer.saved_when_interrupted():
            with limited_threads(threads_of_job(n_jobs)):
                writer.collect(jobs.train_all())
                # speeds are kept under the key of the first job, before another scoring changes it
                keys = {
                    candidate.single.name: writer.finished[candidate][0].key
                    for candidate in jobs.without_failures(writer.finished)
                }
                if rescored := jobs.candidates_to_rescore(writer.finished):
                    writer.save_new()
                    writer.collect(jobs.score_all(rescored))
            # speeds are measured one after another, with all threads, on the first job's model
            models = {
                candidate.single.name: store.model_folder(setting.jobs(candidate)[0])
                for candidate in jobs.without_failures(writer.finished)
            }
            speeds, failures = speed.kept_speeds(store, keys, models, setting.splits, speed_rounds)
            writer.mark_failures(failures)
            return writer.save(speeds)


def compare_models(a: Any, b: Any, text: Any) -> Ratio:
    """Return the ratio of two models' perplexities on a text, with its 95% interval.

    Parameters
    ----------
    a, b : LanguageModel, CBOW, SkipGram, Ensemble, KneserNey or another trained model
        Models over the same words that predict a word from the same words. A list of models, one
        per random state, counts by its mean nll of each token.
    text : Corpus, or what `Corpus.of` takes
        A text that neither was trained on; an interval takes 20,000 tokens.

    Returns
    -------
    Ratio
        `ratio` is the perplexity of `a` divided by that of `b`, below 1 where `a` is better. `low`
        and `high` are its interval and `p` the p value of a paired t-test over `blocks` blocks of
        the text (`hstree.experiments.statistics.paired_ratio`).

    Raises
    ------
    OptionError
        When `a` or `b` is no model, or they predict a word from different contexts.
    InputError
        When they are over different words, or the text has no token.

    Examples
    --------
    >>> import hstree
    >>> text = hstree.Corpus.from_lines(["the cat sat", "the dog sat"], min_count=1)
    >>> unigram = hstree.LanguageModel(hstree.build("huffman", text), epochs=0).fit(text)
    >>> flat = hstree.LanguageModel(hstree.build("flat", text), epochs=0).fit(text)
    >>> round(compare_models(unigram, flat, text).ratio, 3)
    1.0
    """
    groups = [model if isinstance(model, list | tuple) else [model] for model in (a, b)]
    models = [model for group in groups for model in group]
    for model in models:
        if not hasattr(model, "predicts"):
            raise OptionError(
                f"compare_models takes trained models, not {type(model).__name__}; read a saved "
                "one with hstree.load_model, or train candidates with hstree.compare"
            )
    if not all(groups):
        raise OptionError("compare_models takes two models, or lists of one or more models")
    first = models[0]
    for model in models[1:]:
        if model.predicts != first.predicts:
            raise OptionError(
                f"the perplexity of one model is per {first.predicts}, of another per "
                f"{model.predicts}; compare models of one kind"
            )
        if model.vocabulary.sha256 != first.vocabulary.sha256:
            raise InputError(
                f"the models have {len(first.vocabulary):,} and {len(model.vocabulary):,} words, "
                "not the same; train both over one vocabulary"
            )
    corpus = Corpus.of(text, first.vocabulary)
    nlls = [[model.nll(corpus) for model in group] for group in groups]
    ratio = paired_ratio(*nlls)
    if ratio is None:
        raise InputError(f"{corpus.name} has no token to compare the models on")
    return ratio


def plan(
    text: Any,
    candidates: Iterable[Candidate | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    speed_rounds: int = speed.ROUNDS,
    only: bool = False,
    force: bool = False,
    n_jobs: int | None = None,
    **options: Any,
) -> schedule.Plan:
    """Return the plan of a comparison; nothing is trained or written.

    Parameters and errors are those of `compare`.
    """
    speed_rounds = checked_count("speed_rounds", speed_rounds, 0)
    setting, parsed = read_setting(text, candidates, stop, seeds, options)
    store = Store(folder)
    parsed = with_kept_candidates(parsed, setting, store, only=only, force=force)
    speed_rounds = affordable_speed_rounds(setting, parsed, speed_rounds)
    # the keys of trainings in a bounded time depend on the threads and the kernels
    with limited_threads(threads_of_job(n_jobs)), setting.backend():
        jobs = Schedule(parsed, setting, store, n_jobs=n_jobs, speed_rounds=speed_rounds)
        return jobs.plan()


@dataclass(frozen=True)
class Evaluation:
    """A trained model, and the comparison of its one candidate.

    Attributes
    ----------
    model : BaseModel
    comparison : Comparison
    train : float or None
        Perplexity of the first 50,000 training tokens.
    interrupted : bool
        Whether Ctrl-C ended the training; the results are of the best weights until then.
    """

    model: BaseModel
    comparison: Comparison
    train: float | None
    interrupted: bool

    @property
    def candidate(self) -> CandidateResult:
        """The results of the candidate."""
        return self.comparison.candidates[0]

    @property
    def perplexity(self) -> float | None:
        """Test perplexity."""
        return self.candidate.test


def evaluate(
    candidate: Candidate | str | Tree,
    text: Any,
    *,
    stop: Stop | None = None,
    folder: str | os.PathLike[str] | None = None,
    trained: Callable[[BaseModel], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Train and score a model with one output layer: a comparison of one candidate.

    No speeds are measured.

    Parameters
    ----------
    candidate : str, Candidate or Tree
        As `compare` takes them; not several models, nor an n-gram model.
    text : Splits, Corpus, or what `Corpus.of` takes
    stop : Epochs or Seconds, optional
        At most 20 epochs by default.
    folder : path, optional
        Keeps the trained model, and checkpoints of an interrupted training; a temporary one by
        default.
    trained : callable, optional
        Called with the trained model before it is scored; not called for a job that `folder` has
        finished. An interrupted training is scored too.
    **options
        As in `compare`.

    Examples
    --------
    >>> hstree.evaluate("huffman", corpus, stop=hstree.Epochs(1)).perplexity    # doctest: +SKIP
    312.4
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="hstree-") as temporary:
            # the model is in memory when its folder is removed
            return evaluate(
                candidate, text, stop=stop, folder=temporary, trained=trained, **options
            )
    parsed = Candidate.parse(candidate)
    if parsed.models > 1 or not parsed.is_trained:
        raise OptionError(f"{parsed} is not one model to train; compare takes it")
    splits = Splits.of(text)
    # a given tree decides which words the text has
    if (labels := parsed.vocabulary()) is not None:
        splits = Splits(*(part.with_vocabulary(labels) for part in splits))
    setting, _ = read_setting(splits, [parsed], stop or Epochs(), 1, options)

    store = Store(folder)
    models: list[BaseModel] = []

    # keep the trained model, which the comparison itself drops after scoring
    def on_trained(model: BaseModel) -> None:
        models.append(model)
        if trained is not None:
            trained(model)

    with locked(store.home), setting.backend():
        job = setting.jobs(parsed)[0]
        result = run_job(job, setting, store, setting.budget, on_trained=on_trained)
        writer = ResultsWriter([parsed], setting, store)
        writer.finished[parsed] = [result]
        if not result.interrupted:
            jobs = Schedule([parsed], setting, store, n_jobs=1)
            writer.collect(jobs.score_all(jobs.candidates_to_rescore(writer.finished)))
        # a job that the folder has finished is not trained, but read
        model = models[0] if models else load_model(store.model_folder(job))
        return Evaluation(model, writer.comparison(), result.train, result.interrupted)
