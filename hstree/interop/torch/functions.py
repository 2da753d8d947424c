"""Log-probabilities of the decisions of a batch and their gradients, for any tree.

The arithmetic is that of `hstree.layers.hierarchical`. Nodes with few children (narrow nodes) are
computed for all decisions at once, as pairs of a batch item and a weight row. Nodes with many
children (wide nodes) are computed one by one, as matrix products over the items that reach them.

Both are computed by one autograd function, so that each parameter has one gradient. A sparse
gradient has the rows of the nodes on the paths of the batch. The function is differentiable once.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn.functional import embedding_bag, logsigmoid

from hstree.interop.torch.index import (
    Decisions,
    at_least_float32,
    log_sum_exp,
    offsets,
    ranges,
    segment_ids,
)
from hstree.kernels import NARROW

#: Logits of wide nodes that are kept for the gradient. A batch with more of them is computed in
#: blocks of this size, and computed again for the gradient.
BLOCK = 1 << 24
#: Maximum number of elements gathered at a time from the weights and from the hidden vectors.
GATHERED = 1 << 19


class Inputs(NamedTuple):
    """Weights, and the hidden vectors of a batch."""

    weight: Tensor  # (R, d)
    bias: Tensor  # (R,)
    hidden: Tensor  # (N, d)
    sparse: bool = False  # whether the gradients with respect to weight and bias are sparse


class Pairs(NamedTuple):
    """Pairs of a batch item and a weight row, of one narrow decision after another."""

    item: Tensor  # (P,), ascending
    row: Tensor  # (P,)
    decision: Tensor  # (P,), the narrow decision that each belongs to
    start: Tensor  # (D + 1,), offsets of the decisions


class Part(NamedTuple):
    """Decisions at one wide node: a matrix product."""

    node: int  # number of the node among the wide nodes of the batch
    first: int  # first decision, in the order of the nodes
    n: int  # number of decisions
    row: int  # first weight row of the node
    width: int  # number of children


class WideNodes(NamedTuple):
    """Wide nodes of a batch, by their weight rows."""

    row: Tensor  # (n,), first weight row of each, ascending
    width: Tensor  # (n,), number of children
    blocks: list[list[Part]]  # the products of their decisions


class Layout(NamedTuple):
    """Decisions of a batch, at narrow and at wide nodes."""

    narrow: Decisions
    narrow_position: Tensor  # position of each in the batch
    pairs: Pairs
    wide: Decisions  # in the order of their nodes
    wide_position: Tensor
    nodes: WideNodes


def decision_log_prob(inputs: Inputs, decisions: Decisions) -> Tensor:
    """Return the log-probabilities (D,) of the branches taken, at least float32."""
    weight, bias, hidden, sparse = inputs
    log_prob, *_ = _evaluate(sparse, weight, bias, hidden, lay_out(decisions))
    return log_prob


def lay_out(decisions: Decisions) -> Layout:
    """Lay out the decisions of a batch."""
    is_wide = decisions.width > NARROW
    narrow_position, narrow = decisions.where(~is_wide)
    wide_position, wide = decisions.where(is_wide)

    # Wide decisions in the order of their nodes, so that those of a node are a slice
    order = torch.argsort(wide.row, stable=True)
    wide = wide.take(order)
    return Layout(
        narrow=narrow,
        narrow_position=narrow_position,
        pairs=narrow_pairs(narrow),
        wide=wide,
        wide_position=wide_position[order],
        nodes=wide_nodes(wide),
    )


def narrow_pairs(decisions: Decisions) -> Pairs:
    """Return one pair for each child of a narrow node, but only one for a binary node."""
    if not (decisions.width > 2).any():
        start = torch.arange(len(decisions.item) + 1, device=decisions.item.device)
        return Pairs(decisions.item, decisions.row, start[:-1], start)

    # (P,) the decision of each pair and its weight row; a node's rows are consecutive
    n_pairs = torch.where(decisions.width == 2, 1, decisions.width)
    start = offsets(n_pairs)
    decision = segment_ids(start)
    row = ranges(decisions.row, start, decision)
    return Pairs(decisions.item[decision], row, decision, start)


def wide_nodes(decisions: Decisions) -> WideNodes:
    """Return the wide nodes of sorted decisions; their blocks have up to `BLOCK` logits."""
    # (S,) first row of each node, and number of its decisions, which are a slice
    row, count = torch.unique_consecutive(decisions.row, return_counts=True)
    start = offsets(count)[:-1]
    width = decisions.width[start]
    blocks: list[list[Part]] = []
    size = BLOCK
    for node, numbers in enumerate(torch.stack([start, count, row, width], 1).tolist()):
        first, n, first_row, n_children = numbers
        # A node with more logits than a block becomes more than one product
        most = max(1, BLOCK // n_children)
        for a in range(first, first + n, most):
            part = Part(node, a, min(most, first + n - a), first_row, n_children)
            size += part.n * part.width
            if size > BLOCK:
                blocks.append([])
                size = part.n * part.width
            blocks[-1].append(part)
    return WideNodes(row, width, blocks)


# Narrow nodes.


def decide_narrow(inputs: Inputs, decisions: Decisions, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Compute decisions at nodes with few children: a softmax over the pairs of each decision.

    Returns
    -------
    log_prob : float tensor (D,)
        log P(branch).
    error : float tensor (P,)
        d(-log P) / d logit.
    """
    logits = at_least_float32(pair_logits(inputs, pairs.item, pairs.row))
    is_first = decisions.branch == 0
    if len(logits) == len(is_first):  # all nodes are binary
        return binary_decision(logits, is_first)

    # d(-log P) / d logit = softmax - [child taken]
    is_binary = decisions.width == 2
    chosen = pairs.start[:-1] + torch.where(is_binary, 0, decisions.branch)
    total = log_sum_exp(logits, pairs.decision, len(is_first))
    log_softmax = logits - total[pairs.decision]
    log_prob = log_softmax[chosen]
    error = log_softmax.exp()
    error[chosen] -= 1

    # A binary node has one pair; the logit of its second child is 0
    binary = is_binary.nonzero()[:, 0]
    pair = chosen[binary]
    log_prob[binary], error[pair] = binary_decision(logits[pair], is_first[binary])
    return log_prob, error


