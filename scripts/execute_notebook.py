"""Execute the notebook in an empty folder, and keep it with its outputs.

python scripts/execute_notebook.py
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "which_output_layer.ipynb"


def executed(folder: str | os.PathLike[str]) -> nbformat.NotebookNode:
    """Return the notebook with the outputs that it has in a folder, without times and widgets."""
    notebook = nbformat.read(NOTEBOOK, 4)
    resources = {"metadata": {"path": os.fspath(folder)}}
    NotebookClient(notebook, timeout=600, record_timing=False, resources=resources).execute()
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
    return notebook


def _is_progress(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is what remains of a progress bar."""
    data = output.get("data", {})
    return any("widget" in kind for kind in data) or "output_type" not in output


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        notebook = executed(folder)
    nbformat.write(notebook, NOTEBOOK)
