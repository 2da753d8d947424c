"""Throughput of several output layers in training and in testing, measured in turns.

What is timed in training is the drawing of batches and their steps, not the validation. The layers
take turns in one process, so that other load on the machine affects all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.windows import Batch, Windows
from hstree.layers.base import OutputLayer
from hstree.layers.hooks import hooks_of
from hstree.layers.registry import LayerSpec
from hstree.models import Model, new_model
from hstree.models import load as load_model
from hstree.models.base import sum_by_target
from hstree.training.trainer import Trainer
from hstree.tree import Tree

#: Minimum number of seconds that a layer trains for in one turn.
TURN = 0.7
#: The same of each measurement in testing.
TESTING_TURN = 0.1
#: Number of seconds from which on a call in testing is not made longer.
LONGEST_CALL = 0.5
#: Positions scored at a time; fewer where all their log-probabilities are more than this many.
BATCH, TABLE_LIMIT = 1024, 1 << 23
#: What is measured in testing; the last, of layers that report ln Z.
IN_TESTING = ("nll", "log_prob", "top_k", "unnormalised")
#: Number of the most probable words that `top_k` is measured with.
TOP = 10


def throughput(
    outputs: Mapping[str, Tree | LayerSpec | Path],
    corpus: Corpus,
    *,
    rounds: int = 3,
    **options: Any,
) -> dict[str, list[float]]:
    """Measure the tokens per second of training, the drawing of batches included.

    Parameters
    ----------
    outputs : mapping of str to Tree, LayerSpec or Path
        The folder of a trained model is trained on: layers that draw until their samples suffice
        are faster before they have learned anything. Otherwise a new model is trained.
    corpus : Corpus
        Training text, read in shuffled batches.
    rounds : int, default 3
        Number of turns of each layer, each of `TURN` seconds, two batches and one
        `TrainingHooks.period` or more.
    **options
        Options of `hstree.models.new_model`, for new models.

    Returns
    -------
    dict of str to list of float
        Tokens per second of each layer in each round. Every turn begins with the same model, so
        that only one is in memory, and with a step that is not counted.
    """
    measured: dict[str, list[float]] = {name: [] for name in outputs}
    with progress.task("measuring speeds", total=rounds * len(outputs)) as task:
        for _ in range(rounds):
            for name, output in outputs.items():
                task.note(name)
                measured[name].append(_turn(output, corpus, options))
                task.advance()
    return measured


def _turn(output: Tree | LayerSpec | Path, corpus: Corpus, options: Mapping[str, Any]) -> float:
    """Return the tokens per second of one turn."""
    model = load_model(output) if isinstance(output, Path) else new_model(output, **options)
    windows = model.windows(corpus)
    hooks_of(model.layer).prepare(windows)
    trainer = model.trainer(windows)
    map_memory(model)
    tokens, seconds, began = 0, 0.0, 0.0
    for number, (contexts, targets, _) in enumerate(endless_batches(trainer, windows)):
        trainer.step(contexts, targets, trainer.learning_rate(0))
        if number == 0:
            began = time.perf_counter()
            continue
        seconds = time.perf_counter() - began
        tokens += len(targets)
        if seconds >= TURN and number > 1 and number % hooks_of(model.layer).period == 0:
            break
    # Tokens of the text: sub-sampling leaves some of them out of the batches.
    return tokens / seconds * len(windows) / trainer.expected(windows)


def map_memory(model: Model[Any]) -> None:
    """Write the parameters of a model once, as they are, so that all of their memory is there.

    Otherwise the first batches wait for the pages of new arrays: with millions of rows, a hundred
    times as long as they compute.
    """
    for array in model.parameters().values():
        np.multiply(array, 1, out=array)


def endless_batches(trainer: Trainer[Any], windows: Windows) -> Iterator[Batch]:
    """Yield the batches of one shuffled epoch after the other."""
    for epoch in count(1):
        yield from trainer.epoch_batches(windows, epoch)


def scoring_throughput(
    models: Mapping[str, Path], corpus: Corpus, *, rounds: int = 3
) -> dict[str, dict[str, list[float]]]:
    """Measure the tokens per second of trained models in testing, hidden vectors included.

    Parameters
    ----------
    models : mapping of str to Path
        Folders of saved models.
    corpus : Corpus
        Text to score; its first batch is scored again and again.
    rounds : int, default 3

    Returns
    -------
    dict of str to dict of str to list of float
        For ``nll`` (the probability of one word), ``log_prob`` (of all words), ``top_k`` (of the
        10 most probable words) and ``unnormalised`` (one word's score, of layers that report ln Z):
        the tokens per second of each model in each round.
    """
    measured: dict[str, dict[str, list[float]]] = {}
    with progress.task("measuring speeds in testing", total=rounds * len(models)) as task:
        for _ in range(rounds):
            for name, folder in models.items():
                task.note(name)
                for what, speed in scoring_turn(load_model(folder), corpus).items():
                    measured.setdefault(what, {}).setdefault(name, []).append(speed)
                task.advance()
    return measured


def scoring_turn(
    model: Model[Any], corpus: Corpus, measures: Sequence[str] = IN_TESTING
) -> dict[str, float]:
    """Return the tokens per second of some measurements of `scoring_throughput` in one turn.

    ``vectors`` is the sum of hidden vectors by their targets, as for mean predicted vectors.
    """
    contexts, targets, _ = next(iter(model.windows(corpus).batches(BATCH)))
    some = max(1, TABLE_LIMIT // model.layer.n_labels)
    hidden, layer = model.context_model.hidden, model.layer

    def after(n: int) -> OutputLayer:
        return hooks_of(layer).in_context(contexts[:n])

    # What to do with the first n positions, and the most positions at a time
    work: dict[str, tuple[Callable[[int], object], int]] = {
        "nll": (lambda n: model.context_model.nll(layer, contexts[:n], targets[:n]), BATCH),
        "log_prob": (lambda n: after(n).log_prob(hidden(contexts[:n])), some),
        "top_k": (lambda n: after(n).top_k(hidden(contexts[:n]), TOP), some),
    }
    work["vectors"] = (lambda n: sum_by_target(hidden(contexts[:n]), targets[:n]), BATCH)
    if layer.log_normaliser(hidden(contexts[:1])) is not None:
        work["unnormalised"] = (
            lambda n: after(n).unnormalised_nll(hidden(contexts[:n]), targets[:n]),
            BATCH,
        )
    return {
        measure: _per_second(work[measure][0], min(len(targets), work[measure][1]))
        for measure in measures
        if measure in work
    }


def _per_second(function: Callable[[int], object], most: int) -> float:
    """Call a function on at most `most` positions again and again; return positions per second.

    Calls begin with one position and grow until one takes `LONGEST_CALL`, so that a slow layer is
    measured on few, but not on so few that reading its weights is most of the work. The first call,
    which may have to compute what others use, is not counted.
    """
    function(1)
    n, seconds = 1, _seconds(function, 1)
    while n < most and seconds < LONGEST_CALL:
        n = min(4 * n, most)
        seconds = _seconds(function, n)
    calls, began = 0, time.perf_counter()
    if seconds >= TESTING_TURN:
        return n / seconds
    while (spent := time.perf_counter() - began) < TESTING_TURN:
        function(n)
        calls += 1
    return n * calls / spent


def _seconds(function: Callable[[int], object], n: int) -> float:
    began = time.perf_counter()
    function(n)
    return time.perf_counter() - began
