"""Tests that notebooks display each table and figure exactly once."""

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
    """Run cells in a new notebook; return the outputs of each, by MIME type."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells]
    )
    return run(notebook, folder)


def run(notebook: Any, folder: Path) -> list[list[dict[str, Any]]]:
    """Run a notebook; return the outputs of each cell, by MIME type."""
    client = nbclient.NotebookClient(
        notebook,
        timeout=1500,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [
        [dict(output.get("data", {"text": output.get("text")})) for output in outputs]
        for outputs in (cell.get("outputs", []) for cell in notebook.cells)
    ]


@pytest.mark.parametrize("magic", ["", "%matplotlib inline\n"], ids=["plain", "inline"])
def test_figure_is_displayed_once(magic: str, tmp_path: Path) -> None:
    cells = [
        magic + MAKE,
        "sk.plot_gantt(slots, window)",
        "figure = sk.plot_gantt(slots, window)",
        "window.plot(slots)",
        "window",
    ]
    setup, figure, assigned, plotted, table = shown(cells, tmp_path)
    assert setup == assigned == []
    for outputs in (figure, plotted):
        assert len(outputs) == 1
        assert outputs[0]["image/png"].startswith("iVBORw0KGgo")
        assert outputs[0]["text/plain"].startswith("<NotebookFigure size")
    assert len(table) == 1
    assert table[0]["text/html"].count("<table") == 1
    assert table[0]["text/plain"].startswith("Window(square finish")


def test_example_notebook_runs(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples" / "tonight.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(
        cell.outputs for cell in code
    )  # the notebook is stored without outputs
    shown = [
        outputs
        for cell, outputs in zip(notebook.cells, run(notebook, tmp_path), strict=True)
        if cell.cell_type == "code"
    ]
    assert [len(outputs) for outputs in shown] == [1] * len(shown)
    first = [outputs[0] for outputs in shown]
    machine, _, window, figure, compared, bookings, why, listing = first
    assert "Machine(60 nodes" in machine["text/html"]
    assert "2026-10-24 18:00:00+02:00" in window["text/html"]
    assert "bert-02" in window["text/html"]
    assert figure["image/png"].startswith("iVBORw0KGgo")
    assert all(cost in compared["text/html"] for cost in ("117.76", "96.0"))
    assert "weather" in bookings["text/html"]
    assert "No window fits" in why["text/html"]
    assert all(name in listing["text/html"] for name in ("ocean", "test", "too-dear"))
    assert listing["text/html"].count("booked") == 2
