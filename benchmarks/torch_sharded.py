"""A tree's torch layer divided by sub-trees among processes, beside a vocabulary-parallel softmax.

Zipf-distributed targets, a batch for each process, float32, gloo over the loopback device:

- sub-trees: ``ShardedHierarchicalSoftmax`` of a Huffman tree, sparse gradients;
- vocabulary: each process holds V / P rows of a flat softmax; all hidden vectors go to all, maxima
  and sums of exponentials come from all.

A step is forward and backward. Bytes are those that the loopback device counts, so run nothing else
on it (``unshare -n sh -c "ip link set lo up; ..."`` has one of its own); the formulas are those of
docs/torch.md.

    python -m benchmarks.torch_sharded [--sizes 100000] [--processes 2] [--json FILE]
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

import hstree
from benchmarks import common
from benchmarks.common import zipf_targets, zipf_vocabulary
from hstree.interop.torch import ShardedHierarchicalSoftmax


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--batch-size", type=int, default=512, help="of each process")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    options = parser.parse_args()
    common.report("torch_sharded", compare(options), options.json)


def compare(options: Any) -> Iterator[dict[str, Any]]:
    """Measure all layers at all sizes; each in processes of its own."""
    for n_labels in options.sizes:
        for name in options.layers:
            with tempfile.TemporaryDirectory() as folder:
                arguments = (name, n_labels, options, Path(folder))
                torch.multiprocessing.spawn(measure, arguments, nprocs=options.processes)
                yield torch.load(Path(folder) / "row.pt")


def measure(rank: int, name: str, n_labels: int, options: Any, folder: Path) -> None:
    """Take steps in one process of a group; the first writes a row of the table."""
    n, d, size = options.processes, options.dim, options.batch_size
    device = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    os.environ["GLOO_SOCKET_IFNAME"] = device
    torch.set_num_threads(1)
    torch.sparse.check_sparse_tensor_invariants.disable()
    distributed.init_process_group(
        "gloo", f"file://{folder}/store", timedelta(minutes=5), rank=rank, world_size=n
    )
    layer = LAYERS[name](n_labels, d)
    target = torch.from_numpy(zipf_targets(zipf_vocabulary(n_labels), size, seed=rank))
    drawn = np.random.default_rng(rank).standard_normal((size, d), np.float32)
    hidden = torch.from_numpy(drawn).requires_grad_()
    seconds, sent = [], []
    for _ in range(options.rounds + 1):
        distributed.barrier()
        before, began = sent_bytes(device), time.perf_counter()
        layer.zero_grad()
        layer(hidden, target)[1].backward()
        distributed.barrier()
        seconds.append(time.perf_counter() - began)
        sent.append(sent_bytes(device) - before)
    held = torch.tensor(len(layer.bias))
    distributed.all_reduce(held, distributed.ReduceOp.MAX)
    if rank == 0:
        row = {
            "labels": n_labels,
            "layer": name,
            "most parameters of a process, %": 100 * held.item() / layer.n_rows,
            "KB sent by a process": statistics.median(sent[1:]) / n / 1e3,
            "by the formula": layer.bytes_sent(size, n) / 1e3,
            "milliseconds": 1e3 * statistics.median(seconds[1:]),
        }
        torch.save(row, folder / "row.pt")
    distributed.destroy_process_group()


def sent_bytes(device: str) -> int:
    """Return the number of bytes that a network device has sent."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()
    return next(int(line.split()[9]) for line in lines if line.split()[0] == f"{device}:")


class SubTrees(ShardedHierarchicalSoftmax):
    """A Huffman tree's layer."""

    def __init__(self, n_labels: int, dim: int) -> None:
        super().__init__(hstree.build("huffman", zipf_vocabulary(n_labels)), dim, sparse=True)
        self.n_rows = int(self.tree.row_start[-1])

    def bytes_sent(self, size: int, n: int) -> float:
        """Return how many bytes a process sends in a step."""
        top = self.n_shared * (self.in_features + 1) * 4
        return (n - 1) / n * (size * (8 * self.in_features + 16) + 2 * top)


class Vocabulary(nn.Linear):
    """The flat softmax with its rows spread over the processes."""

    def __init__(self, n_labels: int, dim: int) -> None:
        n, rank = distributed.get_world_size(), distributed.get_rank()
        self.first, end = rank * n_labels // n, (rank + 1) * n_labels // n
        self.n_rows = n_labels
        super().__init__(dim, end - self.first)

    def forward(self, hidden: Tensor, target: Tensor) -> tuple[None, Tensor]:
        """Return the mean loss of this process's items, in the second place as a tree's layer."""
        everything = _gathered(hidden)
        logits = everything @ self.weight.T + self.bias
        cross_entropy: Callable[..., Tensor] = _Parallel.apply
        nll = cross_entropy(logits, _gathered(target) - self.first)
        start = distributed.get_rank() * len(target)
        return None, nll[start : start + len(target)].mean()

    def bytes_sent(self, size: int, n: int) -> float:
        """Return how many bytes a process sends in a step."""
        sums = 4 * 2 * (n - 1) / n * size * n * 4
        return (n - 1) * size * (8 * self.in_features + 8) + sums


class _Gather(torch.autograd.Function):
    """The rows of all processes; the gradients of each come from all."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        n = distributed.get_world_size()
        everything = [torch.empty_like(values) for _ in range(n)]
        distributed.all_gather(everything, values.contiguous())
        return torch.cat(everything)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        parts = torch.empty_like(gradient)
        distributed.all_to_all_single(parts, gradient.contiguous())
        return torch.stack(parts.chunk(distributed.get_world_size())).sum(0)


def _gathered(values: Tensor) -> Tensor:
    everything: Tensor = _Gather.apply(values)
    return everything


class _Parallel(torch.autograd.Function):
    """Cross entropies from the logits of some labels on each process."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        largest = logits.amax(1)
        distributed.all_reduce(largest, distributed.ReduceOp.MAX)
        share = (logits - largest[:, None]).exp_()
        total = share.sum(1)
        distributed.all_reduce(total)
        item = ((target >= 0) & (target < logits.shape[1])).nonzero()[:, 0]
        chosen = torch.zeros_like(total)
        chosen[item] = logits[item, target[item]] - largest[item]
        distributed.all_reduce(chosen)
        ctx.save_for_backward(share.div_(total[:, None]), item, target[item])
        return total.log() - chosen

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None]:
        share, item, target = ctx.saved_tensors
        # The loss of other processes' items is theirs: all errors are needed on all
        distributed.all_reduce(error := error.contiguous())
        gradient = share * error[:, None]
        gradient[item, target] -= error[item]
        return gradient, None


LAYERS = {"sub-trees": SubTrees, "vocabulary": Vocabulary}

if __name__ == "__main__":
    main()
