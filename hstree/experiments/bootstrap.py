"""Trees from text alone, round by round: each is built from the vectors of the best model so far.

Mnih & Hinton (2008, section 4) begin with a random tree; the mean predicted vectors of the model
that is trained on it make the next tree.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from hstree._files import locked
from hstree._options import checked_count
from hstree._parallel import doing_jobs
from hstree._text import brief
from hstree.errors import OptionError
from hstree.experiments.candidate import VECTORS_FILE, BuilderCandidate, Candidate, require_list
from hstree.experiments.continuation import with_kept_candidates
from hstree.experiments.job import build_tree, mean_vectors
from hstree.experiments.results import Comparison, Epochs, Stop
from hstree.experiments.schedule import Schedule
from hstree.experiments.setting import Setting, read_setting
from hstree.experiments.store import Store
from hstree.experiments.writer import ResultsWriter

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
) -> Comparison:
    """Build and train one tree after another from a text; finished rounds are not done again.

    The rounds are candidates of an ordinary comparison in the folder, in their order. Each is built
    from a file of vectors there, which the best model so far has learned.

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

    Returns
    -------
    Comparison
        Its candidates are the rounds, from the random tree of round 0 on. A round whose tree and
        vectors are those of an earlier one is that candidate.

    Raises
    ------
    OptionError
        When there are fewer rounds than candidates, or too many, or a candidate cannot stand in its
        round.
    InputError
        When the folder holds a comparison of another text, model or rule.
    """
    # all that was given is checked before the first round
    templates = _templates(candidates, rounds)
    setting, _ = read_setting(text, list(dict.fromkeys(templates)), stop or Epochs(), 1, options)
    if setting.stop.is_shared:
        raise OptionError("a bootstrap trains each round by itself; stop=hstree.Seconds(240), say")
    store = Store(folder)
    done: list[Candidate] = []
    writer = ResultsWriter(done, setting, store, updated)
    with locked(store.home), setting.backend():
        with_kept_candidates([], setting, store, only=True, force=force)
        store.save_words(setting.splits.train.counted_vocabulary())
        for number, template in enumerate(templates):
            candidate = template
            if done:
                candidate = _from_best_vectors(template, done, setting, store, writer)
            # the best model may not have changed, so that a round is that of an earlier one
            if candidate not in done:
                done.append(candidate)
            jobs = Schedule([candidate], setting, store, n_jobs=1)
            # the tree is built by several processes, then trained by all threads of this one
            with doing_jobs(n_jobs):
                build_tree(setting.jobs(candidate)[0], setting, store, setting.budget)
            writer.collect(jobs.train_all())
            if number == len(templates) - 1:
                # as far as the time allows it
                jobs = Schedule(done, setting, store, n_jobs=1)
                writer.collect(jobs.score_all(jobs.candidates_to_rescore(writer.finished)))
            comparison = writer.save()
    return comparison


def _templates(candidates: Sequence[Candidate | str], rounds: int | None) -> list[Candidate]:
    """Return the candidate of each round, before it is given the vectors that it is built from."""
    require_list(candidates)
    templates: list[Candidate] = []
    for candidate in map(Candidate.parse, candidates):
        if candidate.models > 1 or candidate.source is None:
            raise OptionError(
                f"{candidate} is not built from vectors; name a candidate that is, such as gmm"
            )
        templates.append(candidate)
    n_rounds = len(templates) if rounds is None else checked_count("rounds", rounds)
    if not 1 <= len(templates) <= n_rounds:
        raise OptionError(
            f"rounds is {n_rounds}, for {len(templates)} candidates; every candidate needs a round"
        )
    if n_rounds > MOST_ROUNDS:
        raise OptionError(f"rounds is {brief(n_rounds)}; it must be {MOST_ROUNDS:,} or less")
    # the random tree is round 0; the last candidate repeats
    later = [templates[-1]] * (n_rounds - len(templates))
    return [BuilderCandidate("random"), *templates, *later]


def _from_best_vectors(
    template: Candidate,
    done: Sequence[Candidate],
    setting: Setting,
    store: Store,
    writer: ResultsWriter,
) -> Candidate:
    """Return a candidate that is built from the vectors of the best model so far."""
    results = [writer.finished[candidate][0] for candidate in done]
    best = min(range(len(done)), key=lambda number: results[number].valid)
    model_folder = store.model_folder(setting.jobs(done[best])[0])
    folder = store.home / f"round-{best}"
    # relative to the folder of the comparison, which may be moved
    file, _ = mean_vectors(model_folder, results[best], setting, store, folder)
    option = shlex.quote(f"{VECTORS_FILE.name}={file.relative_to(store.home)}")
    output, plus, layer = str(template).partition(" + ")
    return Candidate.parse(f"{output} {option}{plus}{layer}")
