"""Places to write to: links are followed, and what is no regular file stays what it is."""

import os
import stat

import pytest

from hstree.errors import FileFormatError
from hstree.files import replacing


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


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


@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_pipe_stays_a_pipe(tmp_path, through_a_link):
    pipe = path = tmp_path / "pipe"
    os.mkfifo(pipe)
    if through_a_link:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    with pytest.raises(FileFormatError, match="is not a regular file; choose another place"):
        write(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_pipe_behind_a_descriptor_is_refused(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc here")
    reader, writer = os.pipe()
    try:
        with pytest.raises(FileFormatError, match="is not a regular file"):
            write(f"/proc/self/fd/{writer}")
    finally:
        os.close(reader)
        os.close(writer)


def test_folders_and_circles_are_refused(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for path in (tmp_path, tmp_path / "one"):
        with pytest.raises(FileFormatError, match="is not a regular file"):
            write(path)
    assert (tmp_path / "one").is_symlink()
