"""Locks of folders: a lock ends with its process; a folder in use is not removed."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from hstree import _files
from hstree._files import LOCK, acquire_lock, locked, remove_unused
from hstree.errors import FileFormatError, InputError
from tests.damage import IN_THE_PLACE

#: Holds a lock until there is a line on standard input.
HOLDER = """
import sys
from pathlib import Path
from hstree._files import locked
with locked(Path("folder"), shared=sys.argv[1] == "shared"):
    print("locked", flush=True)
    sys.stdin.readline()
"""
#: Says that it waits, then that it has the lock.
WAITER = """
from pathlib import Path
from hstree._files import locked
print("waits", flush=True)
with locked(Path("folder"), wait=True):
    print("locked", flush=True)
"""


@pytest.fixture
def script(tmp_path):
    """Start scripts, which end with the test."""
    started = []

    def start(code, *arguments):
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-c", code, *arguments]
        process = subprocess.Popen(command, cwd=tmp_path, text=True, **how)
        started.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_folder_that_another_process_uses_is_not_removed(tmp_path, script):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    with locked(folder, shared=True):
        holder = script(HOLDER, "shared")
        remove_unused(folder)
    remove_unused(folder)
    assert (folder / "file").exists()
    with pytest.raises(InputError, match=f"another process is using {folder}; wait"):
        locked(folder).__enter__()
    holder.kill()
    holder.wait()
    remove_unused(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shared", [False, True])
def test_who_waits_for_a_folder_that_is_removed_gets_a_new_one(tmp_path, shared):
    folder = tmp_path / "folder"
    taken = threading.Event()

    def take():
        with locked(folder, wait=True, shared=shared):
            (folder / "mine").touch()
            taken.set()

    with acquire_lock(folder):
        (folder / "old").touch()
        waiting = threading.Thread(target=take)
        waiting.start()
        time.sleep(0.1)
        assert not taken.is_set()
        folder.rename(tmp_path / "removed")
    waiting.join(10)
    assert sorted(path.name for path in folder.iterdir()) == [LOCK, "mine"]


def test_what_is_removed_and_made_again_is_never_lost(tmp_path):
    """Each user finds its own file at the end, although others remove files in between."""
    code = """
import sys
from pathlib import Path
from hstree._files import locked, remove_unused
folder = Path("folder")
for number in range(200):
    with locked(folder, shared=True):
        file = folder / f"{sys.argv[1]}-{number}"
        file.touch()
        assert file.exists()
    remove_unused(folder)
"""
    users = [subprocess.Popen([sys.executable, "-c", code, str(n)], cwd=tmp_path) for n in range(3)]
    assert [user.wait() for user in users] == [0, 0, 0]
    remove_unused(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_wait_for_a_lock(script):
    script(HOLDER, "exclusive")
    waiter = script(WAITER)
    time.sleep(0.2)
    began = time.monotonic()
    waiter.send_signal(signal.SIGINT)
    printed, errors = waiter.communicate(timeout=10)
    assert time.monotonic() - began < 1
    assert printed == ""
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileFormatError, match=r"^cannot write [^\n]*: Not a directory$"):
        locked(tmp_path / "file" / "folder").__enter__()


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket", "circle"])
def test_a_lock_that_is_no_file_is_one_line(tmp_path, kind):
    IN_THE_PLACE[kind](tmp_path / LOCK)
    with pytest.raises(FileFormatError, match=r"^cannot write .*$"):
        locked(tmp_path).__enter__()


@pytest.mark.parametrize("name", [LOCK, "folder", "parent"])
def test_a_link_that_leads_nowhere_is_not_waited_for(tmp_path, name):
    folder = tmp_path / "parent" / "folder"
    place = {LOCK: folder / LOCK, "folder": folder, "parent": folder.parent}[name]
    place.parent.mkdir(parents=True, exist_ok=True)
    IN_THE_PLACE["dangling"](place)
    with pytest.raises(FileFormatError, match="cannot write"):
        locked(folder).__enter__()


def test_on_a_disk_without_locks_all_are_let_in_and_nothing_is_removed(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(_files.fcntl, "flock", no_locks)
    with locked(tmp_path / "folder"), locked(tmp_path / "folder"):
        pass
    remove_unused(tmp_path / "folder")
    assert (tmp_path / "folder").exists()
