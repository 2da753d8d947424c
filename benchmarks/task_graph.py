"""Trees of 10^8 and 10^9 labels, on paper: the task graph of a build, simulated.

A build splits the upper nodes in one process (`hstree.builders.shared.sampled`), sends the rows of
each sub-tree to a worker, and joins the sub-trees that come back. Each is given seconds a row;
the link of the process that sends is shared by all jobs.

    python -m benchmarks.task_graph [--labels 100000000 1000000000] [--workers 10 100]
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from benchmarks import table
from hstree.builders.shared.sampled import PART

#: Seconds a row: of one level of upper nodes, of one level of a sub-tree, of joining and writing.
#: The second is from the CPU seconds of gmm's workers at 10^7 labels; the others are a guess of how
#: those of the first process divide.
UPPER, DIVIDING, JOINING = 3.6e-7, 5.0e-7, 1.0e-6
#: Bytes a row: of the process that joins (words, scores, and the tree with its copy), and of a
#: sub-tree that comes back.
HELD, RETURNED = 88, 24


def main() -> None:
    parser = table.parser(__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[10**7, 10**8, 10**9])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 10, 100])
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--link", type=float, default=1.25e9, help="bytes a second")
    options = parser.parse_args()
    rows = (
        simulated(labels, workers, options.dim, options.link)
        for labels in options.labels
        for workers in options.workers
    )
    table.report("task_graph", rows, options.json)


def simulated(labels: int, workers: int, dim: int, link: float) -> table.Row:
    """Return seconds, memory and bytes moved of a build by jobs of equal workers."""
    levels = max(0, math.ceil(math.log2(labels / PART)))
    upper = labels * levels * UPPER
    free = [upper] * workers  # when each worker is free
    heapq.heapify(free)
    sent, moved, ended = upper, 0.0, upper
    for size in sub_trees(labels, levels):
        sent += size * dim * 4 / link  # one after the other
        began = max(heapq.heappop(free), sent)
        end = began + size * math.log2(size) * DIVIDING
        heapq.heappush(free, end)
        moved += size * (dim * 4 + RETURNED)
        ended = max(ended, end + size * RETURNED / link)
    return {
        "labels": labels,
        "workers": workers,
        "upper s": upper,
        "sub-trees s": ended - upper,
        "join s": labels * JOINING,
        "hours": (ended + labels * JOINING) / 3600,
        "sub-trees": 2**levels,
        "moved GB": moved / 1e9,
        "memory GB": labels * HELD / 1e9,
        "vectors GB": labels * dim * 4 / 1e9,
    }


def sub_trees(labels: int, levels: int) -> Iterator[float]:
    """Yield the sizes of the sub-trees, of even splits."""
    for _ in range(2**levels):
        yield labels / 2**levels


if __name__ == "__main__":
    main()
