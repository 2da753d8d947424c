"""The scripts of docs/torch.md and the example run, and two processes train as one does."""

import re

import pytest

from tests import needs
from tests.scripts import ROOT, run_python, scripts_of
from tests.test_benchmarks import run as run_benchmark

torch = pytest.importorskip("torch", reason=needs.TORCH)

EXAMPLE = ROOT / "examples" / "torch_lm.py"
SMALL = ("--lines", "300", "--dim", "8", "--epochs", "2", "--min-count", "5")


def run(*command, folder):
    """Run this Python on a command, on one thread, and return what it printed."""
    return run_python(command, folder, timeout=300, OMP_NUM_THREADS="1")


def figures(printed):
    """Return every perplexity that the example printed."""
    return [
        float(figure) for figure in re.findall(r"(?:train|valid|perplexity) (\d+\.\d+)", printed)
    ]


def test_the_scripts_of_the_page(tmp_path):
    printed = run("-c", "\n".join(scripts_of("torch.md")), folder=tmp_path)
    start, end = map(float, re.findall(r"\d+\.\d+", printed.splitlines()[0]))
    assert end < start
    assert (tmp_path / "model" / "weights.safetensors").exists()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the example prints in one process, with dense gradients."""
    return run(EXAMPLE, *SMALL, "--dense", folder=tmp_path_factory.mktemp("alone"))


def test_the_example_learns_whatever_the_layer(alone, tmp_path):
    dense = figures(alone)
    sparse = figures(run(EXAMPLE, *SMALL, folder=tmp_path))
    linear = figures(run(EXAMPLE, *SMALL, "--linear", folder=tmp_path))
    for train, _, again, _, _ in (dense, sparse, linear):
        assert again < train
    assert sparse == pytest.approx(dense, rel=1e-3)
    assert linear != pytest.approx(dense, rel=1e-3)


@pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="this torch has no gloo",
)
def test_two_processes_train_as_one(alone, tmp_path):
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    both = run(*launcher, EXAMPLE, *SMALL, folder=tmp_path)
    assert "1 process(es)" in alone
    assert both.count("2 process(es)") == 1
    assert len(figures(both)) == 5
    assert figures(both) == pytest.approx(figures(alone), rel=1e-3)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks", "ignore:Initializing zero-element")
def test_the_benchmark(monkeypatch, capsys, tmp_path):
    sizes = ("--sizes", 200, "--dim", 4, "--batch-size", 8, "--rounds", 1)
    for optimiser in ("sgd", "adagrad"):
        options = (*sizes, "--optimiser", optimiser)
        rows = run_benchmark("torch_layer", monkeypatch, capsys, tmp_path, *options)
        assert {"Linear", "adaptive", "huffman", "huffman, dense"} <= {r["layer"] for r in rows}
        assert rows[0]["times Linear"] == 1
