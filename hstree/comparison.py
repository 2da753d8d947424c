"""The same model on several trees, under one budget.

Every tree gets the same text, the same starting word vectors, the same batches and the same
schedule (`training`), so that what differs is the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hstree import progress
from hstree.errors import InputError
from hstree.evaluation import Evaluation, Parts, evaluate
from hstree.tree import Tree


def compare(
    trees: Mapping[str, Tree], parts: Parts, **options: Any
) -> Iterator[tuple[str, Evaluation]]:
    """Evaluate trees over the same words, one after the other.

    Parameters
    ----------
    trees : mapping of str to Tree
        By name, in the order in which they are evaluated.
    parts : Parts
    **options
        Those of `hstree.evaluation.evaluate`, the same for all.

    Yields
    ------
    name : str
    evaluation : Evaluation
        As soon as it is there.

    Raises
    ------
    InputError
        When the trees are not over the same words: their perplexities could not be compared.
    KeyboardInterrupt
        When a training was interrupted: its figure could not be compared either.
    """
    words = {name: frozenset(tree.labels) for name, tree in trees.items()}
    first = next(iter(words))
    for name, own in words.items():
        if own != words[first]:
            raise InputError(
                f"the trees {first} and {name} are not over the same words; "
                "build both from one vocabulary, or their perplexities cannot be compared"
            )
    with progress.task("comparing trees", total=len(trees), unit="") as task:
        for name, tree in trees.items():
            task.note(name)
            found = evaluate(tree, parts, **options)
            if found.history.interrupted:
                raise KeyboardInterrupt
            yield name, found
            task.advance()
