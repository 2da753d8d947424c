"""The packages of examples/plugins as if they were installed, without pip."""

import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "plugins"


@contextmanager
def example_plugins():
    """Have the registries find what the packages offer while the body runs."""
    with tempfile.TemporaryDirectory() as site, pytest.MonkeyPatch.context() as patch:
        for file in FOLDER.glob("*/pyproject.toml"):
            project = tomllib.loads(file.read_text("utf-8"))["project"]
            name, version = project["name"].replace("-", "_"), project["version"]
            metadata = Path(site, f"{name}-{version}.dist-info")
            metadata.mkdir()
            (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
            groups = project["entry-points"].items()
            lines = [f"[{g}]\n{n} = {what}\n" for g, of in groups for n, what in of.items()]
            (metadata / "entry_points.txt").write_text("".join(lines))
            patch.syspath_prepend(file.parent)
        patch.syspath_prepend(site)
        yield
