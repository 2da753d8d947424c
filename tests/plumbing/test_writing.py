"""Writing files: links are followed, other things than files stay, nothing half is left."""

import os
import signal
import stat
import subprocess
import sys

import pytest

from hstree._files import current_file, replacing, replacing_together
from hstree._text import recorded_name
from hstree.errors import FileFormatError


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def write_together(folder, *names, content="new", then=lambda: None):
    with replacing_together(folder) as temporary:
        for name in names:
            (temporary / name).write_text(content)
        then()


def test_a_link_is_followed_and_kept(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    link.symlink_to(target)
    write(link, b"made")  # the link led nowhere yet
    assert target.read_bytes() == b"made"
    target.chmod(0o640)
    (tmp_path / "second").symlink_to(link)
    write(tmp_path / "second", b"again")
    assert link.is_symlink()
    assert target.read_bytes() == b"again"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["far", "link", "second", "target"]


def test_a_link_stays_when_the_writing_fails(tmp_path):
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(TypeError):
        write(tmp_path / "link", "no bytes")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "mine"


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(FileFormatError, match="is not a regular file; choose another path"):
            write(path)
        assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_the_pipe_behind_a_descriptor_is_refused():
    reader, writer = os.pipe()
    refused = pytest.raises(FileFormatError, match="is not a regular file")
    with open(reader, "rb"), open(writer, "wb"), refused:
        write(f"/proc/self/fd/{writer}")


def test_folders_and_circles_are_refused(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for path in (tmp_path, tmp_path / "one"):
        with pytest.raises(FileFormatError, match="is not a regular file"):
            write(path)
    assert (tmp_path / "one").is_symlink()


KILLED = """
import os, signal, sys
from hstree._files import replacing, replacing_together
with replacing("one") as file, replacing_together("two") as folder:
    file.write(b"half")
    (folder / "a").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / ".one.original").write_text("mine")
    killed = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob(".hstree-*"))) == 2
    write(tmp_path / "other")
    write_together(tmp_path / "two", "b")
    files = sorted(os.path.relpath(path, tmp_path) for path in tmp_path.rglob("*"))
    assert files == [".one.original", "other", "two", "two/b"]


#: Writes files as soon as there is a line on its standard input.
WAITING = """
import sys
from hstree._files import replacing, replacing_together
with replacing("one") as file, replacing_together(".") as folder:
    file.write(b"begun, ")
    (folder / "two").write_bytes(b"written")
    print("begun", flush=True)
    sys.stdin.readline()
    file.write(b"written")
"""


def test_what_another_living_process_writes_is_left_alone(tmp_path):
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    with subprocess.Popen([sys.executable, "-c", WAITING], **how) as writer:
        assert writer.stdout.readline() == "begun\n"
        write(tmp_path / "other")
        write_together(tmp_path, "others")
        writer.communicate("continue\n")
    assert writer.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other", "others", "two"]
    assert (tmp_path / "one").read_bytes() == b"begun, written"


#: Writes the same files as others at the same time.
BUSY = """
from hstree._files import replacing, replacing_together
for number in range(100):
    with replacing("one") as file:
        file.write(b"whole")
    with replacing_together(".") as folder:
        (folder / "two").write_bytes(b"whole")
"""


def test_writers_at_once_leave_each_other_alone(tmp_path):
    command = [sys.executable, "-c", BUSY]
    writers = [subprocess.Popen(command, cwd=tmp_path) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "one": "whole",
        "two": "whole",
    }


def test_files_are_replaced_together_and_others_stay(tmp_path):
    for name in ("a", "b", "other"):
        (tmp_path / name).write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_together(tmp_path, "a", then=lambda: 1 / 0)
    assert (tmp_path / "a").read_text() == "old"
    write_together(tmp_path, "a", "b")
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert files == {"a": "new", "b": "new", "other": "old"}


def test_killed_between_two_renames_the_new_files_count(tmp_path, monkeypatch):
    moved = []

    def killed_at_the_second(file, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(target)
        os.rename(file, target)

    write_together(tmp_path, "a", "b", content="old")
    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "replace", killed_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            write_together(tmp_path, "a", "b")
    assert {(tmp_path / name).read_text() for name in ("a", "b")} == {"old", "new"}
    assert {current_file(tmp_path, name).read_text() for name in ("a", "b")} == {"new"}
    write_together(tmp_path, "b", content="newer")
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert files == {"a": "new", "b": "newer"}


def test_a_folder_instead_of_a_file_changes_nothing(tmp_path):
    write_together(tmp_path, "a", content="old")
    (tmp_path / "b").mkdir()
    with pytest.raises(FileFormatError, match="b is not a regular file"):
        write_together(tmp_path, "a", "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "old"


def test_every_name_can_be_recorded():
    assert recorded_name("café 漢") == "café 漢"
    assert recorded_name(os.fsdecode(b"caf\xe9/\xff.txt")) == "caf\\xe9/\\xff.txt"
