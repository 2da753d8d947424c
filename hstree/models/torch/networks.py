"""Networks that read a text: a GRU, a transformer, and functions of the user that make one.

A network is called as ``network(ids, state)`` with label ids (S, L) of S parallel streams, and the
state that it returned for the tokens before them, or None. It returns the hidden vectors (S, L, d)
that predict the token after each, and a state: a tensor, a tuple of states, or None.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hstree._text import brief, named_error
from hstree.errors import OptionError
from hstree.models.torch.session import find_memory_error

#: Standard deviation of the starting word vectors.
EMBEDDING_SCALE = 0.1
#: Wavelengths of rotary positions reach this many tokens.
ROTARY_BASE = 10_000.0


class GRUNetwork(nn.Module):
    """Word vectors, then layers of gated recurrent units (Cho et al. 2014)."""

    def __init__(self, n_words: int, dim: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, dim, sparse=True)
        between = dropout if layers > 1 else 0.0  # torch warns about dropout after the only layer
        self.recurrent = nn.GRU(dim, dim, layers, batch_first=True, dropout=between)
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.embedding.weight, std=EMBEDDING_SCALE)

    def forward(self, ids: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the hidden vectors (S, L, d), and the state of each layer (layers, S, d)."""
        hidden, state = self.recurrent(self.dropout(self.embedding(ids)), state)
        return self.dropout(hidden), state


class TransformerNetwork(nn.Module):
    """Word vectors, then causal pre-norm transformer blocks (Vaswani et al. 2017).

    Positions are rotary (Su et al. 2021) or learned. It has no state: a token sees those before it
    in the same call.
    """

    def __init__(
        self,
        n_words: int,
        dim: int,
        *,
        layers: int,
        heads: int,
        dropout: float,
        length: int,
        learned: bool,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, dim, sparse=True)
        self.position = nn.Parameter(torch.zeros(length, dim)) if learned else None
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(dim, heads, dropout, rotary=not learned) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        nn.init.normal_(self.embedding.weight, std=EMBEDDING_SCALE)
        if self.position is not None:
            nn.init.normal_(self.position, std=EMBEDDING_SCALE)

    def forward(self, ids: Tensor, state: None) -> tuple[Tensor, None]:
        """Return the hidden vectors (S, L, d), and no state."""
        vectors = self.embedding(ids)
        if self.position is not None:
            vectors = vectors + self.position[: ids.shape[1]]
        hidden = self.dropout(vectors)
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden), None


