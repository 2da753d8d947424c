"""Layers on several processes (gloo, loopback) compute and train as one process does."""

import copy
import faulthandler
import functools
import os
import socket
import time
from datetime import timedelta

import numpy as np
import pytest

import hstree
from hstree.errors import InputError, OptionError
from tests.interop.torch_layers import TREES, HierarchicalSoftmax, batch, needs_gloo, torch, twins

from hstree.interop.torch import ShardedHierarchicalSoftmax  # isort: skip
from hstree.interop.torch.sharded import node_owners  # isort: skip

pytestmark = needs_gloo

#: Seconds after which a process that waits in vain fails, says where it is and ends, or is killed.
TIMEOUT, WATCHDOG, KILL = 120, 200, 240
#: Items of each process's batch: of a usual one, and of one that a process has nothing in.
SIZES = {"different": (50, 30, 20), "one empty": (40, 0, 20)}
#: Binary nodes, wide ones, several codes.
TREE = TREES["classes, several codes"]
CLOSE = {"rtol": 1e-6, "atol": 1e-6, "equal_nan": True}


def in_processes(n, work, folder):
    """Run ``work(rank, n)`` in processes of a group, and return their results, by rank."""
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
    torch.distributed.barrier()  # so that none leaves while another still sends
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
            gradients.append(parameter.grad.to_dense())
        rows = torch.from_numpy(layer.rows)
        is_sparse = parameter.grad.is_sparse
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
    for rank, results in enumerate(processes):
        output, loss, gradients, rows, is_sparse = results[case]
        torch.testing.assert_close(output, alone[rank].output.detach(), **CLOSE)
        torch.testing.assert_close(loss, alone[rank].loss.detach(), **CLOSE)
        expected = [batches[rank][0].grad]
        expected += [parameter.grad[rows] / n for parameter in module.parameters()]
        torch.testing.assert_close(gradients, expected, **CLOSE)
        assert is_sparse == sparse
    held = np.concatenate([results[case][3] for results in processes])
    assert np.array_equal(np.unique(held), np.arange(TREES[name].row_start[-1]))


def test_sub_trees_are_whole_and_balanced():
    counts = 1 + 20_000 // np.arange(1, 20_001)
    for method in ("huffman", "balanced"):
        tree = hstree.build(method, hstree.Vocabulary([f"w{i}" for i in range(20_000)], counts))
        owner = node_owners(tree, tree.counts, 2)
        above = owner[tree.parent[1:]]
        assert np.all((above == -1) | (above == owner[1:]))
        rows, visits = (
            np.diff(tree.row_start),
            np.add.reduceat(tree.sum_up(counts), tree.child_start[:-1]),
        )
        at_top, *held = np.bincount(owner + 1, rows)
        assert at_top + max(held) < 0.55 * rows.sum()
        _, *computed = np.bincount(owner + 1, rows * visits)
        assert max(computed) < 0.55 * sum(computed)


def test_a_node_is_never_divided():
    assert node_owners(TREES["flat"], None, 2).tolist() == [0]


class Model(torch.nn.Module):
    """Hidden vectors of 30 contexts before a layer."""

    def __init__(self, layer):
        super().__init__()
        self.body = torch.nn.Embedding(30, 5, dtype=torch.float64)
        self.layer = layer
        with torch.no_grad():
            self.body.weight.copy_(torch.from_numpy(batch(TREE, 30)[0]))

    def forward(self, context, target):
        return self.layer(self.body(context), target).loss


