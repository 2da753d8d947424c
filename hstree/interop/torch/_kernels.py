"""Triton kernels of `hstree.interop.torch.gpu`: a program follows one code or does one search."""

import triton
from triton import language as tl


@triton.jit
def _log1p(x):
    """Return ``log(1 + x)``, accurate for small x too."""
    u = 1 + x
    return tl.where(u == 1, x, tl.log(u) * (x / tl.where(u == 1, 1, u - 1)))


@triton.jit
def _logits(weight, bias, hidden, row, width, child, dim, column):
    """Return the weight rows (n, d) and the logits (n,) of children of a node.

    The second of two children has no row, and the logit 0. Past the last child, the logit is -inf.
    """
    has_row = child < tl.where(width == 2, 1, width)
    mask = has_row[:, None] & (column < dim)[None, :]
    rows = tl.load(weight + (row + child)[:, None] * dim + column[None, :], mask=mask, other=0)
    rows = rows.to(hidden.dtype)
    logits = tl.sum(rows * hidden[None, :], 1)
    logits += tl.load(bias + row + child, mask=has_row, other=0).to(hidden.dtype)
    return rows, tl.where(child < width, logits, -float("inf"))


@triton.jit
def _decision(weight, bias, hidden, row, width, branch, dim, column, n: tl.constexpr):
    """Return the largest logit of a node, the logit of the branch taken, and a sum over the others.

    The sum is that of ``exp(logit - largest)`` over the branches that are not taken.
    """
    largest = tl.full((), -float("inf"), hidden.dtype)
    taken = tl.zeros((), hidden.dtype)
    others = tl.zeros((), hidden.dtype)
    for first in range(0, width, n):
        child = first + tl.arange(0, n)
        _, logits = _logits(weight, bias, hidden, row, width, child, dim, column)
        # The sum so far is scaled to the new largest logit
        before = largest
        largest = tl.maximum(before, tl.max(logits, 0))
        taken += tl.sum(tl.where(child == branch, logits, 0), 0)
        shifted = tl.where(child == branch, 0, tl.exp(logits - largest))
        others = others * tl.exp(before - largest) + tl.sum(shifted, 0)
    return largest, taken, others


@triton.jit
def forward(
    weight,
    bias,
    hidden,
    item,
    code,
    code_start,
    code_edge,
    edge_row,
    edge_width,
    edge_branch,
    log_prob,
    dim,
    columns: tl.constexpr,
    n: tl.constexpr,
):
    """Write the log-probability of code c: the sum over its decisions."""
    c = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, columns)
    vector = tl.load(hidden + tl.load(item + c) * dim + column, mask=column < dim, other=0)
    vector = vector.to(log_prob.dtype.element_ty)
    total = tl.zeros((), vector.dtype)
    k = tl.load(code + c)
    for d in range(tl.load(code_start + k), tl.load(code_start + k + 1)):
        edge = tl.load(code_edge + d)
        row = tl.load(edge_row + edge)
        width = tl.load(edge_width + edge)
        branch = tl.load(edge_branch + edge)
        largest, taken, others = _decision(weight, bias, vector, row, width, branch, dim, column, n)
        # log(exp(below) / (exp(below) + others)), by log1p where the branch is the most probable
        below = taken - largest
        likeliest = -_log1p(others)
        total += tl.where(below == 0, likeliest, below - tl.log(others + tl.exp(below)))
    tl.store(log_prob + c, total)


@triton.jit
def touch(code, code_start, code_edge, edge_row, edge_width, is_touched, n: tl.constexpr):
    """Mark the weight rows of the nodes that code c passes."""
    k = tl.load(code + tl.program_id(0).to(tl.int64))
    for d in range(tl.load(code_start + k), tl.load(code_start + k + 1)):
        edge = tl.load(code_edge + d)
        row = tl.load(edge_row + edge)
        width = tl.load(edge_width + edge)
        # A binary node has one row
        n_rows = tl.where(width == 2, 1, width)
        for first in range(0, n_rows, n):
            child = first + tl.arange(0, n)
            tl.store(is_touched + row + child, child >= 0, mask=child < n_rows)


