"""Execute the notebook in an empty folder, and keep it with its outputs.

python scripts/execute_notebook.py
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "which_output_layer.ipynb"


def executed(folder: str | os.PathLike[str]) -> nbformat.NotebookNode:
    """Return the notebook with the outputs that it has in a folder."""
    notebook = nbformat.read(NOTEBOOK, 4)
    resources = {"metadata": {"path": os.fspath(folder)}}
    NotebookClient(notebook, timeout=600, record_timing=False, resources=resources).execute()
    return notebook


def remove_progress(notebook: nbformat.NotebookNode) -> None:
    """Remove what progress bars leave: displays that are no pictures, and the state of widgets."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.output_type != "display_data" or "image/png" in output.data
            ]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        notebook = executed(folder)
    remove_progress(notebook)
    nbformat.write(notebook, NOTEBOOK)
