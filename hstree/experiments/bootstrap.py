"""Trees from a text alone, built in rounds, each from the vectors of the best model so far.

Mnih & Hinton (2008, section 4) train a model with a random tree, and build the next tree from the
mean predicted vectors of this model.
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
    """Build trees from a text in rounds, and train a model with each; skip finished rounds.

    The rounds are the candidates of an ordinary comparison in the folder. Each tree is built from a
    file with the vectors that the best model so far has learned.

    Parameters
    ----------
    text, folder, force, **options
        As in `compare`.
    candidates : sequence of str, default ("gmm",)
        Candidates of the rounds from 1 on, built from vectors, such as "gmm epsilon=0.4" or
        "classes cluster_by=vectors". The last candidate is used in all later rounds.
    rounds : int, optional
        Number of trees after the first (default: one per candidate; maximum: 10,000).
    stop : Epochs or Seconds, optional
        Stopping rule of each round (default: at most 20 epochs).
    updated : callable, optional
        Called with the comparison so far after each round.
    n_jobs : int, optional
        Number of processes that build a tree. The rounds themselves run one after another.

    Returns
    -------
    Comparison
        Its candidates are the rounds, beginning with the random tree of round 0. A round with the
        same tree and vectors as an earlier round is the same candidate.

    Raises
    ------
    OptionError
        If there are fewer rounds than candidates or too many rounds, or if a candidate is not built
        from vectors.
    InputError
        If the folder contains a comparison with another text, model or stopping rule.
    """
    # All arguments are checked before the first round
    templates = _templates(candidates, rounds)
    setting, _ = read_setting(text, list(dict.fromkeys(templates)), stop or Epochs(), 1, options)
    if setting.stop.is_shared:
        raise OptionError(
            "the rounds of a bootstrap cannot share minutes; use, for example, hstree.Seconds(240)"
        )
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
            # If the best model is still the same, the round equals an earlier one
            if candidate not in done:
                done.append(candidate)
            jobs = Schedule([candidate], setting, store, n_jobs=1)
            # Several processes build the tree, then this process trains with all threads
            with doing_jobs(n_jobs):
                build_tree(setting.jobs(candidate)[0], setting, store, setting.budget)
            writer.collect(jobs.train_all())
            if number == len(templates) - 1:
                # Candidates that the time limit allows
                jobs = Schedule(done, setting, store, n_jobs=1)
                writer.collect(jobs.score_all(jobs.candidates_to_rescore(writer.finished)))
            comparison = writer.save()
    return comparison


def _templates(candidates: Sequence[Candidate | str], rounds: int | None) -> list[Candidate]:
    """Return the candidate of each round, without the vectors from which it is built."""
    require_list(candidates)
    templates: list[Candidate] = []
    for candidate in map(Candidate.parse, candidates):
        if candidate.models > 1 or candidate.source is None:
            raise OptionError(
                f"{candidate} is not built from vectors; use a candidate that is, such as gmm"
            )
        templates.append(candidate)
    n_rounds = len(templates) if rounds is None else checked_count("rounds", rounds)
    if not 1 <= len(templates) <= n_rounds:
        raise OptionError(
            f"rounds is {n_rounds}, for {len(templates)} candidates; every candidate needs a round"
        )
    if n_rounds > MOST_ROUNDS:
        raise OptionError(f"rounds is {brief(n_rounds)}; it must be {MOST_ROUNDS:,} or less")
    # Round 0 is a random tree; the last candidate is repeated
    later = [templates[-1]] * (n_rounds - len(templates))
    return [BuilderCandidate("random"), *templates, *later]


def _from_best_vectors(
    template: Candidate,
    done: Sequence[Candidate],
    setting: Setting,
    store: Store,
    writer: ResultsWriter,
) -> Candidate:
    """Return the candidate that builds its tree from the vectors of the best model so far."""
    results = [writer.finished[candidate][0] for candidate in done]
    best = min(range(len(done)), key=lambda number: results[number].valid)
    model_folder = store.model_folder(setting.jobs(done[best])[0])
    folder = store.home / f"round-{best}"
    # The path is relative to the folder of the comparison, which may be moved
    file, _ = mean_vectors(model_folder, results[best], setting, store, folder)
    option = shlex.quote(f"{VECTORS_FILE.name}={file.relative_to(store.home)}")
    output, plus, layer = str(template).partition(" + ")
    return Candidate.parse(f"{output} {option}{plus}{layer}")
