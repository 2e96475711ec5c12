"""The notebooks run, from the first cell to the last, and are kept without their outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def name_of(path: Path) -> str:
    return path.stem


def test_there_is_one_for_every_task():
    assert {name_of(path) for path in NOTEBOOKS} == {"coloring", "molecules", "spectra", "own-table"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_kept_without_its_outputs(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries that talk to the kernel
@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_runs(path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    book = nbformat.read(path, as_version=4)
    folder = {"metadata": {"path": str(path.parent)}}
    client.NotebookClient(book, timeout=600, kernel_name="python3", resources=folder).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.output_type in ("execute_result", "stream") for output in outputs)
