"""The deepest tree there is: a chain, with half of its decisions on the way to its last labels."""

import numpy as np

from hstree.tree import Tree


def chain(n_labels):
    """Return a binary tree whose label i has i + 1 decisions (the last one as many as before)."""
    child = np.empty((n_labels - 1, 2), np.int64)
    child[:, 0], child[:, 1] = ~np.arange(n_labels - 1), np.arange(1, n_labels)
    child[-1, 1] = ~(n_labels - 1)
    return Tree([f"w{i}" for i in range(n_labels)], 2 * np.arange(n_labels), child.ravel())
