"""Optional packages: imported, or one line with the command that installs them."""

import sys
import types

import pytest

from hstree._plugins import require
from hstree.errors import MissingExtraError


def test_a_package_that_breaks_says_why(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"cannot be imported \(No module named"):
        require("broken_package")


@pytest.mark.parametrize(
    ("version", "will_do"),
    [("2.9", False), ("2.13", True), ("2.13.0+cpu", True), ("3", True), ("1.99.99", False)],
)
def test_versions_are_compared_as_numbers(version, will_do, monkeypatch):
    package = types.ModuleType("some_package")
    package.__version__ = version
    monkeypatch.setitem(sys.modules, "some_package", package)
    if will_do:
        assert require("some_package", at_least="2.10") is package
        return
    with pytest.raises(MissingExtraError, match=r"is too old; get 2\.10 or newer") as caught:
        require("some_package", at_least="2.10")
    assert "`pip install --upgrade some_package`" in str(caught.value)