def train(model, rank, n):
    """Take three steps of SGD on a process's part of batches of 30."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    for seed in range(3):
        optimiser.zero_grad()
        target = torch.from_numpy(batch(TREE, 30, seed=seed)[1])[rank::n]
        model(torch.arange(30)[rank::n], target).backward()
        optimiser.step()
    return model


def refusal(**options):
    """Return the message of a layer that cannot be made."""
    with pytest.raises(InputError) as error:
        ShardedHierarchicalSoftmax(TREE, 5, **options)
    return str(error.value)


def trained_layers(rank, n):
    """Return the states of models that were trained in each way of torch's and in ours."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.nn.parallel import DistributedDataParallel

    weights = twins(TREE)[1].state_dict()
    dense = HierarchicalSoftmax(TREE, 5, dtype=torch.float64)
    dense.load_state_dict(weights)
    flat_shards = FullyShardedDataParallel(
        Model(copy.deepcopy(dense)), use_orig_params=True, device_id=torch.device("cpu")
    )
    train(flat_shards, rank, n)
    with FullyShardedDataParallel.summon_full_params(flat_shards):
        summoned = copy.deepcopy(flat_shards.module.state_dict())
    replicated = train(DistributedDataParallel(Model(copy.deepcopy(dense))), rank, n).module
    shards = fully_shard(Model(dense), mesh=init_device_mesh("cpu", (n,)))
    gathered = get_model_state_dict(
        train(shards, rank, n), options=StateDictOptions(full_state_dict=True)
    )
    ours = Model(ShardedHierarchicalSoftmax(TREE, 5, sparse=True, dtype=torch.float64))
    ours.layer.load_state_dict(weights)
    ours.body = DistributedDataParallel(ours.body)
    state = train(ours, rank, n).state_dict()
    state["body.weight"] = state.pop("body.module.weight")
    return {
        "DistributedDataParallel": replicated.state_dict(),
        "FullyShardedDataParallel": summoned,
        "fully_shard": gathered,
        "sharded by sub-trees": state,
        "other counts": refusal(counts=np.arange(TREE.n_labels) * rank),
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """States of models that two processes trained, by how they did."""
    return in_processes(2, trained_layers, tmp_path_factory.mktemp("trained"))


def test_two_processes_train_as_one(trained):
    expected = train(Model(twins(TREE)[1]), 0, 1).state_dict()
    for rank, states in enumerate(trained):
        for way, state in states.items():
            # fully_shard gathers on the first process alone
            if way != "other counts" and (rank == 0 or state):
                torch.testing.assert_close(dict(state), dict(expected), **CLOSE)


def test_processes_with_different_counts_are_refused(trained):
    assert all("the same tree, in_features and counts" in each["other counts"] for each in trained)


def layer_of(state, made=ShardedHierarchicalSoftmax):
    layer = made(TREE, 5, dtype=torch.float64)
    prefix = "layer."
    layer.load_state_dict(
        {name[len(prefix) :]: values for name, values in state.items() if prefix in name}
    )
    return layer


def scored_by_three(rank, n, state):
    layer = layer_of(state)
    return layer(
        *items(TREE, rank, (20, 20, 20), torch.float64)
    ).output.detach(), layer.state_dict()


def test_any_number_of_processes_reads_a_state(trained, tmp_path, one_process):
    state = trained[0]["sharded by sub-trees"]
    alone, one = layer_of(state, HierarchicalSoftmax), layer_of(state)
    work = functools.partial(scored_by_three, state=state)
    assert len(one.rows) == len(alone.bias)
    for rank, (output, again) in enumerate(in_processes(3, work, tmp_path)):
        part = items(TREE, rank, (20, 20, 20), torch.float64)
        torch.testing.assert_close(output, alone(*part).output.detach(), **CLOSE)
        torch.testing.assert_close(output, one(*part).output.detach(), **CLOSE)
        assert all(torch.equal(again[name], alone.state_dict()[name]) for name in again)
    assert "1,459 of 1,459 weight rows" in repr(one)


def test_a_state_of_another_tree_is_refused(one_process):
    state = HierarchicalSoftmax(TREES["flat"], 5).state_dict()
    for kept in (state, dict(state)):  # with the tree's hash and without
        with pytest.raises(RuntimeError, match=r"learned on another tree|has 40 rows"):
            ShardedHierarchicalSoftmax(TREE, 5).load_state_dict(kept)


def test_without_a_group_it_says_what_to_call():
    with pytest.raises(OptionError, match="init_process_group"):
        ShardedHierarchicalSoftmax(TREE, 5)