@triton.jit
def backward(
    weight,
    bias,
    hidden,
    item,
    code,
    code_start,
    code_edge,
    edge_row,
    edge_width,
    edge_branch,
    grad_log_prob,
    position,
    grad_weight,
    grad_bias,
    grad_hidden,
    dim,
    columns: tl.constexpr,
    n: tl.constexpr,
):
    """Add the gradients of the weight rows of code c, and write that of its hidden vector.

    `position` is the position of each weight row in the gradients, `grad_log_prob` the gradient of
    the loss with respect to the log-probability of each code.
    """
    c = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, columns)
    vector = tl.load(hidden + tl.load(item + c) * dim + column, mask=column < dim, other=0)
    vector = vector.to(grad_hidden.dtype.element_ty)
    total = tl.zeros((columns,), vector.dtype)
    factor = tl.load(grad_log_prob + c)
    k = tl.load(code + c)
    for d in range(tl.load(code_start + k), tl.load(code_start + k + 1)):
        edge = tl.load(code_edge + d)
        row = tl.load(edge_row + edge)
        width = tl.load(edge_width + edge)
        branch = tl.load(edge_branch + edge)
        largest, taken, others = _decision(weight, bias, vector, row, width, branch, dim, column, n)
        # The softmax is exp(logit - largest) / (others + exp(taken - largest))
        scale = factor / (others + tl.exp(taken - largest))
        for first in range(0, width, n):
            child = first + tl.arange(0, n)
            rows, logits = _logits(weight, bias, vector, row, width, child, dim, column)
            # (n,) gradient of the loss with respect to the logits
            error = scale * tl.where(child == branch, others, -tl.exp(logits - largest))
            total += tl.sum(error[:, None] * rows, 0)
            has_row = child < tl.where(width == 2, 1, width)
            # Codes of other programs may add to the same rows
            to = tl.load(position + row + child, mask=has_row, other=0)
            tl.atomic_add(grad_bias + to, error, mask=has_row)
            tl.atomic_add(
                grad_weight + to[:, None] * dim + column[None, :],
                error[:, None] * vector[None, :],
                mask=has_row[:, None] & (column < dim)[None, :],
            )
    tl.store(grad_hidden + c * dim + column, total, mask=column < dim)


@triton.jit
def _pack_keys(log_prob, number):
    """Pack log-probabilities and numbers into int64 that sort by them, in this order."""
    bits = (log_prob + 0.0).to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (ordered.to(tl.int64) << 32) | number.to(tl.int64)


@triton.jit
def _unpack_log_prob(keys):
    ordered = (keys >> 32).to(tl.int32)
    return tl.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).to(tl.float32, bitcast=True)


@triton.jit
def _largest(best, keys):
    """Return the largest keys of two lists of the same length, descending, as `best` is."""
    # These are the larger ones of one list in ascending and one in descending order.
    return tl.sort(tl.maximum(best, tl.sort(keys, descending=False)), descending=True)


@triton.jit
def _write(best, last, left_out, is_number, labels, log_prob, is_exact, i, k, position):
    """Write the k best labels of hidden vector i, and whether no node left out could be better."""
    tl.store(is_exact + i, is_number & ((left_out >> 32) < (last >> 32)))
    label = 0x7FFFFFFF - (best & 0x7FFFFFFF)
    tl.store(labels + i * k + position, label, mask=position < k)
    tl.store(log_prob + i * k + position, _unpack_log_prob(best), mask=position < k)


@triton.jit(do_not_specialize=["k"])
def search(weight, bias, hidden, child, labels, log_prob, is_exact, dim, k, beam: tl.constexpr):
    """Follow the most probable nodes of each level, up to `beam`, for hidden vector i.

    All nodes have two children, so that node n has weight row n and children 2 n and 2 n + 1.
    """
    least: tl.constexpr = -(1 << 63)
    i = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, 2 * beam)
    # Keys of the nodes to follow (beam,), of the best labels (2 beam,), and of omitted entries
    nodes = tl.where(tl.arange(0, beam) == 0, tl.zeros((beam,), tl.int64), least)
    best = tl.full((2 * beam,), least, tl.int64)
    last = tl.full((), least, tl.int64)
    left_out = tl.full((), least, tl.int64)
    is_number = tl.full((), 1, tl.int1)
    while tl.max(nodes, 0) > least:
        is_node = nodes > least
        node = tl.where(is_node, nodes & 0x7FFFFFFF, 0)
        logit = tl.load(bias + node).to(tl.float32)
        for first in range(0, dim, 64):
            column = first + tl.arange(0, 64)
            part = tl.load(hidden + i * dim + column, mask=column < dim, other=0)
            mask = is_node[:, None] & (column < dim)[None, :]
            rows = tl.load(weight + node[:, None] * dim + column[None, :], mask=mask, other=0)
            logit += tl.sum(rows.to(tl.float32) * part.to(tl.float32)[None, :], 1)
        is_number = is_number & (tl.max(tl.where(logit == logit, 0, 1), 0) == 0)
        # (beam, 2), then (2 beam,): log-probabilities of the children, and what they are
        above = _unpack_log_prob(nodes)
        rest = _log1p(tl.exp(-tl.abs(logit)))
        first_child = above + tl.minimum(logit, 0) - rest
        both = tl.join(first_child, above + tl.minimum(-logit, 0) - rest).reshape(2 * beam)
        to = tl.join(tl.load(child + 2 * node), tl.load(child + 2 * node + 1)).reshape(2 * beam)
        is_child = tl.join(is_node, is_node).reshape(2 * beam)
        label_keys = _pack_keys(both, 0x7FFFFFFF - ~to)
        best = _largest(best, tl.where(is_child & (to < 0), label_keys, least))
        last = tl.max(tl.where(position == k - 1, best, least), 0)
        # Nodes less probable than the last of the labels cannot lead to better labels
        node_keys = tl.where(is_child & (to >= 0), _pack_keys(both, to), least)
        node_keys = tl.where((node_keys >> 32) < (last >> 32), least, node_keys)
        node_keys = tl.sort(node_keys, descending=True)
        left_out = tl.maximum(left_out, tl.max(tl.where(position == beam, node_keys, least), 0))
        # (2, beam): the first row continues
        is_first = tl.arange(0, 2)[:, None] == 0
        nodes = tl.max(tl.where(is_first, node_keys.reshape(2, beam), least), 0)
    _write(best, last, left_out, is_number, labels, log_prob, is_exact, i, k, position)


