"""A comparison on a Dask cluster: a scheduler and workers, each in its own process."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest

import hstree
from hstree import progress
from hstree._parallel import doing_jobs, parallel
from hstree.data.corpus import Corpus, corpus_address
from hstree.data.splits import Splits
from hstree.errors import InputError, WorkerError
from hstree.experiments.results import load
from tests import needs
from tests.experiments.conftest import QUICK
from tests.experiments.test_parallel import content
from tests.scripts import python_path, scripts_of
from tests.test_pages import run_page
from tests.texts import markov_lines

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")

CANDIDATES = ("gmm epsilon=0.4", "huffman", "huffman + ngrams", "random", "flat", "kn2")
OPTIONS = {"stop": hstree.Epochs(2), "speed_rounds": 0, **QUICK}


@contextmanager
def process(command, folder, *options, **environment):
    """Run a command of Dask in a folder; end it with the body."""
    module = f"distributed.cli.dask_{command}"
    log = folder.joinpath(f"{command}.log").open("ab")
    arguments = [sys.executable, "-m", module, *map(str, options), "--no-dashboard"]
    path = {"PYTHONPATH": f"{environment.pop('PYTHONPATH', '')}:{python_path()}"}
    with subprocess.Popen(
        arguments, cwd=folder, stdout=log, stderr=log, env=os.environ | path | environment
    ) as running:
        try:
            yield running
        finally:
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(10)
            running.kill()


@contextmanager
def worker(address, folder, nanny="--no-nanny", **environment):
    """Run a worker that does one job at a time; the body begins when it has connected."""
    folder.mkdir(exist_ok=True)
    options = address, "--nthreads", 1, nanny, "--local-directory", folder
    with distributed.Client(address, set_as_default=False) as client:
        n = len(client.scheduler_info(n_workers=-1)["workers"])
        with process("worker", folder, *options, **environment) as running:
            client.wait_for_workers(n + 1, timeout=60)
            yield running


@contextmanager
def cluster(folder):
    """Run a scheduler on the loopback; yield its address."""
    file = folder / "scheduler.json"
    options = "--host", "127.0.0.1", "--port", 0, "--scheduler-file", file
    with process("scheduler", folder, *options):
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            address = client.scheduler.address
        yield address


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A cluster of two workers."""
    home = tmp_path_factory.mktemp("cluster")
    with cluster(home) as address, worker(address, home / "1"), worker(address, home / "2"):
        yield address


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(markov_lines(2_500, 0)[0]))
    return file


@pytest.fixture(scope="module")
def alone(text, tmp_path_factory):
    """The folder of the comparison in this process."""
    home = tmp_path_factory.mktemp("alone")
    hstree.compare(Splits.of(Corpus.read(text)), CANDIDATES, home, **OPTIONS)
    return home


def test_a_cluster_leaves_the_same_folder(scheduler, alone, text, tmp_path):
    with doing_jobs(scheduler=scheduler):
        hstree.compare(Splits.of(Corpus.read(text)), CANDIDATES, tmp_path, **OPTIONS)
    assert content(tmp_path) == content(alone)


def test_a_job_that_kills_every_worker_is_given_up(tmp_path):
    with (
        cluster(tmp_path) as address,
        worker(address, tmp_path / "1", "--nanny"),
        worker(address, tmp_path / "2", "--nanny"),
        doing_jobs(scheduler=address),
        pytest.raises(WorkerError, match="workers died 3 times"),
    ):
        list(parallel(os._exit, [1, 2]))


def test_a_job_of_a_killed_worker_is_done_elsewhere(scheduler, alone, text, tmp_path):
    with worker(scheduler, tmp_path / "third") as third, doing_jobs(scheduler=scheduler):
        home = tmp_path / "home"
        kill = {"updated": lambda _: third.send_signal(signal.SIGKILL)}
        hstree.compare(Splits.of(Corpus.read(text)), CANDIDATES, home, **OPTIONS, **kill)
        assert third.poll() is not None
    assert content(home) == content(alone)


def beats(file):
    """Write the time to a file again and again, as a long job that reports its progress."""
    with progress.task("beats") as task:
        while True:
            file.write_text(str(time.time()))
            task.advance()
            time.sleep(0.05)


