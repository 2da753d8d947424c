"""Reading of texts without training: all tokens in order, or more tokens of some texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from hstree.models.torch.contract import call_network

#: Number of windows of a text that a network without a state reads at a time.
WINDOWS = 32


@torch.no_grad()
def read(model: Any, ids: Tensor) -> Iterator[Tensor]:
    """Yield the hidden vectors (n, d) after the tokens (T,) of a text, in order, n at a time.

    A network with a state reads all tokens in order. A network without one reads overlapping
    windows of the model's `length`; the second half of each window is new. The network and the head
    are in evaluation mode afterwards.
    """
    model.module.eval()
    model.head.eval()
    length = model.length
    hidden, state = call_network(model, ids[None, :length], None)
    yield hidden[0].float()
    if state is not None:
        for start in range(length, len(ids), length):
            hidden, state = call_network(model, ids[None, start : start + length], state)
            yield hidden[0].float()
        return
    step = max(1, length // 2)
    n_read = min(length, len(ids))
    windows = ids.unfold(0, n_read, step)[1:]
    for start in range(0, len(windows), WINDOWS):
        hidden, _ = call_network(model, windows[start : start + WINDOWS], None)
        yield hidden[:, -step:].flatten(0, 1).float()
    n_read += step * len(windows)
    if n_read < len(ids):
        hidden, _ = call_network(model, ids[None, n_read - length + step :], None)
        yield hidden[0, length - step :].float()


@torch.no_grad()
def read_on(model: Any, ids: Tensor, state: Any = None) -> tuple[Tensor, Any]:
    """Return the hidden vectors (B, d) after more tokens (B, n) of texts, and the state.

    A network without a state reads only the last tokens of each text, at most `length`. The network
    and the head are in evaluation mode afterwards.
    """
    model.module.eval()
    model.head.eval()
    first, *others = torch.split(ids, model.length, 1)
    hidden, state = call_network(model, first, state)
    if others and state is None:
        hidden, _ = call_network(model, ids[:, -model.length :], None)
    else:
        for part in others:
            hidden, state = call_network(model, part, state)
    return hidden[:, -1].float(), state


def in_parts(pieces: Iterable[Tensor], size: int) -> Iterator[Tensor]:
    """Yield the rows of tensors in order, `size` at a time; fewer at the end."""
    waiting: list[Tensor] = []
    n = 0
    for piece in pieces:
        waiting.append(piece)
        n += len(piece)
        if n > size:
            *full, rest = torch.split(torch.cat(waiting), size)
            yield from full
            waiting = [rest]
            n = len(rest)
    if n:
        yield torch.cat(waiting)
