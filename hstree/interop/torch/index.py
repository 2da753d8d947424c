"""A tree as index tensors on a device: the decisions on the paths to targets.

The tensors are the arrays of `hstree.tree.codes`; there is no padded table of codes.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch._C._functorch import TransformType
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.fx.experimental.proxy_tensor import get_innermost_proxy_mode

from hstree.errors import InputError
from hstree.tree.codes import Codes
from hstree.tree.paths import path_decisions

#: Maximum number of decisions that are kept expanded on the device (4 bytes each, 128 MiB). Codes
#: of a tree with more are expanded on the host, batch by batch.
CACHE_LIMIT = 1 << 25

#: Maximum magnitude of hidden vectors. Larger ones overflow in products with usual weights, and
#: differences of infinite logits are nan. The maximum of half precision is small enough.
LARGEST = {torch.float32: 2.0**100, torch.bfloat16: 2.0**100, torch.float64: 2.0**1000}

_F = TypeVar("_F", bound=Callable[..., object])


def is_jit_tracing() -> bool:
    """Return whether ``torch.jit.trace`` records operators."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def is_traced() -> bool:
    """Return whether operators are recorded or transformed.

    Control flow must then not depend on values. True in ``torch.export``, in ``torch.jit.trace``
    and the ONNX exporter that is built on it, in ``make_fx``, and in `vmap` and `jvp` of
    ``torch.func``; not in ``torch.compile``, which breaks its graph instead. The results of a
    search, a draw or a loop would be recorded as constants, for all later inputs. Layers then
    compute all labels, in shapes that do not depend on values, or raise (`refuse_traced`).
    """
    if torch.compiler.is_compiling():
        is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)
        return is_exporting()
    if is_jit_tracing() or get_innermost_proxy_mode() is not None:
        return True
    return torch._C._are_functorch_transforms_active() and any(
        transform.key() in (TransformType.Vmap, TransformType.Jvp)
        for transform in retrieve_all_functorch_interpreters()
    )


def is_traced_by_onnx() -> bool:
    """Return whether an ONNX exporter records operators.

    The exporter lacks some operators and writes others differently.
    """
    is_recorded = is_traced() and not torch.compiler.is_dynamo_compiling()
    return is_recorded and torch.onnx.is_in_onnx_export()


def refuse_traced(call: str, remedy: str) -> None:
    """Raise InputError if `is_traced`, for a call whose result is drawn."""
    if is_traced():
        raise InputError(
            f"{call} draws new labels each time, which torch.export, torch.jit.trace, the ONNX "
            f"exporters and vmap cannot record; {remedy}"
        )


def not_compiled(function: _F) -> _F:
    """Exclude a function from torch.compile, since its shapes depend on values."""
    disable: Any = torch.compiler.disable
    if "reason" not in inspect.signature(disable).parameters:  # torch 2.6
        return cast(_F, disable(function))
    reason = "its shapes depend on values; compile without fullgraph=True"
    return cast(_F, disable(function, reason=reason))


def split_rows(rows: Tensor, size: int) -> tuple[Tensor, ...]:
    """Split rows into parts of up to `size`; into one part if operators are recorded."""
    return (rows,) if is_traced() else torch.split(rows, max(1, size))


def refuse_large(hidden: Tensor) -> None:
    """Raise InputError for finite hidden vectors above `LARGEST`; infinite ones and nan pass.

    Hidden vectors are not checked in compiled and traced graphs and in the transforms of
    ``torch.func``.
    """
    is_compiling = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    is_unknown = is_compiling or is_traced()
    if is_unknown or hidden.dtype not in LARGEST or not hidden.numel():
        return
    # Infinite vectors and nan are visible in the loss, which is infinite or nan
    least, most = torch.aminmax(hidden.detach())
    largest = float(torch.maximum(-least, most))
    limit = LARGEST[hidden.dtype]
    if limit < largest < math.inf:
        raise InputError(
            f"input holds {largest:.3g} in magnitude, so that products may overflow "
            f"{hidden.dtype}; scale it below {limit:.3g}"
        )


def offsets(length: Tensor) -> Tensor:
    """Return the offsets (S + 1,) of segments of these lengths (S,), int64."""
    start = length.new_zeros(len(length) + 1)
    torch.cumsum(length, 0, out=start[1:])
    return start


def segment_ids(start: Tensor) -> Tensor:
    """Return the segment of each element, for offsets (S + 1,): [0, 2, 2, 5] is [0, 0, 2, 2, 2]."""
    return torch.repeat_interleave(start.diff(), output_size=int(start[-1]))


def ranges(first: Tensor, start: Tensor, segment: Tensor) -> Tensor:
    """Concatenate S ranges of integers from `first` (S,), with the offsets `start` (S + 1,).

    `segment` is the range of each integer, as `segment_ids` returns it.
    """
    return torch.arange(len(segment), device=first.device) + (first - start[:-1])[segment]