def test_ctrl_c_ends_the_jobs_of_a_cluster(scheduler, tmp_path):
    files = [tmp_path / "1", tmp_path / "2", tmp_path / "3"]

    def interrupt():
        while not (files[0].exists() and files[1].exists()):
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with doing_jobs(scheduler=scheduler), pytest.raises(KeyboardInterrupt):
        list(parallel(beats, files))
    ended = time.time()
    with doing_jobs(scheduler=scheduler):  # the workers are free, and alive
        assert sorted(parallel(abs, [-1, -2])) == [(0, 1), (1, 2)]
    assert time.time() - ended < 2
    assert not files[2].exists()


def test_another_text_on_a_worker_is_refused(scheduler, text, tmp_path):
    copy = tmp_path / "text.txt"
    copy.write_text(text.read_text())
    splits = Splits.of(Corpus.read(copy))
    entry = corpus_address(splits.train)[0][0]
    for file in entry.parent.glob(f"{entry.name}.*"):  # its arrays stay mapped in this process
        file.unlink()
    copy.write_text("another text\n" * 20)
    with doing_jobs(scheduler=scheduler), pytest.raises(InputError, match="differs from the text"):
        hstree.compare(splits, ["huffman", "flat"], tmp_path / "home", **OPTIONS)


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("__init__", "raise ModuleNotFoundError", "hstree"),
        ("_version", "__version__ = '0.0.9'", r"0\.0\.9"),
    ],
    ids=["none", "another version"],
)
def test_every_worker_needs_this_hstree(scheduler, tmp_path, module, source, message):
    package = tmp_path / "hstree"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / f"{module}.py").write_text(source)
    with (
        worker(scheduler, tmp_path / "worker", PYTHONPATH=str(tmp_path)),
        pytest.raises(WorkerError, match=message),
        doing_jobs(scheduler=scheduler),
    ):
        pass


def test_an_unreachable_scheduler_is_one_line():
    with pytest.raises(WorkerError, match=r"tcp://127\.0\.0\.1:1"):
        doing_jobs(scheduler="tcp://127.0.0.1:1").__enter__()


def test_a_scheduler_without_workers_is_refused(tmp_path):
    with cluster(tmp_path) as address, pytest.raises(WorkerError, match="workers"):
        doing_jobs(scheduler=address).__enter__()


# The page docs/cluster.md


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A folder with stand-ins for the commands of Slurm, which run a job here with one worker."""
    commands = {
        # Jobs are process groups; the first one submitted runs
        "sbatch": "set -m\nif mkdir submitted 2>/dev/null; then\n"
        "  sed 's/--nworkers 8/--nworkers 1/' \"$1\" >job.sh\n"
        "  bash job.sh >job.log 2>&1 &\nfi\necho Submitted batch job ${!:-1}",
        "scancel": "if [ $1 != 1 ]; then kill -- -$1; fi",
        "srun": 'exec "$@"',
        "dask": f'exec {sys.executable} -m dask "$@"',
        "hstree": f'exec {sys.executable} -m hstree_cli "$@"',
    }
    for name, script in commands.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / name).chmod(0o755)
    activate = tmp_path / "hstree-env" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    python = os.path.dirname(sys.executable)
    activate.write_text(f"export PATH={tmp_path}:{python}:$PATH PYTHONPATH={python_path()}\n")
    for name, value in {"HOME": tmp_path, "SCRATCH": tmp_path, "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


@pytest.mark.slow
def test_the_python_of_the_page(tmp_path):
    with cluster(tmp_path) as address, worker(address, tmp_path / "worker"):
        printed = run_page("cluster.md", tmp_path, slice(3))
    assert printed[-1] in ("huffman", "balanced", "flat")
    assert content(tmp_path / "which").keys() > content(tmp_path / "which-dask").keys()


@pytest.mark.slow
def test_the_script_of_the_page_for_slurm(slurm, text):
    (slurm / "corpus.txt").write_text(text.read_text())
    [script] = scripts_of("cluster.md", "bash")
    (slurm / "which.sbatch").write_text(script)
    ran = subprocess.run(
        ["bash", "which.sbatch"], cwd=slurm, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    names = {candidate.name for candidate in load(slurm / "which").candidates}
    assert names == {"huffman", "gmm", "classes", "flat"}
    assert "tls://" in ran.stderr
    assert not (slurm / "which-run-7").exists()


@pytest.mark.slow
def test_workers_of_slurm_on_demand(slurm):
    for module in ("dask_jobqueue", "cryptography"):
        pytest.importorskip(module, reason=needs.JOBQUEUE)
    last = scripts_of("cluster.md")[-1]
    printed = run_page("cluster.md", slurm, slice(1), last)
    assert printed[-1] == printed[0]
    assert "#SBATCH -A my-account" in (slurm / "job.sh").read_text()
