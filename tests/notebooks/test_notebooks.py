"""Notebooks show each table and figure once, however they were set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

MAKE = """
import slotkern as sk
slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1)
window = sk.find_window(slots, sk.Request(2, 4))
"""


def shown(cells: list[str], folder: Path) -> list[list[dict[str, Any]]]:
    """What each cell of a fresh notebook shows, by the types of its data."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells]
    )
    return run(notebook, folder)


def run(notebook: Any, folder: Path) -> list[list[dict[str, Any]]]:
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [
        [dict(output.get("data", {"text": output.get("text")})) for output in outputs]
        for outputs in (cell.get("outputs", []) for cell in notebook.cells)
    ]


@pytest.mark.parametrize("magic", ["", "%matplotlib inline\n"], ids=["plain", "inline"])
def test_a_figure_appears_once_by_itself(magic: str, tmp_path: Path) -> None:
    cells = [
        magic + MAKE,
        "sk.plot_gantt(slots, window)",
        "figure = sk.plot_gantt(slots, window)",
        "window.plot(slots)",
        "window",
    ]
    made, figure, kept, plotted, table = shown(cells, tmp_path)
    assert made == kept == []
    for outputs in (figure, plotted):
        assert len(outputs) == 1
        assert outputs[0]["image/png"].startswith("iVBORw0KGgo")
        assert outputs[0]["text/plain"].startswith("<Picture size")
    assert len(table) == 1
    assert table[0]["text/html"].count("<table") == 1
    assert table[0]["text/plain"].startswith("Window(square finish")