class Block(nn.Module):
    """Causal self-attention and a layer of four times the width, each with a residual."""

    def __init__(self, dim: int, heads: int, dropout: float, *, rotary: bool) -> None:
        super().__init__()
        self.heads = heads
        self.rotary = rotary
        self.attention_norm = nn.LayerNorm(dim)
        self.attention_in = nn.Linear(dim, 3 * dim)
        self.attention_out = nn.Linear(dim, dim)
        self.wide_norm = nn.LayerNorm(dim)
        self.wide_in = nn.Linear(dim, 4 * dim)
        self.wide_out = nn.Linear(4 * dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden vectors (S, L, d) after the block."""
        s, n, d = hidden.shape
        # (3, S, heads, L, d / heads) queries, keys and values
        mixed = self.attention_in(self.attention_norm(hidden))
        query, key, value = mixed.view(s, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.rotary:
            query = rotated(query)
            key = rotated(key)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        attended = self.attention_out(attended.transpose(1, 2).reshape(s, n, d))
        hidden = hidden + self.dropout(attended)

        wide = functional.gelu(self.wide_in(self.wide_norm(hidden)))
        result: Tensor = hidden + self.dropout(self.wide_out(wide))
        return result


def rotated(vectors: Tensor) -> Tensor:
    """Rotate pairs of elements of vectors (..., L, d) by angles that grow with the position."""
    n, d = vectors.shape[-2:]
    pair = torch.arange(d // 2, device=vectors.device)
    position = torch.arange(n, device=vectors.device)
    # (L, d / 2) angle of each pair at each position
    angle = position[:, None] * ROTARY_BASE ** (-2 * pair / d)
    cosine = angle.cos().to(vectors.dtype)
    sine = angle.sin().to(vectors.dtype)
    first, second = vectors.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)


# A user's own network


def module_spec(network: str) -> ModuleSpec:
    """Find the module of a function, "package.module:function" or "file.py:function".

    Imports are searched last in the folder of the file, or else in the current folder. Of
    "package.module:function", this imports the packages, but not the module. Raises OptionError
    where there is none.
    """
    module, _, function = network.rpartition(":")
    if not (module and function.isidentifier()):
        reason = f"is {network!r}; it must be package.module:function or file.py:function"
        raise OptionError.about("network", reason)
    is_file = module.endswith(".py")
    # an installed program searches neither folder
    folder = os.path.abspath(os.path.dirname(module) if is_file else "")
    if folder not in map(os.path.abspath, sys.path):
        sys.path.append(folder)
    if is_file:
        spec = spec_from_file_location(Path(module).stem, module)
    else:
        try:
            spec = find_spec(module)
        except Exception as error:  # whatever the user's packages raise
            raise import_failure(network, error) from error
    if spec is None or not Path(str(spec.origin)).is_file():
        reason = (
            f"is {network!r}, but there is no {module} here; give the path of its file, or "
            "the name of a module in the current folder or an installed package"
        )
        raise OptionError.about("network", reason)
    return spec


def load_function(network: str) -> Callable[..., Any]:
    """Return the function that a name means, as `module_spec` describes.

    The file or the module is the user's own code, which runs. Raises OptionError if it cannot be
    imported, or has no such function.
    """
    spec = module_spec(network)
    try:
        if network.rpartition(":")[0].endswith(".py"):
            module = module_from_spec(spec)
            sys.modules.setdefault(spec.name, module)
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        else:
            module = import_module(spec.name)
        function: Callable[..., Any] = getattr(module, network.rpartition(":")[2])
    except Exception as error:  # whatever the user's module raises
        raise import_failure(network, error) from error
    if not callable(function):
        raise OptionError.about("network", f"is {network!r}, which is no function")
    return function


def import_failure(network: str, error: Exception) -> OptionError:
    """Return the error of a network whose packages or module raise when imported."""
    reason = f"is {network!r}, which cannot be imported: {named_error(error)}"
    return OptionError.about("network", reason)


def make_network(name: str, n_words: int, dim: int, arguments: dict[str, Any]) -> nn.Module:
    """Return the network that a user's function makes; OptionError where it makes none."""
    function = load_function(name)
    try:
        network = function(n_words, dim, **arguments)
    except Exception as error:  # whatever the user's function raises
        raise refusal(name, f"raises {named_error(error)}") from error
    if not isinstance(network, nn.Module):
        raise refusal(name, f"returns {brief(network)}, not a torch.nn.Module")
    return network


def refusal(name: str, problem: str) -> OptionError:
    """Return the error of a network that does not do what a network must."""
    remedy = (
        "forward(ids (S, L), state or None) must return (hidden (S, L, dim), state or None), see "
        "docs/torch-compare.md"
    )
    return OptionError(f"the network {name} {problem}; {remedy}")


@torch.no_grad()
def check_network(network: nn.Module, name: str, dim: int, length: int, streams: int) -> Any:
    """Check what a network returns for some streams; return its state after them.

    Raises OptionError, in one line, where it has other shapes, moves to another device, is not
    deterministic in evaluation mode, or sees the tokens that it predicts.
    """
    was_training = network.training
    network.eval()
    parameter = next(network.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    ids = torch.zeros(streams, length, dtype=torch.int64, device=device)
    hidden, state = call_network(network, name, dim, ids, None)
    if hidden.device.type != device.type:
        raise refusal(name, f"returns a tensor on {hidden.device}, not on {device}")

    # Again, and with other tokens at the end of the streams
    again, _ = call_network(network, name, dim, ids, None)
    if not torch.equal(again.nan_to_num(), hidden.nan_to_num()):
        raise refusal(name, "returns other numbers for the same ids in evaluation mode")
    ids[:, -1] = 1
    changed, _ = call_network(network, name, dim, ids, None)
    if not torch.allclose(changed[:, :-1].nan_to_num(), hidden[:, :-1].nan_to_num(), atol=1e-4):
        raise refusal(name, "is not causal: hidden vectors depend on later ids")
    if state is not None:
        _, later = call_network(network, name, dim, ids, state)
        check_state(name, state, later)
    network.train(was_training)
    return state


def call_network(
    network: nn.Module, name: str, dim: int, ids: Tensor, state: Any
) -> tuple[Tensor, Any]:
    """Return what a network returns; OptionError if it raises, or returns other shapes.

    TrainingError where its memory is not enough.
    """
    try:
        result = network(ids, state)
    except Exception as error:  # whatever the user's network raises
        if (memory_error := find_memory_error(error)) is not None:
            raise memory_error from error
        raise refusal(name, f"raises {named_error(error)}") from error
    if not (isinstance(result, tuple) and len(result) == 2 and torch.is_tensor(result[0])):
        raise refusal(name, f"returns {brief(type(result).__name__)}, not hidden vectors and state")
    if any(not torch.is_tensor(part) for part in flat_state(result[1])):
        raise refusal(name, "returns a state that is no tensor, no tuple of tensors and not None")
    hidden = result[0]
    shape = (*ids.shape, dim)
    if hidden.shape != shape or not hidden.is_floating_point():
        raise refusal(name, f"returns {hidden.dtype} of shape {tuple(hidden.shape)}, not {shape}")
    return result


def check_state(name: str, state: Any, later: Any) -> None:
    """Raise OptionError where the state of a network has other shapes after a later call."""
    if [s.shape for s in flat_state(later)] != [s.shape for s in flat_state(state)]:
        raise refusal(name, "returns a state whose shapes change from call to call")


# States: a tensor, a tuple or a list of states, or None


def flat_state(state: Any) -> list[Any]:
    """Return the tensors of a state in their order."""
    if isinstance(state, tuple | list):
        return [tensor for part in state for tensor in flat_state(part)]
    return [] if state is None else [state]


def map_state(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """Return a state with a function of each of its tensors."""
    if isinstance(state, tuple | list):
        return tuple(map_state(function, part) for part in state)
    return None if state is None else function(state)
