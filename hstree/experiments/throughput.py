"""Training throughput of several output layers, measured in turns.

Only training steps are timed, not the drawing of batches or the validation. The layers take turns
in one process, so that other load on the machine affects all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.windows import Batch, Windows
from hstree.layers.registry import LayerSpec
from hstree.models import new_model
from hstree.training.trainer import Trainer
from hstree.tree import Tree

#: Minimum number of seconds that a layer trains for in one turn.
TURN = 0.7


def throughput(
    outputs: Mapping[str, Tree | LayerSpec], corpus: Corpus, *, rounds: int = 3, **options: Any
) -> dict[str, list[float]]:
    """Measure the tokens per second of whole training steps.

    Parameters
    ----------
    outputs : mapping of str to Tree or LayerSpec
    corpus : Corpus
        Training text, read in shuffled batches.
    rounds : int, default 3
        Number of turns of each layer, each of `TURN` seconds and two batches or more.
    **options
        Options of `hstree.models.new_model`.

    Returns
    -------
    dict of str to list of float
        Tokens per second of each layer in each round. Every turn begins with a new model, so that
        only one is in memory, and with a step that is not counted.
    """
    measured: dict[str, list[float]] = {name: [] for name in outputs}
    with progress.task("measuring speeds", total=rounds * len(outputs)) as task:
        for _ in range(rounds):
            for name, output in outputs.items():
                task.note(name)
                measured[name].append(_turn(output, corpus, options))
                task.advance()
    return measured


def _turn(output: Tree | LayerSpec, corpus: Corpus, options: Mapping[str, Any]) -> float:
    """Return the tokens per second of one turn."""
    model = new_model(output, **options)
    windows = model.windows(corpus)
    model.layer.prepare(windows)
    trainer = model.trainer(windows)
    tokens, seconds = 0, 0.0
    for number, (contexts, targets, _) in enumerate(_endless_batches(trainer, windows)):
        began = time.perf_counter()
        trainer.step(contexts, targets, trainer.learning_rate(0))
        if number > 0:
            seconds += time.perf_counter() - began
            tokens += len(targets)
        if seconds >= TURN and number > 1:
            break
    # Tokens of the text: sub-sampling leaves some of them out of the batches.
    return tokens / seconds * len(windows) / trainer.expected(windows)


def _endless_batches(trainer: Trainer[Any], windows: Windows) -> Iterator[Batch]:
    """Yield the batches of one shuffled epoch after the other."""
    while True:
        yield from trainer.epoch_batches(windows)
