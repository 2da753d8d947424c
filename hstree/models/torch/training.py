"""Training of networks and their heads.

The text is cut into parallel streams. Each batch has the next tokens of all streams, and the state
is carried over (truncated backpropagation). Adam trains the network; Adagrad trains the word
vectors and the head, on touched rows. The three have different learning rates. These rise from zero
in the warm-up, if any, and fall to zero over the epochs, or over the budget of seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hstree._arrays import Array, Int64
from hstree.data.windows import ContextBatches
from hstree.interop.torch.functions import row_gradient
from hstree.models.torch.contract import (
    call_network,
    check_state,
    first_state,
    flat_state,
    map_state,
)
from hstree.training.adagrad import TINY
from hstree.training.trainer import EpochLoop

#: Maximum norm of the gradient of the network.
MAX_NORM = 1.0
#: Initial sum of squared gradients of each row in Adagrad, for gradients of a summed loss. From 0,
#: the first step of a row has the length of the learning rate, even if its gradient is small.
INITIAL = 1.0


class RowAdagrad(torch.optim.Optimizer):
    """Adagrad with one sum of squared gradients per row, as in `hstree.training.adagrad`.

    A sparse gradient updates only its rows, and is overwritten. The sums begin with
    `initial_accumulator`. A scalar is one row. Each group of parameters has its learning rate "lr".
    """

    def __init__(self, groups: list[dict[str, Any]], initial_accumulator: float) -> None:
        super().__init__(groups, {})
        for group in groups:
            for parameter in group["params"]:
                size = parameter.shape[:1]
                squares = torch.full(size, initial_accumulator, device=parameter.device)
                self.state[parameter]["squares"] = squares

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the rows of all parameters."""
        groups = self.param_groups
        trained = [(p, g["lr"]) for g in groups for p in g["params"] if p.grad is not None]
        memories = Counter(_memory(p.grad) for p, _ in trained if p.grad.is_sparse)
        for parameter, lr in trained:
            gradient = parameter.grad
            squares = self.state[parameter]["squares"]
            if gradient.is_sparse:
                # Autograd drops the mark of coalesced gradients, which need not be sorted again
                if not _ascends(gradient._indices()[0]):
                    gradient = gradient.coalesce()
                rows = gradient._indices()[0]
                values = gradient._values()
                total = squares.index_select(0, rows) + _row_squares(values)
                squares.index_copy_(0, rows, total)
                # The gradient becomes the step, since a new array takes twice as long; tables whose
                # vectors are added share their gradients, and sums have expanded ones
                is_own = values.is_contiguous() and memories[_memory(parameter.grad)] == 1
                out = values if is_own else None
                values = torch.mul(values, _row_rates(total, values), out=out)
                parameter.add_(row_gradient(rows, values, len(parameter)), alpha=-lr)
            else:
                squares += _row_squares(gradient)
                rates = _row_rates(squares, gradient)
                parameter.addcmul_(gradient, rates, value=-lr)


def _ascends(rows: Tensor) -> bool:
    """Return whether rows (r,) ascend without repeats."""
    return bool((rows[1:] > rows[:-1]).all())


def _memory(gradient: Tensor) -> int:
    """Return the address of the memory that holds the values of a sparse gradient."""
    return gradient._values().untyped_storage().data_ptr()


def _row_squares(values: Tensor) -> Tensor:
    """Return the mean squares (r,) of the rows of values (r, ...); () for a scalar."""
    n = math.prod(values.shape[1:])
    flat = values.reshape((*values.shape[:1], n))
    squares: Tensor = torch.linalg.vecdot(flat, flat) / max(1, n)
    return squares


def _row_rates(total: Tensor, values: Tensor) -> Tensor:
    """Return the rate of each row from its sum (r,), for values (r, ...)."""
    rates: Tensor = (total + TINY).rsqrt()
    return rates.reshape((*total.shape, *[1] * (values.ndim - 1)))


