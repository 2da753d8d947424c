"""Speeds of trained models in training and in testing, measured alternately in one process.

Training is timed with the creation of batches and without validation. The models alternate, so that
other load on the machine affects all of them equally.
"""

import platform
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from timeit import timeit
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hstree import progress
from hstree._parallel import n_cores, n_threads
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.splits import Splits
from hstree.experiments.job import FAILURES, warn_of_failure
from hstree.experiments.results import Machine, Positive, Record
from hstree.experiments.store import SPEEDS, Store
from hstree.kernels import backend_name
from hstree.layers.registry import LayerSpec
from hstree.models import BaseModel, load_model, new_model
from hstree.tree import Tree

#: Number of rounds, in each of which every candidate is measured once.
ROUNDS = 3
#: Minimum seconds of one measurement in training and in testing.
TURN = 0.5
TESTING_TURN = 0.1
#: Minimum seconds of a call in testing after which its size is not increased.
LONGEST_CALL = 0.2
#: Number of positions scored at a time, and maximum number of log-probabilities at a time.
BATCH = 1024
TABLE_LIMIT = 1 << 23
#: Number of most probable words in the measurement of `top_k`.
TOP = 10

#: Tokens per second of each round, by measure and name of the candidate.
Speeds = dict[str, dict[str, Annotated[list[Positive], Meta(min_length=1)]]]


def machine() -> Machine:
    """Return a description of this computer."""
    return Machine(
        cores=n_cores(),
        system=platform.platform(),
        processor=platform.processor() or platform.machine(),
    )


class _Kept(Record, frozen=True):
    """Speeds by measure and job, the keys of the jobs, and the conditions of measurement."""

    conditions: dict[str, Any]
    keys: dict[str, str]
    speeds: Speeds


def kept_speeds(
    store: Store,
    keys: Mapping[str, str],
    models: Mapping[str, Path],
    splits: Splits,
    rounds: int,
) -> tuple[Speeds, dict[str, str]]:
    """Return the speeds of models, and the errors of those that failed, by name.

    Each model is measured once, and its speeds are kept. Models without speeds in the store are
    measured alternately. Speeds that were measured under other conditions, such as on another
    machine, are not comparable: then all models are measured. With 0 rounds, nothing is measured.
    `keys` maps each name to the key of its job, and `models` to the folder of its trained model.
    """
    conditions = {
        **msgspec.to_builtins(machine()),
        "threads": n_threads(),
        "kernels": backend_name(),
        "hstree": __version__,
    }

    # Speeds under the same conditions, of models that have not been trained again
    kept = store.load(SPEEDS, _Kept)
    if kept is None or kept.conditions != conditions:
        kept = _Kept(conditions, {}, {})
    measured = kept.speeds.get("training", {})
    known = [name for name in models if name in measured and kept.keys.get(name) == keys[name]]
    waiting = {name: folder for name, folder in models.items() if name not in known}

    failures: dict[str, str] = {}
    if waiting and rounds > 0:
        new, failures = _in_turns(waiting, splits, rounds)
        merged = {
            measure: kept.speeds.get(measure, {}) | new.get(measure, {})
            for measure in kept.speeds | new
        }
        finished = waiting.keys() - failures
        # A failed model keeps its old key, so that its old speeds are not taken for new ones
        new_keys = {name: keys[name] for name in finished}
        kept = _Kept(conditions, kept.keys | new_keys, merged)
        store.save(SPEEDS, kept)
        known += finished
    speeds = {
        measure: {name: by_name[name] for name in known if name in by_name}
        for measure, by_name in kept.speeds.items()
    }
    return speeds, failures


def _in_turns(
    models: Mapping[str, Path], splits: Splits, rounds: int
) -> tuple[Speeds, dict[str, str]]:
    """Measure the speeds of the models in these folders, one after another in each round.

    A model that fails is not measured again. Returns the speeds of the other models, and the errors
    of failed models.
    """
    speeds: Speeds = {}
    failures: dict[str, str] = {}
    with progress.task("measuring speeds", total=rounds * len(models)) as task:
        for _ in range(rounds):
            for name, folder in models.items():
                task.note(name)
                task.advance()
                if name in failures:
                    continue
                try:
                    turn = scoring_turn(load_model(folder), splits.test)
                    # The cost of a step may depend on the weights: measure the trained model
                    turn["training"] = training_turn(folder, splits.train)
                except FAILURES as error:
                    failures[name] = warn_of_failure(name, error)
                    for by_name in speeds.values():
                        by_name.pop(name, None)
                    continue
                for measure, speed in turn.items():
                    speeds.setdefault(measure, {}).setdefault(name, []).append(speed)
    return speeds, failures


def training_turn(
    output: Tree | LayerSpec | Path,
    corpus: Corpus,
    clock: Callable[[], float] = time.perf_counter,
    **options: Any,
) -> float:
    """Return the tokens per second of training in one measurement, without the first step.

    If `output` is the folder of a trained model, its training continues. Otherwise a new model is
    trained, with the options of `hstree.models.new_model`.
    """
    model = load_model(output) if isinstance(output, Path) else new_model(output, **options)
    tokens = 0.0
    seconds = 0.0
    began = 0.0
    for number, (n_trained, is_whole) in enumerate(model.training_steps(corpus)):
        # The first step compiles and allocates
        if number == 0:
            began = clock()
            continue
        seconds = clock() - began
        tokens += n_trained
        if seconds >= TURN and number > 1 and is_whole:
            break
    return tokens / seconds


def scoring_turn(model: BaseModel, corpus: Corpus) -> dict[str, float]:
    """Return the tokens per second of a trained model in testing, by measure.

    The measures are ``nll`` (the probability of one word), ``top_k`` (the 10 most probable words)
    and, for layers that report ln Z, ``unnormalised`` (the score of one word).
    """
    calls = model.timed_calls(corpus, BATCH, TABLE_LIMIT, TOP)
    return {name: _per_second(call, most) for name, (call, most) in calls.items()}


def _per_second(function: Callable[[int], object], most: int) -> float:
    """Call a function repeatedly on at most `most` positions; return positions per second.

    The number of positions grows until a call takes `LONGEST_CALL`. A slow layer is then measured
    on few positions, but on enough that reading its weights is not most of the work. The first call
    is not timed, because it may compute values that later calls use.
    """
    function(1)
    n = 1
    seconds = timeit(partial(function, 1), number=1)
    while n < most and seconds < LONGEST_CALL:
        n = min(4 * n, most)
        seconds = timeit(partial(function, n), number=1)
        # This call may have compiled kernels for larger batches
        if seconds >= LONGEST_CALL:
            seconds = timeit(partial(function, n), number=1)
    if seconds >= TESTING_TURN:
        return n / seconds
    calls = 0
    spent = 0.0
    began = time.perf_counter()
    # At least one call, even if the machine pauses before it
    while spent < TESTING_TURN:
        function(n)
        calls += 1
        spent = time.perf_counter() - began
    return n * calls / spent