def binary_decision(logit: Tensor, is_first: Tensor) -> tuple[Tensor, Tensor]:
    """Return log P(branch) and d(-log P) / d logit, for P(first) = sigmoid(logit)."""
    # P(branch) = sigmoid(z), and the other branch has sigmoid(-z), accurate at both ends
    z = torch.where(is_first, logit, -logit)
    other = torch.sigmoid(-z)
    return logsigmoid(z), torch.where(is_first, -other, other)


def pair_logits(inputs: Inputs, item: Tensor, row: Tensor) -> Tensor:
    """Return ``weight[row] . hidden[item] + bias[row]``, a float tensor (P,); `item` ascends."""
    weight, bias, hidden, _ = inputs
    shape = (len(hidden), len(weight))
    if weight.device.type == "cpu" and _can_sample(weight.dtype, len(row), shape):
        # A product of two matrices, computed only at the pairs. It takes half the time of
        # gathering vectors and rows (6% of a training step with huffman).
        zero = weight.new_zeros(len(row))
        start = item_start(item, len(hidden))
        pattern = torch.sparse_csr_tensor(start, row, zero, shape, check_invariants=False)
        product: Tensor = torch.sparse.sampled_addmm(pattern, hidden, weight.T, beta=0.0)
        return bias[row] + product.values()
    step = max(1, GATHERED // max(1, weight.shape[1]))
    products = [
        torch.linalg.vecdot(hidden.index_select(0, items), weight.index_select(0, rows))
        for items, rows in zip(torch.split(item, step), torch.split(row, step), strict=True)
    ]
    return bias[row] + torch.cat(products)


def _can_sample(dtype: torch.dtype, n_pairs: int, shape: tuple[int, int]) -> bool:
    """Return whether torch computes these pairs as a sampled product.

    Pairs may repeat, which torch allows until there are more pairs than matrix entries.
    """
    return dtype in (torch.float32, torch.float64) and n_pairs <= math.prod(shape)


# Use up the warning that torch gives once per process: that CSR tensors are in beta.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    _zero = torch.zeros(1, dtype=torch.int64, device="cpu")
    torch.sparse_csr_tensor(_zero, _zero[:0], _zero[:0], (0, 1), check_invariants=False)


def pair_gradients(
    inputs: Inputs, item: Tensor, row: Tensor, error: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the rows (r,) of pairs, ascending, and gradients through `pair_logits`.

    `error` (P,) are the gradients with respect to logits. The gradients are with respect to the
    weights (r, d), biases (r,) and hidden vectors (N, d).
    """
    weight, _, hidden, _ = inputs
    grad_hidden = weighted_sums(weight, row, item_start(item, len(hidden)), error)

    # (P,) pairs in the order of their rows
    sorted_row, order = torch.sort(row, stable=True)
    rows, slot, count = torch.unique_consecutive(
        sorted_row, return_inverse=True, return_counts=True
    )
    error = error[order]
    grad_weight = weighted_sums(hidden, item[order], offsets(count), error)
    grad_bias = error.new_zeros(len(rows)).index_add_(0, slot, error)
    return rows, grad_weight, grad_bias, grad_hidden


def item_start(item: Tensor, n_items: int) -> Tensor:
    """Return the offsets (N + 1,) of each item in `item` (P,), which ascends."""
    return torch.searchsorted(item, torch.arange(n_items + 1, device=item.device))


def weighted_sums(rows: Tensor, index: Tensor, start: Tensor, factor: Tensor) -> Tensor:
    """Sum ``factor[p] * rows[index[p]]`` over the entries p of each segment."""
    return embedding_bag(
        index, rows, start, mode="sum", per_sample_weights=factor, include_last_offset=True
    )


# Wide nodes.


def decide_wide(
    inputs: Inputs, decisions: Decisions, blocks: list[list[Part]]
) -> tuple[Tensor, list[Tensor]]:
    """Compute decisions at nodes with many children: matrix products, one node at a time.

    Returns
    -------
    log_prob : float tensor (D,)
        log P(branch).
    log_softmax : list of tensors
        Log-probabilities of all children in the block; empty if there is more than one block.
    """
    inputs = inputs._replace(hidden=inputs.hidden.index_select(0, decisions.item))
    log_prob = []
    log_softmax = []
    for block in blocks:
        children = block_log_softmax(inputs, block)
        log_prob.append(children[chosen_children(decisions, block)])
        if len(blocks) == 1:
            log_softmax.append(children)
    return torch.cat(log_prob), log_softmax


def block_log_softmax(inputs: Inputs, block: list[Part]) -> Tensor:
    """Return the log-probabilities of all children, part after part, at least float32.

    The inputs have a hidden vector for each decision.
    """
    weight, bias, vectors, _ = inputs
    size = sum(part.n * part.width for part in block)
    dtype = torch.promote_types(weight.dtype, torch.float32)
    log_softmax = torch.empty(size, dtype=dtype, device=weight.device)
    hidden_parts = torch.split(block_rows(vectors, block), [part.n for part in block])
    outs = part_matrices(log_softmax, block)
    for part, hidden, out in zip(block, hidden_parts, outs, strict=True):
        rows = weight.narrow(0, part.row, part.width)
        logits = torch.addmm(bias.narrow(0, part.row, part.width), hidden, rows.T)
        torch.log_softmax(logits.to(dtype), 1, out=out)
    return log_softmax


def block_rows(values: Tensor, block: list[Part]) -> Tensor:
    """Return the values (n, ...) of the decisions of a block."""
    first = block[0].first
    return values.narrow(0, first, block[-1].first + block[-1].n - first)


def part_matrices(values: Tensor, block: list[Part]) -> Iterator[Tensor]:
    """Yield the values of each part of a block, (decisions, children)."""
    sizes = [part.n * part.width for part in block]
    for part, matrix in zip(block, torch.split(values, sizes), strict=True):
        yield matrix.view(part.n, part.width)


def chosen_children(decisions: Decisions, block: list[Part]) -> Tensor:
    """Return the positions of the branches taken among all children of a block."""
    start = offsets(block_rows(decisions.width, block))
    return start[:-1] + block_rows(decisions.branch, block)


def add_product_gradients(
    inputs: Inputs,
    decisions: Decisions,
    block: list[Part],
    log_softmax: Tensor,
    loss_weight: Tensor,
    row: list[int],
    gradient: Inputs,
) -> None:
    """Add the gradients through the products of a block.

    `inputs.hidden` and `gradient.hidden` have a vector for each decision. `loss_weight` (D,) is the
    weight of each decision in the loss, `row` the first row of each node in the gradients.
    """
    # d loss / d logits = loss_weight * (softmax - [child taken]). The vectors and their gradients
    # have the loss weight as a factor, since they are shorter than the logits.
    errors = log_softmax.exp()
    errors[chosen_children(decisions, block)] -= 1
    factors = block_rows(loss_weight, block)
    vectors = block_rows(inputs.hidden, block) * factors[:, None]
    grad_vectors = block_rows(gradient.hidden, block)
    sizes = [part.n for part in block]
    parts = zip(
        block,
        part_matrices(errors.to(inputs.weight.dtype), block),
        *(torch.split(values, sizes) for values in (factors, vectors, grad_vectors)),
        strict=True,
    )
    for part, error, factor, hidden, grad_hidden in parts:
        gradient.weight.narrow(0, row[part.node], part.width).addmm_(error.T, hidden)
        gradient.bias.narrow(0, row[part.node], part.width).addmv_(error.T, factor)
        torch.mm(error, inputs.weight.narrow(0, part.row, part.width), out=grad_hidden)
    grad_vectors.mul_(factors[:, None])


# All nodes.


def gradients(
    inputs: Inputs, layout: Layout, loss_weight: Tensor, pair_error: Tensor, *log_softmax: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients with respect to weight, bias and hidden vectors.

    `loss_weight` (D,) is the weight of each decision in the loss. `pair_error` and `log_softmax`
    are results of `decide_narrow` and `decide_wide`.
    """
    weight, bias, hidden, sparse = inputs
    n_rows = len(weight)
    pairs = layout.pairs

    # Narrow nodes, by pairs; if there are no others, sparse gradients are complete
    pair_loss_weight = loss_weight[layout.narrow_position].index_select(0, pairs.decision)
    error = (pair_error * pair_loss_weight).to(weight.dtype)
    rows, pair_weight, pair_bias, grad_hidden = pair_gradients(inputs, pairs.item, pairs.row, error)
    nodes = layout.nodes
    if sparse and not nodes.blocks:
        grad_weight = row_gradient(rows, pair_weight, n_rows)
        return grad_weight, row_gradient(rows, pair_bias, n_rows), grad_hidden

    # Positions, in the gradients, of the rows of pairs and of the first row of each wide node
    position = torch.cat([rows, nodes.row])
    if sparse:
        start = offsets(nodes.width)
        children = ranges(nodes.row, start, segment_ids(start))
        touched = torch.cat([rows, children]).sort().values
        position = torch.searchsorted(touched, position)
        n_rows = len(touched)
    grad_weight = new_zeros(n_rows, weight)
    grad_bias = new_zeros(n_rows, bias)
    grad_weight.index_copy_(0, position[: len(rows)], pair_weight)
    grad_bias.index_copy_(0, position[: len(rows)], pair_bias)

    # Wide nodes, on a hidden vector and a gradient of it for each decision
    item = layout.wide.item
    by_decision = inputs._replace(hidden=hidden.index_select(0, item))
    gradient = Inputs(grad_weight, grad_bias, torch.empty_like(by_decision.hidden))
    node_position = position[len(rows) :].tolist()
    loss_weight = loss_weight[layout.wide_position].to(weight.dtype)
    for number, block in enumerate(nodes.blocks):
        # Log-probabilities are kept for a single block; with more blocks, they are computed again
        kept = log_softmax[number] if log_softmax else None
        children = block_log_softmax(by_decision, block) if kept is None else kept
        add_product_gradients(
            by_decision, layout.wide, block, children, loss_weight, node_position, gradient
        )
    grad_hidden.index_add_(0, item, gradient.hidden)
    if sparse:
        grad_weight = row_gradient(touched, grad_weight, len(weight))
        grad_bias = row_gradient(touched, grad_bias, len(weight))
    return grad_weight, grad_bias, grad_hidden


def new_zeros(n_rows: int, like: Tensor) -> Tensor:
    """Return zeros (n, ...) in the dtype of a parameter (R, ...).

    On the CPU, the memory is allocated by NumPy, which uses huge pages: with pages of 4 KiB, a step
    with dense gradients takes twice as long (huffman, 80,000 labels).
    """
    shape = (n_rows, *like.shape[1:])
    if like.device.type != "cpu" or not n_rows:
        return like.new_zeros(shape)
    array = np.zeros(math.prod(shape) * like.element_size(), np.uint8)
    return torch.from_numpy(array).view(like.dtype).view(shape)


def row_gradient(rows: Tensor, values: Tensor, n_rows: int) -> Tensor:
    """Return the sparse gradient (R, ...) of a parameter, non-zero in the rows of a batch.

    `rows` (r,) ascend without repeats; `values` is (r, ...). A coalesced COO tensor.
    """
    shape = (n_rows, *values.shape[1:])
    return torch.sparse_coo_tensor(
        rows[None], values, shape, is_coalesced=True, check_invariants=False
    )


def without_autocast(device: torch.device) -> torch.autocast:
    """Return a context in which autocast does not lower the precision."""
    return torch.autocast(device.type, enabled=False)


class _Evaluate(torch.autograd.Function):
    """Log-probabilities of the branches taken, then the values saved for the gradient."""

    @staticmethod
    def forward(
        sparse: bool, weight: Tensor, bias: Tensor, hidden: Tensor, layout: Layout
    ) -> tuple[Tensor, ...]:
        inputs = Inputs(weight, bias, hidden)
        n_decisions = len(layout.narrow_position) + len(layout.wide_position)
        dtype = torch.promote_types(weight.dtype, torch.float32)
        log_prob = hidden.new_empty(n_decisions, dtype=dtype)
        # Narrow nodes all at once, by pairs of a decision and a child; wide ones block by block
        narrow, error = decide_narrow(inputs, layout.narrow, layout.pairs)
        log_prob[layout.narrow_position] = narrow
        log_softmax: list[Tensor] = []
        if layout.nodes.blocks:
            wide, log_softmax = decide_wide(inputs, layout.wide, layout.nodes.blocks)
            log_prob[layout.wide_position] = wide
        return log_prob, error, *log_softmax

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.sparse, *tensors, ctx.layout = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)  # no zeros for what is not differentiable
        ctx.save_for_backward(*tensors, *output[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if gradient is None:  # no loss depends on the log-probabilities
            return None, None, None, None, None
        if _is_batched(gradient):
            raise RuntimeError(
                "gradients of the loss of a HierarchicalSoftmax cannot be batched; pass "
                "chunk_size=1 to jacrev, leave out vectorize and is_grads_batched, or "
                "differentiate log_prob"
            )
        grads = _differentiate(ctx.sparse, ctx.layout, -gradient, *ctx.saved_tensors)
        return None, *grads, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax has no forward mode outside of torch.func; call "
            "torch.func.jvp, or differentiate log_prob"
        )


class _Differentiate(torch.autograd.Function):
    """Gradients of `_Evaluate`, not differentiable themselves."""

    @staticmethod
    def forward(
        sparse: bool, layout: Layout, loss_weight: Tensor, *tensors: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        weight, bias, hidden, *kept = tensors
        with without_autocast(weight.device):
            return gradients(Inputs(weight, bias, hidden, sparse), layout, loss_weight, *kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise RuntimeError(
            "the loss of a HierarchicalSoftmax is differentiable once; "
            "differentiate log_prob, over all labels, where you need second derivatives"
        )


_evaluate: Callable[..., tuple[Tensor, ...]] = _Evaluate.apply
_differentiate: Callable[..., tuple[Tensor, Tensor, Tensor]] = _Differentiate.apply


def _is_batched(gradient: Tensor) -> bool:
    """Return whether a gradient is a batch of gradients, in `vmap` or by ``is_grads_batched``."""
    is_legacy = getattr(_functorch, "is_legacy_batchedtensor", lambda _: False)  # torch 2.3
    return _functorch.is_batchedtensor(gradient) or is_legacy(gradient)
