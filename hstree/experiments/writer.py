"""Results that are written while a comparison runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from hstree.errors import HstreeError
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import Comparison
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
    finished : dict of Candidate to Finished
    summary : Summary
        Makes the results.
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
        self.finished: dict[Candidate, Finished] = {}
        self.summary = Summary(setting, store, self.finished)
        self._updated = updated
        self._n_written = 0  # number of finished candidates in the results that this wrote
        self._is_training = False
        self._began = time.monotonic()
        self._writing_seconds = 0.0

    def collect(self, events: Iterable[Finished | None]) -> None:
        """Add finished candidates, and write the results when one is new.

        None in their place says that a training begins. Results are written less often where that
        takes much of the time, and not after the last candidate.
        """
        for event in events:
            if event is None:
                self._is_training = True
                self.write_new()
                continue
            self.add(event)
            elapsed = time.monotonic() - self._began
            limit = _WRITING_SECONDS + _WRITING_FRACTION * elapsed
            is_last = len(self.finished) == len(self.candidates)
            if self._is_training and not is_last and self._writing_seconds < limit:
                self.save()

    def add(self, finished: Finished) -> None:
        """Add a finished candidate, or replace its results."""
        self.finished[finished.candidate] = finished
        self.summary.forget(finished.candidate)

    def write_new(self) -> None:
        """Write the results if a training began and they lack finished candidates."""
        if self._is_training and self._n_written < len(self.finished):
            self.save()

    def save(self, speeds: Speeds | None = None) -> Comparison:
        """Write and return all results so far.

        Measured `speeds` are in them from now on.
        """
        began = time.monotonic()
        if speeds is not None:
            self.summary.speeds = speeds
        comparison = self.store.save_comparison(self.comparison())
        if self._updated is not None and comparison.candidates:
            self._updated(comparison)
        self._n_written = len(self.finished)
        self._writing_seconds += time.monotonic() - began
        return comparison

    def comparison(self) -> Comparison:
        """Return all results so far."""
        return self.summary.comparison(self.candidates)

    @contextmanager
    def saved_when_interrupted(self) -> Iterator[None]:
        """Write the results of all finished candidates when an exception ends the body.

        Nothing is written without a finished candidate: a refused comparison leaves the folder to
        any other one.
        """
        try:
            yield
        except BaseException:
            # while finished jobs are read, the results in the folder have more of them
            is_replaceable = self._is_training or not self.store.has_comparison
            if is_replaceable and self._n_written < len(self.finished):
                # a failure to write must not hide what ended the body
                with suppress(HstreeError, OSError):
                    self.save()
            raise
