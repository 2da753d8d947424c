"""The example of torch learns, and two processes train as one does."""

import os
import re
import socket

import pytest

from tests import needs
from tests.scripts import ROOT, python_path, run_python

pytest.importorskip("torch", reason=needs.TORCH)

from tests.interop.torch_layers import needs_gloo

EXAMPLE = ROOT / "examples" / "torch_lm.py"
SMALL = ("--lines", "300", "--dim", "8", "--epochs", "2", "--min-count", "5")


#: Ends every process that a run starts, and has it say where it stands, before the run times out.
WATCHDOG = "import faulthandler\nfaulthandler.dump_traceback_later(200, exit=True)\n"


def run(*command, folder, **environment):
    """Run this Python on a command, on one thread, and return its output."""
    (folder / "sitecustomize.py").write_text(WATCHDOG)
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{folder}{os.pathsep}{python_path()}"}
    return run_python(command, folder, timeout=300, **environment)


def figures(printed):
    """Return every perplexity that the example printed."""
    return [
        float(figure) for figure in re.findall(r"(?:train|valid|perplexity) (\d+\.\d+)", printed)
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Output of the example in one process, with dense gradients."""
    return run(EXAMPLE, *SMALL, "--dense", folder=tmp_path_factory.mktemp("alone"))


def test_the_example_learns_whatever_the_layer(alone, tmp_path):
    dense = figures(alone)
    sparse = figures(run(EXAMPLE, *SMALL, folder=tmp_path))
    linear = figures(run(EXAMPLE, *SMALL, "--linear", folder=tmp_path))
    for train, _, again, _, _ in (dense, sparse, linear):
        assert again < train
    assert sparse == pytest.approx(dense, rel=1e-3)
    assert linear != pytest.approx(dense, rel=1e-3)


@needs_gloo
def test_two_processes_train_as_one(alone, tmp_path):
    # over the loopback device, since the name of the machine may resolve to another
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    options = ("--standalone", "--local-addr=127.0.0.1", "--nproc_per_node=2")
    launched = ("-m", "torch.distributed.run", *options, EXAMPLE, *SMALL)
    both = run(*launched, folder=tmp_path, GLOO_SOCKET_IFNAME=loopback)
    assert "1 process(es)" in alone
    assert both.count("2 process(es)") == 1
    assert len(figures(both)) == 5
    assert figures(both) == pytest.approx(figures(alone), rel=1e-3)
