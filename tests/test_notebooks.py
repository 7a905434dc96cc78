"""The notebooks run from top to bottom, keep their claims (they assert them) and are saved with clean outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
SECONDS = 240

# A kernel is a process, and this one runs nbclient's event loop outside pytest, so that what they warn of stays with them.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
path, folder, seconds = sys.argv[1:]
notebook = nbformat.read(path, as_version=4)
resources = {"metadata": {"path": folder}}
NotebookClient(notebook, timeout=int(seconds), kernel_name="python3", resources=resources).execute()
nbformat.write(notebook, sys.stdout)
"""


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def faults(notebook: nbformat.NotebookNode) -> list[str]:
    """Warnings and errors among the outputs."""
    return [str(output) for output in outputs(notebook) if output.output_type == "error" or output.get("name") == "stderr"]


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"quickstart", "sweep"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_its_claims(path, root, tmp_path):
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(jax.config.jax_compilation_cache_dir),
        "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    environment.pop("MPLBACKEND", None)  # a notebook chooses its own
    command = [sys.executable, "-c", EXECUTE, str(path), str(tmp_path), str(SECONDS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS + 40, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    executed = nbformat.reads(done.stdout, as_version=4)
    assert not faults(executed)
    assert list(tmp_path.iterdir()) == [], "a notebook leaves no files"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_with_its_outputs(path, root):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells), "run every cell before saving"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "saved after a single run, from the top"
    assert outputs(notebook)
    assert not faults(notebook)
    assert any("image/png" in output.get("data", {}) for output in outputs(notebook)), "a learning curve is shown"
    text = path.read_text()
    assert len(text) < 300_000
    assert str(Path.home()) not in text
    assert str(root) not in text