def log_sum_exp(values: Tensor, segment: Tensor, n_segments: int) -> Tensor:
    """Return the log-sum-exp of every segment of values (P, ...), along the first axis.

    It is differentiable. `segment` (P,) is the segment of each value; no segment is empty.
    """
    shape = (n_segments, *values.shape[1:])
    spread = segment.reshape(-1, *[1] * (values.ndim - 1)).expand_as(values)
    lowest = values.new_full(shape, -torch.inf)
    top = lowest.scatter_reduce(0, spread, values.detach(), "amax")
    shifted = torch.exp(values - top.index_select(0, segment))
    # Not index_add: in it, the ONNX exporter on traces loses repeated segments
    return top + values.new_zeros(shape).scatter_add(0, spread, shifted).log()


def at_least_float32(values: Tensor) -> Tensor:
    """Return half-precision values as float32, for sums and logarithms; others unchanged."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class Decisions(NamedTuple):
    """Decisions on the paths to the targets of a batch, as int64 tensors (D,).

    The entries are those of `hstree.tree.paths.Decisions`.
    """

    item: Tensor  #: batch item
    row: Tensor  #: first weight row of the node
    width: Tensor  #: number of children of the node
    branch: Tensor  #: child taken, counted from 0
    code: Tensor  #: path that the decision belongs to, ascending

    def take(self, position: Tensor) -> "Decisions":
        """Return the decisions at some positions."""
        return Decisions(*(column[position] for column in self))

    def where(self, condition: Tensor) -> "tuple[Tensor, Decisions]":
        """Return the positions of the decisions that meet a condition, and these decisions."""
        position = condition.nonzero()[:, 0]
        if len(position) == len(condition):
            return position, self
        return position, self.take(position)


def index_tensor(
    values: ArrayLike, device: torch.device, dtype: torch.dtype = torch.int64
) -> Tensor:
    """Copy integers to a device, as a tensor that autograd can save, also in inference mode."""
    with torch.inference_mode(False):
        return torch.tensor(np.asarray(values), dtype=dtype, device=device)


class TreeIndex:
    """Arrays of a tree as index tensors, under the same names.

    `codes` are kept if the tree has more than `CACHE_LIMIT` decisions. Targets are the labels, and
    the nodes if `codes` has them. `widest` is the largest number of children of a node, `n_levels`
    the largest number of decisions on the path to a label; 0 if there is no node.
    """

    def __init__(self, codes: Codes, device: torch.device) -> None:
        tree = codes.tree
        self.n_labels = tree.n_labels
        self.n_targets = len(codes.label_start) - 1
        self.has_single_codes = tree.has_single_codes
        self.widest = int(tree.fan_out.max(initial=0))
        self.n_levels = 1 + int(tree.depth.max(initial=-1))
        # The tree, and the row, the branch and the node's width of each edge
        self.edge_row = index_tensor(tree.edge_row, device)
        self.edge_branch = index_tensor(tree.edge_branch, device)
        self.edge_width = index_tensor(tree.edge_width, device)
        self.child_start = index_tensor(tree.child_start, device)
        self.child = index_tensor(tree.child, device)
        # The codes of all labels, if they are few enough; otherwise each batch walks up the tree
        self._label_start = index_tensor(codes.label_start, device)
        self.has_all_codes = codes.n_decisions <= CACHE_LIMIT
        self._host_codes = None if self.has_all_codes else codes
        everything = codes.expand(np.arange(self.n_targets if self.has_all_codes else 0))
        # The only label of a tree without nodes has a path without decisions
        decision_start = everything.decision_start if tree.n_nodes else [0, 0]
        self.code_start = index_tensor(decision_start, device)
        self.code_edge = index_tensor(everything.edge, device, torch.int32)

    def path_decisions(self, target: Tensor) -> tuple[Decisions, Tensor]:
        """Return the decisions on all paths to targets (N,), and the item of each path (C,).

        See `hstree.tree.paths.path_decisions`.
        """
        if self._host_codes is not None:
            arrays, item = path_decisions(self._host_codes, target.cpu().numpy())
            columns = (torch.from_numpy(array).to(target.device) for array in (*arrays, item))
            *entries, code_item = columns
            return Decisions(*entries), code_item
        code_item, codes = self.codes(target)
        # (D,) code of each decision, and the edge taken
        first = self.code_start[codes]
        start = offsets(self.code_start[codes + 1] - first)
        code = segment_ids(start)
        edge = self.code_edge[ranges(first, start, code)]
        decisions = Decisions(
            item=code_item[code],
            row=self.edge_row[edge],
            width=self.edge_width[edge],
            branch=self.edge_branch[edge],
            code=code,
        )
        return decisions, code_item

    def codes(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the batch item (C,) of each code of the targets (N,), and the codes (C,)."""
        item = torch.arange(len(target), device=target.device)
        if self.has_single_codes:
            return item, target
        first = self._label_start[target]
        start = offsets(self._label_start[target + 1] - first)
        target_position = segment_ids(start)
        return target_position, ranges(first, start, target_position)
