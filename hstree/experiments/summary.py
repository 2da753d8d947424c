"""Summary of a comparison, computed from the results of its finished jobs."""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from hstree._arrays import Float64
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, SplitName
from hstree.data.text_score import unigram_score
from hstree.experiments import results, speed
from hstree.experiments.candidate import Candidate
from hstree.experiments.recommendation import choose, recommendation_sentences
from hstree.experiments.results import CandidateResult, Comparison, JobResult, Timings
from hstree.experiments.setting import Setting
from hstree.experiments.statistics import (
    best_weight,
    frequency_bands,
    mixed_nll,
    paired_ratio,
    spread_of_perplexities,
)
from hstree.experiments.store import HeldOut, Store
from hstree.kernels import backend_name
from hstree.models import kind_of
from hstree.models.ensemble import mean_probability
from hstree.tree import load
from hstree.tree.statistics import tree_statistics


class Summary:
    """Summary of the finished candidates as a `Comparison`.

    Parameters
    ----------
    setting, store
    finished : dict of Candidate to list of JobResult
        Grows while candidates finish. Results change if candidates are scored again.
    """

    def __init__(
        self, setting: Setting, store: Store, finished: Mapping[Candidate, list[JobResult]]
    ) -> None:
        self.setting = setting
        self.store = store
        self.finished = finished
        #: Tokens per second by measure and candidate.
        self.speeds: speed.Speeds = {}
        self._bands, self._band_of_token = frequency_bands(setting.splits)
        self._nlls: dict[tuple[str, HeldOut], list[Float64]] = {}
        self._tree_fields: dict[Candidate, dict[str, Any]] = {}

    def comparison(self, candidates: Sequence[Candidate], speeds: speed.Speeds) -> Comparison:
        """Return the results of the finished candidates, and the names of the unfinished ones."""
        self.speeds = speeds
        setting = self.setting
        splits = setting.splits
        vocabulary = splits.train.vocabulary
        parts: dict[SplitName, Corpus] = dict(zip(SPLITS, splits, strict=True))

        # Results of the finished candidates, and the recommended one
        done = [candidate for candidate in candidates if candidate in self.finished]
        by_name = {candidate.name: candidate for candidate in done}

        summaries = [self._summary(candidate, done) for candidate in done]
        choice = choose(summaries)
        if choice is not None and choice.rival is not None:
            # The ratio to the rival shows how certain the choice is
            chosen, rival = by_name[choice.chosen], by_name[choice.rival]
            ratio = paired_ratio(self.nlls(chosen), self.nlls(rival))
            choice = msgspec.structs.replace(choice, to_rival=ratio)

        # A unigram model, for comparison
        test = splits.test.with_vocabulary(vocabulary)
        unigram = unigram_score(test, splits.train.counts).perplexity
        comparison = Comparison(
            predicts=kind_of(setting.options).model.predicts,
            corpus={name: dict(part.source) for name, part in parts.items()},
            tokens={name: len(part) for name, part in parts.items()},
            oov={name: part.n_oov for name, part in parts.items()},
            vocabulary=results.VocabularyRecord(len(vocabulary), vocabulary.sha256),
            options=dict(setting.options),
            stop=setting.stop,
            seeds=list(setting.seeds),
            versions={
                "python": platform.python_version(),
                "numpy": np.__version__,
                "hstree": __version__,
                "kernels": backend_name(),
            },
            machine=speed.machine(),
            unigram=unigram if math.isfinite(unigram) else None,
            bands=self._bands,
            candidates=summaries,
            choice=choice,
            pending=[candidate.name for candidate in candidates if candidate not in self.finished],
        )
        # The sentences quote numbers of the comparison, so they are computed last
        sentences = recommendation_sentences(comparison)
        return msgspec.structs.replace(comparison, recommendation=sentences)

    def nlls(self, candidate: Candidate, split: HeldOut = "test") -> list[Float64]:
        """Return for each seed the nll (T,) of every scored token under the mean of its models."""
        job_results = self.finished[candidate]
        # Scores of all tokens have another key than scores of a sample
        key = f"{candidate} {job_results[0].key}", split
        if any(result.failed is not None for result in job_results):
            # no tokens were scored by all models
            self._nlls[key] = [np.empty(0)] * (len(job_results) // candidate.models)
        if key not in self._nlls:
            jobs = self.setting.jobs(candidate)
            nlls = [
                self.store.load_nll(job, result, split)
                for job, result in zip(jobs, job_results, strict=True)
            ]
            if candidate.models > 1:
                # Jobs are in the order of seeds, with consecutive models of each seed
                first_models = range(0, len(jobs), candidate.models)
                nlls = [mean_probability(nlls[i : i + candidate.models]) for i in first_models]
            self._nlls[key] = nlls
        return self._nlls[key]

    def _summary(self, candidate: Candidate, done: Sequence[Candidate]) -> CandidateResult:
        """Return the results of a candidate, relative to the other finished candidates."""
        setting = self.setting
        job_results = self.finished[candidate]
        nlls = self.nlls(candidate)
        failed = next((result.failed for result in job_results if result.failed), None)
        is_complete = failed is not None or job_results[0].scored == setting.all_tokens

        # Only the first tokens may be scored; the band of OOV words has no minimum count
        band_of_token = self._band_of_token[: len(nlls[0])]
        bands = range(len(self._bands))
        is_oov = np.array([band.least is None for band in self._bands])[band_of_token]

        # ln Z is known only for layers with scores of all words, and not for ensembles
        normalisers = [result.log_normaliser for result in job_results if result.log_normaliser]
        has_normaliser = len(normalisers) == len(job_results) and candidate.models == 1

        return CandidateResult(
            name=candidate.name,
            kind=candidate.kind,
            method=candidate.method,
            summary=candidate.summary,
            options=msgspec.to_builtins(candidate.options, enc_hook=str),
            layer=candidate.layer,
            is_flat=candidate.is_flat,
            models=candidate.models,
            **self._tree_summary(candidate),
            parameters=sum(result.parameters for result in job_results[: candidate.models]),
            jobs=[
                results.JobRecord(
                    seed=result.seed,
                    folder=self.store.relative(self.store.folder(job)),
                    perplexity=result.perplexity,
                    epochs=result.epochs,
                )
                for job, result in zip(setting.jobs(candidate), job_results, strict=True)
            ],
            perplexity={
                "valid": spread_of_perplexities(self.nlls(candidate, "valid")),
                "test": spread_of_perplexities(nlls),
                "test_without_oov": spread_of_perplexities(nlls, ~is_oov),
            },
            at_epoch_limit=self._n_at_epoch_limit(job_results),
            timings=self._mean_timings(candidate),
            by_band=[spread_of_perplexities(nlls, band_of_token == band).mean for band in bands],
            test_oov=None if failed else float(is_oov.mean()),
            sample=None if is_complete else job_results[0].scored,
            seen=next((result.seen for result in job_results if result.seen), None),
            failed=failed,
            log_normaliser=results.mean_record(normalisers) if has_normaliser else None,
            **self._ratios_to_flat(candidate, done),
            **self._speeds_beside_flat(candidate, done),
            mixture=self._mixture(candidate, done),
        )

    def _ratios_to_flat(self, candidate: Candidate, done: Sequence[Candidate]) -> dict[str, Any]:
        """Return the ratios to flat and to flat with the same layer, if they are finished."""
        fields: dict[str, Any] = {}
        nlls = self.nlls(candidate)
        for other in done:
            if other.is_flat and "to_flat" not in fields:
                fields["to_flat"] = paired_ratio(nlls, self.nlls(other))
                flat_seconds = self._mean_timings(other).total
                seconds = self._mean_timings(candidate).total
                if flat_seconds and seconds:
                    fields["from_text_times_flat"] = flat_seconds / seconds
            if other.name == f"flat + {candidate.layer}" != candidate.name:
                fields["like"] = other.name
                fields["to_like"] = paired_ratio(nlls, self.nlls(other))
        return fields

    def _speeds_beside_flat(
        self, candidate: Candidate, done: Sequence[Candidate]
    ) -> dict[str, Any]:
        """Return the measured speeds of a candidate relative to those of flat.

        The speed of an ensemble is that of one model divided by the number of models. It has no
        speed of `top_k`.
        """
        flat_name = next((other.name for other in done if other.is_flat), "")
        fields: dict[str, Any] = {}
        for measure, by_name in self.speeds.items():
            rounds = by_name.get(candidate.single.name)
            if rounds is None or (candidate.models > 1 and measure == "top_k"):
                continue
            # Unnormalised scores are compared with the nll of flat, which they replace
            flat = self.speeds["nll" if measure == "unnormalised" else measure].get(flat_name)
            per_model = [speed / candidate.models for speed in rounds]
            fields[measure] = results.Speed.of(per_model, flat)
        return fields

    def _mixture(self, candidate: Candidate, done: Sequence[Candidate]) -> results.Mixture | None:
        """Return the mixture with the first n-gram model; None for this model or without one."""
        ngrams = next((other for other in done if not other.is_trained), candidate)
        if ngrams is candidate or not self.nlls(candidate)[0].size:
            return None
        # An n-gram model has one job for all seeds
        (ngrams_valid,) = self.nlls(ngrams, "valid")
        (ngrams_test,) = self.nlls(ngrams)

        # The weight of each seed is fitted on the validation split and used on the test split
        weights = [best_weight(nll, ngrams_valid) for nll in self.nlls(candidate, "valid")]
        mixed = [
            mixed_nll(weight, nll, ngrams_test)
            for weight, nll in zip(weights, self.nlls(candidate), strict=True)
        ]
        return results.Mixture(
            ngram=ngrams.name,
            weight=statistics.fmean(weights),
            test=spread_of_perplexities(mixed).mean,
        )

    def _mean_timings(self, candidate: Candidate) -> Timings:
        """Return the mean timings over the seeds, summed over the models of a seed.

        Without a time limit, the training time is the number of epochs times the measured time per
        epoch.
        """
        rounds = self.speeds.get("training", {}).get(candidate.single.name)
        timings = []
        for result in self.finished[candidate]:
            training = result.timings.training
            # The time of a training depends on other load; speeds were measured alternately
            if rounds and self.setting.stop.total_seconds is None:
                n_epochs = sum(epoch.share for epoch in result.epochs)
                tokens = n_epochs * len(self.setting.splits.train)
                training = tokens / statistics.median(rounds)
            timings.append(msgspec.structs.replace(result.timings, training=training))
        return results.mean_record(timings, candidate.models)

    def _n_at_epoch_limit(self, job_results: Sequence[JobResult]) -> int:
        """Return the number of models that stopped at the maximum number of epochs unconverged.

        Models whose learning rate depends on the number of epochs, as in word2vec, never converge.
        """
        limit = self.setting.stop.max_epochs
        if limit == 0 or not kind_of(self.setting.options).model.converges:
            return 0
        return sum(
            len(result.epochs) == limit and not result.converged and not result.out_of_time
            for result in job_results
        )

    def _tree_summary(self, candidate: Candidate) -> dict[str, Any]:
        """Return the fields that describe the tree of a candidate.

        Costs are summed over the trees of all models and weighted by the counts of the training
        split, which may differ from the counts of a tree.
        """
        if candidate in self._tree_fields:
            return self._tree_fields[candidate]

        # The trees of the first seed, one per model; a failed candidate may have none
        jobs = self.setting.jobs(candidate)[: candidate.models]
        if not all(self.store.has_tree(job) for job in jobs):
            return {"tree": None, "tree_file": None}
        files = [self.store.tree_file(job) for job in jobs]
        train = self.setting.splits.train
        trees = []
        for file in files:
            tree = load(file)
            counts = train.counts[train.vocabulary.ids(tree.labels)]
            trees.append(tree_statistics(tree, counts))

        # An ensemble scores each label under all trees: costs are summed, sizes are of one tree
        first = trees[0]
        weighted = [tree.length_weighted for tree in trees if tree.length_weighted is not None]
        self._tree_fields[candidate] = {
            "tree": results.TreeRecord(
                nodes=first.nodes,
                codes_per_label=sum(tree.codes_per_label for tree in trees),
                code_length=results.CodeLength(
                    uniform=sum(tree.length_uniform for tree in trees),
                    weighted=sum(weighted) if weighted else None,
                ),
                scores_per_target=sum(tree.scores_per_target for tree in trees),
                depth=first.depth,
                sha256=first.sha256,
            ),
            "tree_file": self.store.relative(files[0]),
        }
        return self._tree_fields[candidate]
