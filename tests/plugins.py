"""The packages of examples/plugins as if they were installed, without pip."""

import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "plugins"


def install(site, name, entries, version="1.0"):
    """Write the metadata of an installed package with entry points into a folder of the path."""
    metadata = Path(site, f"{name.replace('-', '_')}-{version}.dist-info")
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n{entry} = {target}\n"
        for group, targets in entries.items()
        for entry, target in targets.items()
    ]
    (metadata / "entry_points.txt").write_text("".join(lines))


@contextmanager
def example_plugins():
    """Register the entry points of the packages while the body runs."""
    with tempfile.TemporaryDirectory() as site, pytest.MonkeyPatch.context() as patch:
        for file in FOLDER.glob("*/pyproject.toml"):
            project = tomllib.loads(file.read_text("utf-8"))["project"]
            install(site, project["name"], project["entry-points"], project["version"])
            patch.syspath_prepend(file.parent)
        patch.syspath_prepend(site)
        yield
