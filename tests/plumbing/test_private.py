"""Folders that code is read from: nobody but the user can change what is in them."""

import os
import stat

import pytest

from hstree._files import cache_folder, make_private
from hstree.kernels.jit import changeable_by_others, deny_others

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
as_root = pytest.mark.skipif(
    os.name != "posix" or os.getuid() != 0, reason="needs root, who gives files to others"
)


@pytest.fixture
def home(tmp_path):
    """A folder of this user, in a folder of its own, with a folder and a file."""
    folder = tmp_path / "above" / "home"
    make_private(folder / "inner")
    (folder / "inner" / "file").touch(0o644)
    return folder


def give_away(path):
    os.chown(path, 12345, -1, follow_symlinks=False)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o666])
@pytest.mark.parametrize("name", ["..", ".", "inner", "inner/file"])
def test_what_others_can_write_to_is_refused(home, name, mode):
    path = home.parent if name == ".." else home / name
    path.chmod(mode | 0o100)
    assert changeable_by_others(home) == path


@as_root
@pytest.mark.parametrize("name", ["..", ".", "inner", "inner/file"])
def test_what_belongs_to_others_is_refused(home, name):
    path = home.parent if name == ".." else home / name
    give_away(path)
    assert changeable_by_others(home) == path


def test_a_sticky_folder_may_be_above_and_not_the_folder_itself(home):
    home.parent.chmod(0o1777)
    assert changeable_by_others(home) is None
    home.chmod(0o1777)
    assert changeable_by_others(home) == home


@pytest.mark.parametrize("name", ["inner", "inner/file"])
def test_a_link_in_the_folder_is_refused(home, tmp_path, name):
    (home / name).symlink_to((home / name).rename(tmp_path / "elsewhere"))
    assert changeable_by_others(home) == home / name


def test_the_cache_folder_is_made_for_this_user_alone(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o775)
    before = os.umask(0)
    try:
        for variable in ("HSTREE_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv("HSTREE_CACHE", raising=False)
            monkeypatch.setenv(variable, str(tmp_path / variable / "new"))
            made = cache_folder()
            modes = [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent)]
            assert modes == [0o700, 0o700]
        cache_folder(shared)
    finally:
        os.umask(before)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o775


def test_others_lose_the_right_to_write(home):
    file = home / "inner" / "file"
    file.chmod(0o666)
    deny_others([file])
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert changeable_by_others(home) is None