@triton.jit(do_not_specialize=["k"])
def search_wide(
    weight,
    bias,
    hidden,
    child_start,
    child,
    edge_row,
    edge_width,
    logits,
    labels,
    log_prob,
    is_exact,
    widest,
    k,
    most,
    beam: tl.constexpr,
    dim,
    columns: tl.constexpr,
    n: tl.constexpr,
):
    """Search best-first for hidden vector i: follow the most probable node found, up to `most`.

    Nodes have up to `widest` children. The logits of those of the last node are kept (N, widest).
    """
    least: tl.constexpr = -(1 << 63)
    i = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, 2 * beam)
    column = tl.arange(0, columns)
    vector = tl.load(hidden + i * dim + column, mask=column < dim, other=0).to(tl.float32)
    # Keys (2 beam,) of the nodes to follow and of the best labels, and of omitted entries
    nodes = tl.where(position == 0, tl.zeros((2 * beam,), tl.int64), least)
    best = tl.full((2 * beam,), least, tl.int64)
    last = tl.full((), least, tl.int64)
    left_out = tl.full((), least, tl.int64)
    first = tl.max(nodes, 0)
    followed = 0
    is_number = tl.full((), 1, tl.int1)
    while is_number & (followed < most) & (first > least) & ((first >> 32) >= (last >> 32)):
        nodes = tl.where(nodes == first, least, nodes)
        edge = tl.load(child_start + (first & 0x7FFFFFFF))
        row = tl.load(edge_row + edge)
        width = tl.load(edge_width + edge)
        largest = tl.full((), -float("inf"), tl.float32)
        total = tl.zeros((), tl.float32)
        for start in range(0, width, n):
            branch = start + tl.arange(0, n)
            _, values = _logits(weight, bias, vector, row, width, branch, dim, column)
            tl.store(logits + i * widest + branch, values, mask=branch < width)
            before = largest
            largest = tl.maximum(before, tl.max(values, 0))
            total = total * tl.exp(before - largest) + tl.sum(tl.exp(values - largest), 0)
        is_number = total == total
        above = _unpack_log_prob(first)
        log_total = tl.log(total)
        tl.debug_barrier()  # other threads read these logits
        for start in range(0, width, 2 * beam):
            branch = start + position
            is_child = branch < width
            values = tl.load(logits + i * widest + branch, mask=is_child, other=0)
            values = values - largest - log_total + above
            to = tl.load(child + edge + branch, mask=is_child, other=0)
            label_keys = _pack_keys(values, 0x7FFFFFFF - ~to)
            label_keys = tl.where(is_child & (to < 0), label_keys, least)
            if tl.max(label_keys, 0) > last:
                best = _largest(best, label_keys)
                last = tl.max(tl.where(position == k - 1, best, least), 0)
            node_keys = tl.where(is_child & (to >= 0), _pack_keys(values, to), least)
            node_keys = tl.where((node_keys >> 32) < (last >> 32), least, node_keys)
            if tl.max(node_keys, 0) > least:
                nodes = tl.sort(nodes, descending=True)
                node_keys = tl.sort(node_keys, descending=False)
                left_out = tl.maximum(left_out, tl.max(tl.minimum(nodes, node_keys), 0))
                nodes = tl.maximum(nodes, node_keys)
        first = tl.max(nodes, 0)
        followed += 1
        tl.debug_barrier()  # the next node overwrites the logits
    left_out = tl.maximum(left_out, first)
    _write(best, last, left_out, is_number, labels, log_prob, is_exact, i, k, position)
