"""The packages of examples/plugins as if they were installed, without pip."""

import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "plugins"


def install(site, name, entries, version="1.0"):
    """Have a folder of the path say that a package is installed there, with its entry points."""
    metadata = Path(site, f"{name.replace('-', '_')}-{version}.dist-info")
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{g}]\n{n} = {what}\n" for g, of in entries.items() for n, what in of.items()]
    (metadata / "entry_points.txt").write_text("".join(lines))


@contextmanager
def example_plugins():
    """Have the registries find what the packages offer while the body runs."""
    with tempfile.TemporaryDirectory() as site, pytest.MonkeyPatch.context() as patch:
        for file in FOLDER.glob("*/pyproject.toml"):
            project = tomllib.loads(file.read_text("utf-8"))["project"]
            install(site, project["name"], project["entry-points"], project["version"])
            patch.syspath_prepend(file.parent)
        patch.syspath_prepend(site)
        yield
