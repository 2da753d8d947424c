"""Ctrl-C and SIGTERM at any moment: one line, status 130, and the weights so far are kept."""

import sys

import pytest

import hstree as library
from tests.cli.conftest import figures

BEFORE = "import os, runpy, signal, sys\n"
AFTER = 'runpy.run_module("hstree_cli", run_name="__main__")'

#: Sends the program a signal when it imports a module.
WHILE_IMPORTING = """
name, number = sys.argv.pop(1), getattr(signal, sys.argv.pop(1))
def interrupt(event, arguments):
    if event == "import" and arguments[0] == name:
        os.kill(os.getpid(), number)
sys.addaudithook(interrupt)
"""

#: Sends the program a signal at its twentieth training step.
WHILE_TRAINING = """
from hstree.models.lbl import LogBilinearTrainer
number, steps, step = getattr(signal, sys.argv.pop(1)), [], LogBilinearTrainer.step
def interrupted(*arguments):
    steps.append(None)
    if len(steps) == 20:
        os.kill(os.getpid(), number)
    return step(*arguments)
LogBilinearTrainer.step = interrupted
"""


#: Sends the program a signal in a finaliser, where Python discards what is raised.
IN_A_FINALISER = """
from hstree.models import Model
number, fit = getattr(signal, sys.argv.pop(1)), Model.fit
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), number)
        for _ in range(1000):  # in which Python handles the signal
            pass
def finalised(*args, **options):
    Finalised()
    return fit(*args, **options)
Model.fit = finalised
"""

#: Sends the program a signal that other code catches at the end of its work.
CAUGHT = """
number = getattr(signal, sys.argv.pop(1))
from hstree_cli import main
run = main.run
def caught():
    try:
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
        pass
    run()
main.run = caught
"""


@pytest.fixture
def started(process):
    """Run a script that starts the program."""

    def run(script, *arguments):
        return process(*arguments, command=[sys.executable, "-c", BEFORE + script + AFTER])

    return run


@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("typer", "SIGINT"),
        ("hstree_cli.trees", "SIGTERM"),
        ("hstree.tree", "SIGINT"),
        ("numpy.exceptions", "SIGINT"),  # while NumPy starts, which it does once
    ],
)
def test_while_it_starts(started, tree, corpus, module, number):
    ran = started(WHILE_IMPORTING, module, number, "evaluate", tree, corpus, "--epochs", 1)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "hstree: error: interrupted\n")


def test_a_signal_that_a_finaliser_discards_comes_again(started, tree, corpus):
    training = ["--seconds", "20", "--dim", "4"]
    ran = started(IN_A_FINALISER, "SIGINT", "-q", "evaluate", tree, corpus, *training)
    assert ran.returncode == 130
    assert "ignored" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_signal_that_others_caught_is_in_the_status(started):
    ran = started(CAUGHT, "SIGTERM", "--version")
    assert (ran.returncode, ran.stderr) == (130, "hstree: error: interrupted\n")


def test_a_training_that_is_stopped_is_saved(started, tree, corpus, tmp_path):
    saved = ["--epochs", "100000", "--dim", "4", "--save", "m", "--json", "r.json"]
    ran = started(WHILE_TRAINING, "SIGINT", "-q", "evaluate", tree, corpus, *saved)
    assert ran.returncode == 130
    assert ran.stderr.startswith("hstree: warning: interrupted: ")
    assert ran.stderr.count("\n") == 1
    assert "interrupted" in ran.stdout
    assert figures(tmp_path / "r.json")["epochs"]
    assert library.LanguageModel.load(tmp_path / "m").tree == library.load(tree)
