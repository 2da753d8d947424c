"""Writing of results while a comparison runs."""

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

#: Seconds that may be used for writing unfinished results, and an additional fraction of the time.
_WRITING_SECONDS = 5.0
_WRITING_FRACTION = 0.1


class ResultsWriter:
    """Collector of finished candidates that keeps the results in the folder up to date.

    Parameters
    ----------
    candidates, setting, store
    updated : callable, optional
        Called with the comparison so far after it was written, if it has a candidate.

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
        self._has_new = False  # whether a candidate was finished in this run
        self._n_written = 0  # number of finished candidates in the written results
        self._began = time.monotonic()
        self._writing_seconds = 0.0

    def collect(self, candidates: Iterable[Finished]) -> None:
        """Add candidates when they finish, and write the results after each new candidate.

        Results are written less often if writing takes much of the time. They are not written after
        the last candidate.
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
        """Write the results if any candidate is new and some finished candidates are not written.

        While finished jobs are read, the results in the folder may contain more candidates.
        """
        if self._has_new and self._n_written < len(self.finished):
            self.save()

    def save(self, speeds: Speeds | None = None) -> Comparison:
        """Write all results so far, with measured speeds, and return them."""
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
        """Write the results of all finished candidates if an exception ends the body.

        Nothing is written without a new candidate, so a refused comparison does not change the
        folder.
        """
        try:
            yield
        except BaseException:
            # An error of writing must not hide the exception that ended the body
            with suppress(HstreeError, OSError):
                self.save_new()
            raise
