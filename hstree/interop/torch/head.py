"""Base class of the output layers: checks of parameters and input."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hstree.errors import InputError
from hstree.interop.torch.index import is_jit_tracing


class Head(nn.Module):
    """Output layer that checks the shapes of its parameters and its input.

    Attributes
    ----------
    parameter_shapes : dict
        Shape of each parameter, by its name.
    rows_are : str
        Description of the parameters' rows, for error messages.
    """

    parameter_shapes: dict[str, tuple[int, ...]]
    rows_are: str
    weight: nn.Parameter

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Register a parameter; raise InputError if its shape is not that of the layer.

        Assignments, ``load_state_dict(assign=True)`` and tied weights also call it.
        """
        # FSDP keeps flat shards in place of parameters between calls
        is_shard = getattr(param, "_fsdp_flattened", False)
        if name in self.parameter_shapes and not is_shard:
            self._check_shape(name, param)
        super().register_parameter(name, param)

    def _check_shape(self, name: str, param: Tensor | None) -> None:
        """Raise InputError if the shape of a parameter is not that of the layer."""
        if param is None or not are_equal(param.shape, self.parameter_shapes[name]):
            raise InputError(self._wrong_shape(name, param))

    def _wrong_shape(self, name: str, param: Tensor | None) -> str:
        """Return the error message for a parameter with a wrong shape."""
        is_now = "is None" if param is None else f"has the shape {tuple(param.shape)}"
        return f"{name} {is_now}; it must have {self.parameter_shapes[name]}, since {self.rows_are}"

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *more: Any
    ) -> None:
        """Load parameters as ``nn.Module`` does, unless one has a wrong shape."""
        for name, expected in self.parameter_shapes.items():
            values = state_dict.get(prefix + name)
            if torch.is_tensor(values) and tuple(values.shape) != expected:
                more[-1].append(prefix + self._wrong_shape(name, values))
                return
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *more)

    def _as_rows(self, input: Tensor) -> Tensor:
        """Return hidden vectors (..., d) as (N, d), in the dtype of the weights.

        Raises InputError if their length is not d, or if the weights were replaced by weights with
        another shape.
        """
        for name in self.parameter_shapes:
            self._check_shape(name, getattr(self, name))
        d = self.parameter_shapes["weight"][-1]
        if not are_equal(input.shape[-1:], (d,)):
            raise InputError(f"input of shape {tuple(input.shape)}; this layer takes (..., {d})")
        return input.reshape(-1, d).to(self.weight.dtype)

    def _as_items(self, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return hidden vectors as `_as_rows` does, and targets (...) as int64 (N,)."""
        hidden = self._as_rows(input)
        expected = input.shape[:-1]
        if not are_equal(target.shape, expected):
            shape = tuple(target.shape)
            raise InputError(f"target of shape {shape}; for this input it is {tuple(expected)}")
        if target.is_floating_point() or target.dtype == torch.bool:
            raise InputError(f"target of type {target.dtype}; label ids are whole numbers")
        return hidden, target.reshape(-1).long()


def are_equal(shape: Sequence[int], expected: Sequence[int]) -> bool:
    """Return whether two shapes are equal, without the warnings of ``torch.jit.trace``."""
    if not is_jit_tracing():
        return tuple(shape) == tuple(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        return tuple(shape) == tuple(expected)
