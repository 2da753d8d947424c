"""Trees from text alone, round by round: each is built from the vectors of the best model so far.

Mnih & Hinton (2008, section 4) begin with a random tree; the mean predicted vectors of the model
that is trained on it make the next tree.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hstree._files import locked
from hstree._parallel import doing_jobs
from hstree._text import brief
from hstree.errors import OptionError
from hstree.experiments.candidate import BuilderCandidate, Candidate, Job
from hstree.experiments.compare import Table
from hstree.experiments.results import CandidateResult, Comparison, Epochs, Halving, Stop
from hstree.experiments.run import MODEL, Runner

#: Maximum number of rounds.
MOST_ROUNDS = 10_000


def bootstrap(
    text: Any,
    folder: str | os.PathLike[str],
    candidates: Sequence[Candidate | str] = ("gmm",),
    *,
    rounds: int | None = None,
    stop: Stop | None = None,
    force: bool = False,
    updated: Callable[[Comparison], object] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Iterator[tuple[str, CandidateResult]]:
    """Build and train one tree after another from a text; finished rounds are not done again.

    Iterate over it: a round is done when its result is asked for. Arguments are checked at once.
    The rounds are candidates of an ordinary comparison in the folder, built from files of vectors
    there.

    Parameters
    ----------
    text, folder, force, **options
        As in `compare`.
    candidates : sequence of str, default ("gmm",)
        Candidates of the rounds from 1 on, which are built from vectors: "gmm epsilon=0.4",
        "classes cluster_by=vectors"; the last is that of all later rounds.
    rounds : int, optional
        Number of trees after the first, 10,000 at most; by default one for each of `candidates`.
    stop : Epochs or Seconds, optional
        When each training stops; at most 20 epochs by default.
    updated : callable, optional
        Called with the comparison so far after each round.
    n_jobs : int, optional
        Number of processes that build the tree of a round; a round needs the one before it.

    Yields
    ------
    name : str
        "round-0", "round-1", ...
    result : CandidateResult

    Raises
    ------
    OptionError
        When there are fewer rounds than candidates, or too many, or a candidate cannot stand in its
        round.
    InputError
        When the folder holds a comparison of another text, model or rule.
    """
    ways = [BuilderCandidate("random")]
    for one in map(Candidate.parse, candidates):
        if not isinstance(one, BuilderCandidate) or one.source is None:
            raise OptionError(
                f"{one} is not built from vectors; name a candidate that is, such as gmm"
            )
        ways.append(one)
    n = len(candidates) if rounds is None else rounds
    if not 1 <= len(candidates) <= n:
        raise OptionError(
            f"rounds is {n}, for {len(candidates)} candidates; every candidate needs a round"
        )
    if n > MOST_ROUNDS:
        raise OptionError(f"rounds is {brief(n)}; it must be {MOST_ROUNDS:,} or less")
    runner = Runner.of(text, list(dict.fromkeys(ways)), folder, stop or Epochs(), 1, options)
    if isinstance(runner.stop, Halving):
        raise OptionError("a bootstrap trains each round by itself; stop=hstree.Seconds(240), say")
    runner.with_kept(only=True, force=force)
    ways += [ways[-1]] * (n - len(candidates))

    def trained_rounds() -> Iterator[tuple[str, CandidateResult]]:
        """Yield each round when it is done."""
        table = Table(replace(runner, candidates=[]), updated=updated)
        with locked(runner.home):
            for number, way in enumerate(ways):
                done, candidate = table.runner.candidates, way
                if done:
                    best = min(done, key=lambda one: table.done[one.name][0][0].valid)
                    home = runner.folder(Job(best, runner.seeds[0]))
                    of_best = runner.home / f"round-{done.index(best)}"
                    file = runner.vectors_of(home / MODEL, table.done[best.name][0][0], of_best)[0]
                    candidate = way.from_vectors(file.relative_to(runner.home))
                table.runner = replace(
                    table.runner, candidates=list(dict.fromkeys([*done, candidate]))
                )
                with runner.backend():
                    with doing_jobs(n_jobs):
                        table.runner.tree(Job(candidate, runner.seeds[0]))
                    table.finish([candidate], runner.first_seconds)
                    if number == n:  # the last round; round 0 is the random tree
                        table.score_all(table.runner.candidates)
                    so_far = table.save()
                yield f"round-{number}", so_far.candidate(candidate.name)

    return trained_rounds()
