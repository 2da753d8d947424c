"""Scoring of a text by a context model and an output layer, position by position."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hstree import progress
from hstree._typing import Bool, Float64
from hstree.data.text_score import TextScore
from hstree.data.windows import Windows
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.training.context_model import ContextModel

#: Positions scored at a time.
BATCH = 1024


def score(model: ContextModel, layer: HierarchicalSoftmax, windows: Windows) -> TextScore:
    """Score every position of a text, without dropout."""
    total = total_of_oov = 0.0
    oov_tokens = 0
    for nll, oov in in_text_order(model, layer, windows):
        total += float(nll.sum())
        total_of_oov += float(nll[oov].sum())
        oov_tokens += int(oov.sum())
    return TextScore(total, len(windows), total_of_oov, oov_tokens)


def nlls(model: ContextModel, layer: HierarchicalSoftmax, windows: Windows) -> Float64:
    """Return the negative log-likelihood in nats of every token of a text, float64 (T,).

    In the order of the text, ``<eos>`` included, without dropout. A token that is not in the
    vocabulary has the nll of ``<unk>``.
    """
    found = np.empty(len(windows))
    done = 0
    for nll, _ in in_text_order(model, layer, windows):
        found[done : done + len(nll)] = nll
        done += len(nll)
    return found


def in_text_order(
    model: ContextModel, layer: HierarchicalSoftmax, windows: Windows
) -> Iterator[tuple[Float64, Bool]]:
    """Yield the nll of every token of a text and whether it is OOV, some tokens at a time."""
    with progress.task(f"scoring {windows.corpus.name}", len(windows), "tokens") as task:
        for contexts, targets, oov in windows.batches(BATCH):
            yield model.nll(layer, contexts, targets), oov
            task.advance(len(targets))
