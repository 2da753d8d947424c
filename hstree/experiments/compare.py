"""Comparison of candidates: the same model is trained with each, under the same stopping rule.

Candidates have the same text in the same order, the same initial vectors and the same learning
rates, so that only the output layer differs. Finished jobs are kept: an interrupted comparison
continues, and a new candidate costs only its own training. With halving, candidates share the time,
so that all of them train again if one is added.
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
    """Train the same model with several output layers; return their costs and perplexities.

    Parameters
    ----------
    text : Splits, Corpus, or anything that `Corpus.of` accepts
        Splits over one vocabulary, or a text that `Splits.of` splits. Trees are built from the
        training split only.
    candidates : iterable of str, Candidate or Tree, optional
        Candidates as `Candidate.parse` reads them: "huffman", "gmm epsilon=0.4",
        "classes + ngrams", "2 x flat", "kn5", a tree file, or a named set ("trees" or
        "approximations"). Default: the model's `default_candidates`.
    folder : path
        Output folder, which is created if necessary and locked during the comparison. It contains
        ``trees``, ``runs``, ``words.tsv``, ``results.json`` and ``results.csv``.
    stop : Epochs, Seconds or Halving, optional
        Stopping rule (default: ten minutes with halving). If the time is limited, candidates are
        scored on the first 50,000 tokens of a split. At the end, they are scored on all tokens,
        the longest-trained candidates first, while a tenth of the time suffices.
    seeds : int, default 1
        Number of random seeds, starting from `random_state`. Each seed determines random trees,
        initial vectors and the order of the text, the same for all candidates.
    speed_rounds : int, default 3
        Number of rounds in which speeds are measured; 0 for none. Candidates of an earlier
        comparison in the folder keep their speeds.
    only : bool, default False
        Whether to exclude other candidates of a comparison in the folder.
    force : bool, default False
        Whether to replace a comparison in the folder with another text, model or stopping rule.
    updated : callable, optional
        Called with the comparison so far when a candidate was added to its files.
    n_jobs : int, optional
        Number of jobs that run in parallel processes; -1 for all cores. Default: 1, or the active
        joblib configuration (``joblib.parallel_config``), which may name a cluster whose workers
        all see `folder`. Jobs divide the threads. Speeds are measured afterwards, in this process.
    **options
        Options of `hstree.models.new_model`, except `epochs` and `seconds`, which `stop` replaces.

    Returns
    -------
    Comparison
        The content of ``results.json``, with `best`, `show` and `to_frame`.
        `hstree.report.write` writes it as a page.

    Raises
    ------
    OptionError
        If a candidate or an option is invalid. Raised before anything is trained.
    InputError
        If the labels of a tree are not the words of the text, if the folder contains a comparison
        with another text, model or stopping rule, or if another process uses the folder. Raised
        before anything is trained.
    KeyboardInterrupt
        If the comparison was interrupted. Finished jobs are kept; the same call continues.

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
        # Add the candidates in the folder; refuse a folder with another comparison
        parsed = with_kept_candidates(parsed, setting, store, only=only, force=force)
        store.save_words(setting.splits.train.counted_vocabulary())
        speed_rounds = affordable_speed_rounds(setting, parsed, speed_rounds)
        jobs = Schedule(parsed, setting, store, n_jobs=n_jobs, speed_rounds=speed_rounds)
        writer = ResultsWriter(parsed, setting, store, updated)
        # After Ctrl-C, the files contain all finished candidates
        with writer.saved_when_interrupted():
            with limited_threads(threads_of_job(n_jobs)):
                writer.collect(jobs.train_all())
                # Speeds are kept under the key of the first job; a second scoring changes it
                keys = {
                    candidate.single.name: writer.finished[candidate][0].key
                    for candidate in jobs.without_failures(writer.finished)
                }
                if rescored := jobs.candidates_to_rescore(writer.finished):
                    writer.save_new()
                    writer.collect(jobs.score_all(rescored))
            # Speeds are measured with the model of the first job, one at a time, with all threads
            models = {
                candidate.single.name: store.model_folder(setting.jobs(candidate)[0])
                for candidate in jobs.without_failures(writer.finished)
            }
            speeds, failures = speed.kept_speeds(store, keys, models, setting.splits, speed_rounds)
            writer.mark_failures(failures)
            return writer.save(speeds)