class StreamBatches(ContextBatches):
    """A text as parallel streams, for training.

    Parameters
    ----------
    corpus : Corpus
    streams : int
        Maximum number of streams; a short text has fewer, so that each has some batches.
    length : int
        Number of tokens per stream in a batch.
    """

    def __init__(self, corpus: Any, streams: int, length: int) -> None:
        super().__init__(corpus, 0)
        self.streams = max(1, min(streams, len(corpus) // (4 * length)))
        self.length = length

    def stream_batches(self, rng: np.random.Generator) -> Iterator[tuple[Int64, bool]]:
        """Yield the ids (S, n + 1) of the tokens of each batch, and whether it is the first.

        The network reads the first n; the last n are the targets. The streams begin at a random
        token of the first batch length, so that each epoch cuts the batches differently.
        """
        n_tokens = len(self) // self.streams
        starts = np.arange(self.streams)[:, None] * n_tokens
        first = int(rng.integers(min(self.length, n_tokens)))
        for at in range(first, n_tokens, self.length):
            # The token before the first of a text is the last one, an <eos>
            step = np.arange(at - 1, min(at + self.length, n_tokens))
            yield self.corpus.ids(starts + step).astype(np.int64), at == first


class NetworkTrainer(EpochLoop):
    """Trains the network and the head of a `hstree.models.torch.model.TorchModel`, in place."""

    def __init__(self, model: Any, streams: int) -> None:
        super().__init__(model)
        self.batch_size = streams * model.length
        self.network = model.module
        self.head = model.head
        self.device = model.torch_device
        self._model = model
        self._warmup_ratio: float = model.warmup_ratio

        # Adagrad trains the sparse word vectors and the head, Adam everything else
        tables = (
            m for m in self.network.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)
        )
        # Modules may share a table
        sparse: dict[Any, None] = dict.fromkeys(table.weight for table in tables if table.sparse)
        self._dense = [p for p in self.network.parameters() if p not in sparse]
        # the loss is a mean over the batch, so that gradients are those of the sum / batch size
        initial = INITIAL / self.batch_size**2
        words = {"params": list(sparse), "lr": model.embedding_rate}
        head = {"params": list(self.head.parameters()), "lr": self.rate}
        self._adagrad = RowAdagrad([words, head], initial)
        # a group, because a network may have no other parameters
        self._adam = torch.optim.Adam([{"params": self._dense}], lr=model.network_rate)
        groups = [*self._adagrad.param_groups, *self._adam.param_groups]
        #: Each group of parameters and its highest learning rate.
        self._highest = [(group, group["lr"]) for group in groups]
        for parameter in self._dense:
            # as Adam's first step creates them, so that a checkpoint can set them before it
            self._adam.state[parameter] = {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        #: State of all streams after the last batch, in tensors that are reused.
        self._stream_state = map_state(torch.clone, first_state(model, streams))

    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs: it rises in the warm-up, and falls to 0."""
        progress = min(1.0, done / max(1, self.epochs))
        if progress < self._warmup_ratio:
            return self.rate * progress / self._warmup_ratio
        return self.rate * (1 - progress) / (1 - self._warmup_ratio)

    def epoch_batches(self, train: Any, epoch: int = 1) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """Yield the input ids (S, n), the targets (S n,), and whether a stream begins.

        `train` is a `StreamBatches`.
        """
        rng = np.random.default_rng([self._random_state, 1, epoch])
        torch.manual_seed(int(rng.integers(1 << 62)))
        # Validation leaves both in evaluation mode
        self.network.train()
        self.head.train()
        for ids, is_first in train.stream_batches(rng):
            tokens = torch.from_numpy(ids).to(self.device)
            yield tokens[:, :-1], tokens[:, 1:].flatten(), is_first

    def step(
        self, contexts: Tensor, targets: Tensor, learning_rate: float, prepared: bool = False
    ) -> float:
        """Train on one batch; return its summed loss in nats. `prepared`: whether streams begin."""
        state = None if prepared else self._stream_state
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            hidden, state = call_network(self._model, contexts, state)
        check_state(self._model.network_name, self._stream_state, state)
        loss = self.head.loss(hidden.flatten(0, 1).float(), targets)
        self._adagrad.zero_grad()
        self._adam.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._dense, MAX_NORM)

        # The loop ends training with the weights before this batch
        summed = float(loss.detach()) * len(targets)
        if not (math.isfinite(summed) and math.isfinite(norm)):
            return math.nan

        # All rates fall together
        for group, highest in self._highest:
            group["lr"] = highest * learning_rate / self.rate
        self._adagrad.step()
        self._adam.step()
        for kept, new in zip(flat_state(self._stream_state), flat_state(state), strict=True):
            kept.copy_(new.detach())
        return summed

    def validate(self, valid: ContextBatches) -> float:
        """Return the perplexity of a text."""
        return float(self._model.score(valid.corpus).perplexity)

    @property
    def is_likelihood(self) -> bool:
        """Whether losses are negative log-likelihoods."""
        return bool(self._model.spec.kind.layer.is_likelihood)

    def trained_arrays(self) -> dict[str, Tensor]:
        """Return the tensors of the network and the head."""
        tensors: dict[str, Tensor] = self._model.tensors()
        return tensors

    def other_arrays(self) -> dict[str, Tensor]:
        """Return the states of the optimisers and of the streams."""
        arrays = {f"state {i}": tensor for i, tensor in enumerate(flat_state(self._stream_state))}
        for optimiser in (self._adagrad, self._adam):
            parameters = [p for group in optimiser.param_groups for p in group["params"]]
            for i, parameter in enumerate(parameters):
                for name, tensor in optimiser.state[parameter].items():
                    arrays[f"{name} of {type(optimiser).__name__} {i}"] = tensor
        return arrays

    def noise_state(self) -> dict[str, Any]:
        """Return the states of torch's generators, from which dropout and samples are drawn."""
        state = {"cpu": torch.get_rng_state().tolist()}
        if self.device.type == "cuda":
            state["cuda"] = torch.cuda.get_rng_state(self.device).tolist()
        return state

    def set_noise_state(self, state: dict[str, Any]) -> None:
        """Set the states of torch's generators."""
        torch.set_rng_state(torch.tensor(state["cpu"], dtype=torch.uint8))
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(torch.tensor(state["cuda"], dtype=torch.uint8), self.device)

    def as_array(self, values: Tensor) -> Array:
        """Return a tensor as an array, which shares its memory on a CPU."""
        array: Array = values.detach().cpu().numpy()
        return array

    def assign(self, values: Tensor, saved: Array) -> None:
        """Set a tensor to saved values."""
        with torch.no_grad():
            values.copy_(torch.tensor(saved))
