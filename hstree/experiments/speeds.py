"""How fast models train on several trees: whole training steps, measured in turns.

Only the steps are timed, not the drawing of batches or the validation. Because the trees take
turns in one process, whatever else the machine does falls on all of them alike.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.windows import Batch, Windows
from hstree.models import new_model
from hstree.training.trainer import Trainer
from hstree.tree import Tree

#: Seconds that a tree trains for in one turn, at least.
TURN = 0.7


def speeds(
    trees: Mapping[str, Tree], corpus: Corpus, *, rounds: int = 3, **options: Any
) -> dict[str, list[float]]:
    """Measure the tokens a second of whole training steps.

    Parameters
    ----------
    trees : mapping of str to Tree
    corpus : Corpus
        Trained on, in shuffled batches.
    rounds : int
        Turns of each tree, `TURN` seconds each or two batches.
    **options
        Those of `hstree.models.new_model`.

    Returns
    -------
    dict of str to list of float
        A figure a round for each tree. Every turn begins with a fresh model, so that only one
        is held in memory, and with a step that is not counted.
    """
    found: dict[str, list[float]] = {name: [] for name in trees}
    with progress.task("measuring speeds", total=rounds * len(trees)) as task:
        for _ in range(rounds):
            for name, tree in trees.items():
                task.note(name)
                found[name].append(_turn(tree, corpus, options))
                task.advance()
    return found


def _turn(tree: Tree, corpus: Corpus, options: Mapping[str, Any]) -> float:
    """Return the tokens a second of one turn."""
    model = new_model(tree, **options)
    windows = model.windows(corpus)
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
    # Of the text: sub-sampling leaves some of its tokens out.
    return tokens / seconds * len(windows) / trainer.expected(windows)


def _endless_batches(trainer: Trainer[Any], windows: Windows) -> Iterator[Batch]:
    """Yield the batches of one shuffled epoch after the other."""
    while True:
        yield from trainer.batches(windows)