def compare_models(a: Any, b: Any, text: Any) -> Ratio:
    """Return the ratio of the perplexities of two models on a text, with its 95% interval.

    Parameters
    ----------
    a, b : LanguageModel, CBOW, SkipGram, Ensemble, KneserNey or another trained model
        Models with the same vocabulary that predict a word from the same context. For a list of
        models, one per random state, the nll of each token is averaged over the models.
    text : Corpus, or anything that `Corpus.of` accepts
        A text on which neither model was trained. An interval needs at least 20,000 tokens.

    Returns
    -------
    Ratio
        `ratio` is the perplexity of `a` divided by that of `b`; it is below 1 if `a` is better.
        `low` and `high` are its interval, and `p` is the p value of a paired t-test over `blocks`
        blocks of the text (`hstree.experiments.statistics.paired_ratio`).

    Raises
    ------
    OptionError
        If `a` or `b` is not a model, or if they predict a word from different contexts.
    InputError
        If the models have different words, or if the text has no tokens.

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
                f"compare_models takes trained models, not {type(model).__name__}; load a saved "
                "model with hstree.load_model, or train candidates with hstree.compare"
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
                "which differ; train both with the same vocabulary"
            )
    corpus = Corpus.of(text, first.vocabulary)
    nlls = [[model.nll(corpus) for model in group] for group in groups]
    ratio = paired_ratio(*nlls)
    if ratio is None:
        raise InputError(f"{corpus.name} has no tokens; give a text to compare the models on")
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
    """Return the plan of a comparison, without training or writing anything.

    Parameters and errors are those of `compare`.
    """
    speed_rounds = checked_count("speed_rounds", speed_rounds, 0)
    setting, parsed = read_setting(text, candidates, stop, seeds, options)
    store = Store(folder)
    parsed = with_kept_candidates(parsed, setting, store, only=only, force=force)
    speed_rounds = affordable_speed_rounds(setting, parsed, speed_rounds)
    # With a time limit, the keys of jobs depend on the threads and the kernels
    with limited_threads(threads_of_job(n_jobs)), setting.backend():
        jobs = Schedule(parsed, setting, store, n_jobs=n_jobs, speed_rounds=speed_rounds)
        return jobs.plan()


@dataclass(frozen=True)
class Evaluation:
    """A trained model, and a comparison with its candidate alone.

    Attributes
    ----------
    model : BaseModel
    comparison : Comparison
    train : float or None
        Perplexity of the first 50,000 training tokens.
    interrupted : bool
        Whether Ctrl-C ended the training. The results are those of the best weights so far.
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
    """Train and score a model with one output layer, without measuring speeds.

    Parameters
    ----------
    candidate : str, Candidate or Tree
        As in `compare`, except ensembles and n-gram models.
    text : Splits, Corpus, or anything that `Corpus.of` accepts
    stop : Epochs or Seconds, optional
        Stopping rule (default: at most 20 epochs).
    folder : path, optional
        Folder for the trained model, and for the checkpoints of an interrupted training (default: a
        temporary folder).
    trained : callable, optional
        Called with the trained model before it is scored, also after an interrupted training. Not
        called if `folder` contains the finished job.
    **options
        As in `compare`.

    Examples
    --------
    >>> hstree.evaluate("huffman", corpus, stop=hstree.Epochs(1)).perplexity    # doctest: +SKIP
    312.4
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="hstree-") as temporary:
            # The model is in memory when its folder is removed
            return evaluate(
                candidate, text, stop=stop, folder=temporary, trained=trained, **options
            )
    parsed = Candidate.parse(candidate)
    if parsed.models > 1 or not parsed.is_trained:
        raise OptionError(f"{parsed} is not one model to train; use compare")
    splits = Splits.of(text)
    # A given tree determines the vocabulary of the text
    if (labels := parsed.vocabulary()) is not None:
        splits = Splits(*(part.with_vocabulary(labels) for part in splits))
    setting, _ = read_setting(splits, [parsed], stop or Epochs(), 1, options)

    store = Store(folder)
    models: list[BaseModel] = []

    # Keep the trained model, which a comparison does not keep after scoring
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
        # The model of a finished job is loaded from the folder
        model = models[0] if models else load_model(store.model_folder(job))
        return Evaluation(model, writer.comparison(), result.train, result.interrupted)
