"""Contract of networks: their arguments, results and states.

A network is called as ``network(ids, state)`` with label ids (S, L) of S parallel streams, and the
state that it returned for the tokens before them, or None. It returns hidden vectors (S, L, d),
each of which predicts the next token, and a state: a tensor, a tuple of states, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from hstree._text import brief, named_error
from hstree.errors import OptionError
from hstree.models.torch.session import find_memory_error


def call_network(model: Any, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
    """Call the network of a model; return the hidden vectors and the state.

    Raises OptionError if the network fails or returns wrong shapes, and TrainingError if memory is
    not sufficient.
    """
    name = model.network_name
    try:
        result = model.module(ids, state)
    except Exception as error:  # the user's network may raise any exception
        if (memory_error := find_memory_error(error)) is not None:
            raise memory_error from error
        raise refusal(name, f"raises {named_error(error)}") from error
    if not (isinstance(result, tuple) and len(result) == 2 and torch.is_tensor(result[0])):
        raise refusal(name, f"returns {brief(type(result).__name__)}, not hidden vectors and state")
    if any(not torch.is_tensor(part) for part in flat_state(result[1])):
        raise refusal(name, "returns a state that is no tensor, no tuple of tensors and not None")
    hidden = result[0]
    shape = (*ids.shape, model.dim)
    if hidden.shape != shape or not hidden.is_floating_point():
        raise refusal(name, f"returns {hidden.dtype} of shape {tuple(hidden.shape)}, not {shape}")
    return result


@torch.no_grad()
def first_state(model: Any, streams: int) -> Any:
    """Check the results of a model's network for some streams; return the state after them.

    Raises OptionError if shapes are wrong, or if the network moves to another device, is not
    deterministic in evaluation mode, or sees the tokens that it predicts.
    """
    name = model.network_name
    was_training = model.module.training
    model.module.eval()
    parameter = next(model.module.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    ids = torch.zeros(streams, model.length, dtype=torch.int64, device=device)
    hidden, state = call_network(model, ids, None)
    if hidden.device != device:
        raise refusal(name, f"returns a tensor on {hidden.device}, not on {device}")

    # Call it again, then with other tokens at the end of the streams
    again, _ = call_network(model, ids, None)
    if not torch.equal(again.nan_to_num(), hidden.nan_to_num()):
        raise refusal(name, "returns other numbers for the same ids in evaluation mode")
    ids[:, -1] = 1
    changed, _ = call_network(model, ids, None)
    if not torch.allclose(changed[:, :-1].nan_to_num(), hidden[:, :-1].nan_to_num(), atol=1e-4):
        raise refusal(name, "is not causal: hidden vectors depend on later ids")
    if state is not None:
        _, later = call_network(model, ids, state)
        check_state(name, state, later)
    model.module.train(was_training)
    return state


def refusal(name: str, problem: str) -> OptionError:
    """Return the error for a network that breaks the contract."""
    remedy = (
        "forward(ids (S, L), state or None) must return (hidden (S, L, dim), state or None), see "
        "docs/torch-compare.md"
    )
    return OptionError(f"the network {name} {problem}; {remedy}")


def check_state(name: str, state: Any, later: Any) -> None:
    """Raise OptionError if the shapes in a network's state change in a later call."""
    if [s.shape for s in flat_state(later)] != [s.shape for s in flat_state(state)]:
        raise refusal(name, "returns a state whose shapes change from call to call")


# States: a tensor, a tuple or a list of states, or None


def flat_state(state: Any) -> list[Any]:
    """Return the tensors of a state in their order."""
    if isinstance(state, tuple | list):
        return [tensor for part in state for tensor in flat_state(part)]
    return [] if state is None else [state]


def map_state(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """Apply a function to each tensor of a state."""
    if isinstance(state, tuple | list):
        parts = [map_state(function, part) for part in state]
        is_named = hasattr(state, "_fields")  # a named tuple takes one argument per part
        return type(state)(*parts) if is_named else type(state)(parts)
    return None if state is None else function(state)
