"""Layers on several processes (gloo, loopback) compute and train as one process does."""

import faulthandler
import os
import socket
import time
from datetime import timedelta

import numpy as np
import pytest

import hstree
from hstree.errors import OptionError
from tests.interop.torch_layers import (
    TREES,
    HierarchicalSoftmax,
    batch,
    every_tree,
    random_tree,
    torch,
    twins,
)

from hstree.interop.torch import ShardedHierarchicalSoftmax  # isort: skip
from hstree.interop.torch.sharded import node_owners  # isort: skip

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="this torch has no gloo",
)

#: Seconds after which a process that waits in vain fails, says where it is and ends, or is killed.
TIMEOUT, WATCHDOG, KILL = 60, 150, 180
#: Items of each process's batch: of a usual one, and of one that a process has nothing in.
SIZES = {"different": (50, 30, 20), "one empty": (40, 0, 20)}
BINARY = TREES["binary"]


def in_processes(n, work, folder):
    """Run ``work(rank, n)`` in processes of a group, and return what they returned, by rank."""
    context = torch.multiprocessing.spawn(_process, (n, work, folder), nprocs=n, join=False)
    deadline = time.monotonic() + KILL
    try:
        while not context.join(timeout=max(0, deadline - time.monotonic())):
            assert time.monotonic() < deadline, "the processes hang"
    finally:
        for process in context.processes:
            process.kill()
    return [torch.load(folder / f"{rank}.pt") for rank in range(n)]


def _process(rank, n, work, folder):
    faulthandler.dump_traceback_later(WATCHDOG, exit=True)
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    os.environ["GLOO_SOCKET_IFNAME"] = loopback
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=n,
        timeout=timedelta(seconds=TIMEOUT),
    )
    torch.save(work(rank, n), folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def items(tree, rank, sizes, dtype):
    """Return a process's hidden vectors, which want a gradient, and targets, some ignored."""
    hidden, target = (torch.from_numpy(array) for array in batch(tree, sizes[rank], seed=rank))
    target[::7] = -100
    return hidden.to(dtype).requires_grad_(), target


CASES = [
    (name, dtype, sparse, sizes)
    for name in TREES
    for dtype, sparse in ((torch.float64, False), (torch.float32, True))
    for sizes in SIZES
]


def sharded_layers(rank, n):
    """Compute every case; return outputs, losses, gradients and states."""
    torch.sparse.check_sparse_tensor_invariants.disable()
    results = []
    for name, dtype, sparse, sizes in CASES:
        tree = TREES[name]
        layer = ShardedHierarchicalSoftmax(tree, 5, sparse=sparse, dtype=dtype)
        layer.load_state_dict(twins(tree, dtype=dtype)[1].state_dict())
        hidden, target = items(tree, rank, SIZES[sizes], dtype)
        output, loss = layer(hidden, target)
        loss.backward()
        gradients = [hidden.grad]
        for parameter in layer.parameters():
            grad = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            gradients.append(grad.to_dense() if grad.is_sparse else grad)
        rows = torch.from_numpy(layer.rows)
        is_sparse = parameter.grad is not None and parameter.grad.is_sparse
        results.append((output.detach(), loss.detach(), gradients, rows, is_sparse))
    return results


@pytest.fixture(scope="module", params=[2, 3])
def processes(request, tmp_path_factory):
    """Results of every case, for each process."""
    folder = tmp_path_factory.mktemp("processes")
    return in_processes(request.param, sharded_layers, folder)


@pytest.mark.parametrize("case", range(len(CASES)), ids=[" ".join(map(str, c)) for c in CASES])
def test_losses_and_gradients_are_those_of_one_process(processes, case):
    name, dtype, sparse, sizes = CASES[case]
    module, n = twins(TREES[name], dtype=dtype)[1], len(processes)
    batches = [items(TREES[name], rank, SIZES[sizes], dtype) for rank in range(n)]
    alone = [module(*each) for each in batches]
    sum(loss for _, loss in alone).backward()
    close = {"rtol": 1e-6, "atol": 1e-6, "equal_nan": True}
    for rank, results in enumerate(processes):
        output, loss, gradients, rows, is_sparse = results[case]
        torch.testing.assert_close(output, alone[rank].output.detach(), **close)
        torch.testing.assert_close(loss, alone[rank].loss.detach(), **close)
        expected = [batches[rank][0].grad]
        expected += [parameter.grad[rows] / n for parameter in module.parameters()]
        torch.testing.assert_close(gradients, expected, **close)
        assert is_sparse == (sparse and name != "one label")


def test_every_row_is_held(processes):
    for case, (name, *_) in enumerate(CASES):
        held = np.concatenate([results[case][3] for results in processes])
        assert np.array_equal(np.unique(held), np.arange(TREES[name].row_start[-1]))
