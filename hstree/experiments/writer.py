"""Results that are written while a comparison runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import msgspec

from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import Comparison, JobResult
from hstree.experiments.schedule import Finished
from hstree.experiments.setting import Setting
from hstree.experiments.speed import Speeds
from hstree.experiments.store import Store
from hstree.experiments.summary import Summary

#: Seconds that writing the results of an unfinished comparison may take, and the fraction of its
#: time that writing may take in addition.
_WRITING_SECONDS = 5.0
_WRITING_FRACTION = 0.1


class ResultsWriter:
    """Collects finished candidates and keeps the results in the folder current.

    Parameters
    ----------
    candidates, setting, store
    updated : callable, optional
        Called with the comparison so far when it was written and has a candidate.

    Attributes
    ----------
    finished : dict of Candidate to list of JobResult
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        setting: Setting,
        store: Store,
        updated: Callable[[Comparison], object] | None = None,
    ) -> None:
        self.candidates = candidates
        self.store = store
        self.finished: dict[Candidate, list[JobResult]] = {}
        self._summary = Summary(setting, store, self.finished)
        self._updated = updated
        self._has_new = False  # whether a finished candidate was not kept from before
        self._n_written = 0  # number of finished candidates in the results that this wrote
        self._began = time.monotonic()
        self._writing_seconds = 0.0

    def collect(self, candidates: Iterable[Finished]) -> None:
        """Add candidates when they finish, and write the results after each new one.

        Results are written less often where that takes much of the time, and not after the last
        candidate.
        """
        for candidate, job_results, is_kept in candidates:
            self.finished[candidate] = job_results
            if is_kept:
                continue
            self._has_new = True
            elapsed = time.monotonic() - self._began
            limit = _WRITING_SECONDS + _WRITING_FRACTION * elapsed
            if len(self.finished) < len(self.candidates) and self._writing_seconds < limit:
                self.save()

    def mark_failures(self, reasons: Mapping[str, str]) -> None:
        """Mark candidates as failed after their jobs; `reasons` are by the names of one model."""
        for candidate, job_results in self.finished.items():
            if (reason := reasons.get(candidate.single.name)) is not None:
                self.finished[candidate] = [
                    msgspec.structs.replace(result, failed=reason) for result in job_results
                ]

    def save_new(self) -> None:
        """Write the results if they lack finished candidates of which one is new.

        While finished jobs are read, the results in the folder have more of them.
        """
        if self._has_new and self._n_written < len(self.finished):
            self.save()

    def save(self, speeds: Speeds | None = None) -> Comparison:
        """Write and return all results so far, with measured speeds."""
        began = time.monotonic()
        comparison = self.comparison(speeds)
        results.save(comparison, self.store.home)
        comparison = comparison.in_folder(self.store.home)
        if self._updated is not None and comparison.candidates:
            self._updated(comparison)
        self._n_written = len(self.finished)
        self._writing_seconds += time.monotonic() - began
        return comparison

    def comparison(self, speeds: Speeds | None = None) -> Comparison:
        """Return all results so far, with measured speeds."""
        return self._summary.comparison(self.candidates, speeds or {})

    @contextmanager
    def saved_when_interrupted(self) -> Iterator[None]:
        """Write the results of all finished candidates when an exception ends the body.

        Nothing is written without a new candidate: a refused comparison leaves the folder to any
        other one.
        """
        try:
            yield
        except BaseException:
            # a failure to write must not hide what ended the body
            with suppress(HstreeError, OSError):
                self.save_new()
            raise
