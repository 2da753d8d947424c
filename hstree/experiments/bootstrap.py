"""Trees from text alone, round by round: each is built from the vectors of the best model so far.

Mnih & Hinton (2008, section 4) begin with a random tree; the mean predicted vectors of the model
that is trained on it make the next tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.errors import OptionError
from hstree.experiments import results
from hstree.experiments.compare import WITHIN, Subject, Table
from hstree.experiments.results import Comparison, Epochs, JobResult, RowResult, Stop
from hstree.experiments.row import BuilderRow, Job, Row
from hstree.experiments.run import MODEL, locked


def bootstrap(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    rows: Sequence[Row | str] = ("gmm",),
    *,
    rounds: int | None = None,
    first: Row | str = "random",
    warm_start: bool = False,
    stop: Stop | None = None,
    force: bool = False,
    updated: Callable[[Comparison], object] | None = None,
    **options: Any,
) -> Iterator[tuple[str, RowResult]]:
    """Build and train one tree after another from a text; finished rounds are not done again.

    Iterate over it: a round is done when its result is asked for. Arguments are checked at once.
    The rounds are rows of an ordinary comparison in the folder, built from files of vectors there.

    Parameters
    ----------
    text : Splits or Corpus
    folder : path
    rows : sequence of str, default ("gmm",)
        Rows of the rounds from 1 on, which are built from vectors: "gmm epsilon=0.4",
        "classes cluster_by=vectors"; the last is that of all later rounds.
    rounds : int, optional
        Number of trees after the first; by default one for each of `rows`.
    first : str, default "random"
        Row of round 0, which needs no vectors.
    warm_start : bool, default False
        Whether every later round begins with the word vectors of the best model so far: its
        perplexity falls sooner, and may end a little higher.
    stop : Epochs or Seconds, optional
        When each training stops; at most 20 epochs by default.
    force : bool, default False
        Whether to replace a comparison of something else that the folder holds.
    updated : callable, optional
        Called with the comparison so far after each round.
    **options
        As in `compare`.

    Yields
    ------
    name : str
        "round-0", "round-1", ...
    result : RowResult

    Raises
    ------
    OptionError
        When there are fewer rounds than rows, or a row cannot stand in its round.
    InputError
        When the folder holds a comparison of another text, model or rule.
    """
    start, *later = map(_builder_row, (first, *rows))
    if start.source is not None:
        raise OptionError(
            f"{start} needs word vectors, which the first round has not learned yet; begin with "
            "random, huffman or classes"
        )
    n = len(later) if rounds is None else rounds
    if not 1 <= len(later) <= n:
        raise OptionError(f"rounds is {n}, for {len(later)} rows; every row needs a round")
    for row in later:
        if row.source is None:
            raise OptionError(f"{row} is not built from vectors; name a row that is, such as gmm")
    subject = Subject.of(text, [start, *dict.fromkeys(later)], folder, stop or Epochs(), 1, options)
    if isinstance(subject.stop, results.Halving):
        raise OptionError("a bootstrap trains each round by itself; stop=hstree.Seconds(240), say")
    subject.with_kept(only=True, force=force)
    later += [later[-1]] * (n - len(later))
    return _rounds(subject, start, later, warm_start, updated)


def _rounds(
    subject: Subject,
    start: BuilderRow,
    later: Sequence[BuilderRow],
    warm_start: bool,
    updated: Callable[[Comparison], object] | None,
) -> Iterator[tuple[str, RowResult]]:
    """Yield each round when it is done; the arguments are checked."""
    runner, seed = subject.runner(subject.stop.total_seconds), subject.seeds[0]
    done: dict[Row, JobResult] = {}
    with locked(subject.home):
        for number, planned in enumerate([start, *later]):
            row: Row = planned
            limit = subject.limit(runner.first_seconds)
            if done:
                best = min(done, key=lambda one: done[one].valid)
                home = runner.folder(Job(best, seed))
                of_best = subject.home / f"round-{list(done).index(best)}"
                row = planned.from_vectors(runner.vectors_of(home / MODEL, done[best], of_best)[0])
                if warm_start:
                    limit["warm_start"] = home
            if row not in done:
                done[row] = runner.run(Job(row, seed), **limit)
            so_far = replace(subject, rows=list(done))
            table = Table(so_far, runner, {one: [[done[one]]] for one in done}, {})
            comparison = table.comparison(list(done), WITHIN, words=True)
            results.save(comparison, subject.home)
            if updated is not None:
                updated(comparison.in_folder(subject.home))
            yield f"round-{number}", comparison.row(str(row))


def _builder_row(row: Row | str) -> BuilderRow:
    parsed = Row.of(row)
    if not isinstance(parsed, BuilderRow):
        raise OptionError(f"{parsed} is not a way to build a tree; name one, such as gmm")
    return parsed
