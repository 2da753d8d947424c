"""Completion in shells: its installation, and what is completed."""

import shlex
import shutil
import subprocess

import pytest

from hstree.builders import builders
from hstree.layers import LAYERS


@pytest.fixture
def completed(hstree, monkeypatch):
    """Return the completions of a line that bash receives."""

    def complete(line):
        words = line.split(" ")
        monkeypatch.setenv("_HSTREE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        ran = hstree()
        return ran.out.split()

    return complete


def test_commands_options_methods_and_layers_are_completed(completed):
    assert completed("hstree ev") == ["evaluate"]
    assert completed("hstree build --method misspelt --fo") == ["--force"]
    assert completed("hstree compare --model sk") == ["skipgram"]
    assert completed("hstree methods differ") == ["differentiated"]
    assert completed("hstree stats ") == []
    assert completed("hstree build --method ") == list(builders())
    assert {*builders(), *LAYERS.names(), "trees"} <= set(completed("hstree evaluate "))


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_the_installed_script_completes_a_line_in_bash(program, tmp_path):
    command, environment = program
    environment |= {"HOME": str(tmp_path)}
    install = shlex.join([*command, "--install-completion"])  # for the shell that runs it
    subprocess.run(["bash", "-c", f"{install}; exit $?"], env=environment, check=True)
    binary = tmp_path / "hstree"
    binary.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    binary.chmod(0o755)
    ask = (
        f"source {tmp_path}/.bashrc; COMP_WORDS=({binary} build -m huf); COMP_CWORD=3; "
        f"_hstree_completion {binary}; echo ${{COMPREPLY[@]}}"
    )
    ran = subprocess.run(["bash", "-c", ask], env=environment, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("huffman\n", "")
