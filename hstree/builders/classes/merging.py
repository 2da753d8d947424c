"""Binary tree over classes, by Brown's merging algorithm."""

import numpy as np

from hstree import progress
from hstree._arrays import Float64, Int64, Integer
from hstree.builders.classes.bigrams import x_log_x


def merge_by_information(pairs: Integer) -> Int64:
    """Merge two classes at a time, with the least loss of average mutual information.

    Entry (a, b) of `pairs` (C, C) is the number of times that a word of class b follows a word of
    class a. Row i of the result (C - 1, 2) is the i-th merge, the smaller number first: a number
    below C is a class, and ``C + i`` is merge i. The last merge is the root.

    Notes
    -----
    The average mutual information of adjacent classes [1]_, times the number of pairs, is
    ``sum_ab f(N(a, b)) - sum_a f(N(a, .)) - sum_b f(N(., b))`` plus a constant, f(x) = x ln x.
    Each merge updates the losses of all pairs of classes in O(C^2). The total is O(C^3): a few
    seconds for 300 classes, and about two minutes for 1,000. Ties are broken in favour of the
    smaller class numbers, up to rounding.

    References
    ----------
    .. [1] P. F. Brown et al., "Class-based n-gram models of natural language", Computational
       Linguistics 18(4), 1992, section 3.
    """
    N = np.array(pairs, np.float64)  # (remaining classes, the same), updated by merges
    n_classes = len(N)
    item = np.arange(n_classes)  # class or merge number of each remaining class
    merges = np.empty((max(n_classes - 1, 0), 2), np.int64)
    loss = np.empty_like(N)  # of merging each class with each other class
    f_N = x_log_x(N)
    with progress.task("comparing classes", total=n_classes, unit="classes") as task:
        for a in range(n_classes):
            loss[a] = _losses(N, f_N, a)
            task.advance()

    # A merge among m classes takes m^2 operations
    n_operations = float((np.arange(2.0, n_classes + 1) ** 2).sum())
    with progress.task("merging classes", total=n_operations) as task:
        for number in range(n_classes - 1):
            task.advance(len(N) ** 2)
            # The smaller number first
            pair_loss = np.where(np.tri(len(N), dtype=bool), np.inf, loss)
            a, b = map(int, np.unravel_index(np.argmin(pair_loss), loss.shape))
            merges[number] = sorted((item[a], item[b]))
            item[a] = n_classes + number
            item = np.delete(item, b)
            N, loss = _merge(N, loss, a, b)
    return merges


def _losses(N: Float64, f_N: Float64, a: int) -> Float64:
    """Return the losses (C,) of merging class a with each class; `f_N` is f(N)."""
    rows = (f_N[a] + f_N - x_log_x(N[a] + N)).sum(axis=1)
    columns = (f_N[:, a] + f_N.T - x_log_x(N[:, a] + N.T)).sum(axis=1)

    # The rows and the columns both count the four entries that two classes share. Subtract f of
    # those sums, and add f of the sum of all four
    diagonal = np.diagonal(N)
    f_diagonal = np.diagonal(f_N)
    after = N[a]  # (C,) counts of the other class after a
    before = N[:, a]
    row_sums = x_log_x(diagonal[a] + after) + x_log_x(diagonal + before)
    column_sums = x_log_x(diagonal[a] + before) + x_log_x(diagonal + after)
    single = f_N[a] + f_N[:, a] + (f_diagonal[a] + f_diagonal)
    all_four = x_log_x(diagonal[a] + diagonal + (after + before))
    shared = row_sums + column_sums - single - all_four

    # The totals N(a, .) and N(., b) have the opposite sign
    left = N.sum(axis=1)
    right = N.sum(axis=0)
    totals = _loss(left[a], left) + _loss(right[a], right)
    losses: Float64 = rows + columns + shared - totals
    return losses


def _loss(x: Float64, y: Float64) -> Float64:
    """Return f(x) + f(y) - f(x + y), which is never above zero."""
    return x_log_x(x) + x_log_x(y) - x_log_x(x + y)


def _merge(N: Float64, loss: Float64, a: int, b: int) -> tuple[Float64, Float64]:
    """Merge class b into class a; return the new counts and losses."""
    # For other pairs, replace the losses in two columns (rows) by the loss in their sum
    for x, y in ((N[:, a], N[:, b]), (N[a], N[b])):
        loss = loss - _pair_losses(x) - _pair_losses(y) + _pair_losses(x + y)

    # Add the counts of b to those of a, and remove b
    N = N.copy()
    N[a] += N[b]
    N[:, a] += N[:, b]
    is_left = np.arange(len(N)) != b
    left = np.ix_(is_left, is_left)
    N = N[left]
    loss = loss[left]

    # Pairs with the merged class
    loss[a] = _losses(N, x_log_x(N), a)
    loss[:, a] = loss[a]
    return N, loss


def _pair_losses(x: Float64) -> Float64:
    """Return the loss (C, C) of joining rows i and j, in a single column x (C,)."""
    return _loss(x[:, None], x)
