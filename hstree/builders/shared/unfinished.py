"""Builds that were stopped and go on: the states of their long parts, kept every half minute.

A part is one long computation of a build, such as an exchange of words or one tree of a forest.
A build does its parts in the same order each time, so that the n-th part finds what a stopped
build left of its own n-th part. What is finished is kept with what is not, until the tree is in
a safe place::

    part = unfinished.part()
    done = int(part.state.get("done", 0))
    for number in range(done, n):
        part.keep(lambda: {"done": np.array(number), ...})
        ...
    part.finish({"done": np.array(n), ...})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from hstree._checkpoints import Checkpoints, State
from hstree._files import cache_folder
from hstree._typing import Array

#: Minutes between two states of a build: with the time that a step takes, less than one is lost.
MINUTES = 0.5
#: Folder of the states, in that of what can be computed again.
FOLDER = "checkpoints"

PartState = Mapping[str, Array]


class Part:
    """One long computation of a build; outside of `resumable`, nothing is kept of it.

    Attributes
    ----------
    state : mapping of arrays
        What a stopped build left of it; empty where there is nothing.
    """

    def __init__(self, build: _Build | None = None, number: int = 0) -> None:
        self._build, self._number = build, number
        self.state: PartState = {} if build is None else build.parts.get(number, {})

    def keep(self, state: Callable[[], PartState]) -> None:
        """Write what `state` returns, and all before it, if the last time is long enough ago."""
        if self._build is not None and self._build.checkpoints.is_due():
            self._build.parts[self._number] = state()
            self._build.save()

    def finish(self, state: PartState) -> None:
        """Keep the last state with those of the parts that follow."""
        if self._build is not None:
            self._build.parts[self._number] = state
            if self._build.checkpoints.is_due():
                self._build.save()


class _Build:
    """The parts of a build by number, and where they are kept."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints, self.n_parts = checkpoints, 0
        self.parts: dict[int, PartState] = {}
        kept = checkpoints.restore(lambda state: state)
        for name, array in ({} if kept is None else kept.arrays).items():
            number, _, name_in_part = name.partition(" ")
            self.parts[int(number)] = {**self.parts.get(int(number), {}), name_in_part: array}

    def save(self) -> None:
        arrays = {
            f"{number} {name}": array
            for number, state in self.parts.items()
            for name, array in state.items()
        }
        self.checkpoints.save(State(arrays, {}))


_build: ContextVar[_Build | None] = ContextVar("hstree build", default=None)
_finished: ContextVar[list[Checkpoints] | None] = ContextVar("hstree builds", default=None)


def part() -> Part:
    """Return the next part of the build that runs."""
    build = _build.get()
    if build is None:
        return Part()
    build.n_parts += 1
    return Part(build, build.n_parts)


@contextmanager
def resumable(key: str) -> Iterator[None]:
    """Keep the states of the body's parts, and begin with those that a stopped body left.

    `key` is a hash of all that they depend on. They are removed after the body, or after that of
    `until_saved` where it is inside of one.
    """
    with until_saved():
        checkpoints = Checkpoints(
            cache_folder() / FOLDER, key, work="build", at_most=MINUTES, conditions={}
        )
        token = _build.set(_Build(checkpoints))
        try:
            yield
        finally:
            _build.reset(token)
        finished = _finished.get()
        if finished is not None:
            finished.append(checkpoints)


@contextmanager
def until_saved() -> Iterator[None]:
    """Keep the states of finished builds while the body runs, in which their trees are saved."""
    if _finished.get() is not None:
        yield
        return
    finished: list[Checkpoints] = []
    token = _finished.set(finished)
    try:
        yield
    finally:
        _finished.reset(token)
    for checkpoints in finished:
        checkpoints.remove()
