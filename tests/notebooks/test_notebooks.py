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


def test_the_example_runs_and_shows_what_it_tells(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "examples" / "tonight.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)  # what it shows is made here
    shown = [
        outputs
        for cell, outputs in zip(notebook.cells, run(notebook, tmp_path), strict=True)
        if cell.cell_type == "code"
    ]
    assert [len(outputs) for outputs in shown] == [1] * len(shown)
    told = [outputs[0] for outputs in shown]
    machine, _, window, figure, compared, bookings, why, listing = told
    assert "Machine(60 nodes" in machine["text/html"]
    assert "2026-10-24 18:00:00+02:00" in window["text/html"]
    assert "bert-02" in window["text/html"]
    assert figure["image/png"].startswith("iVBORw0KGgo")
    assert all(cost in compared["text/html"] for cost in ("117.76", "96.0"))
    assert "weather" in bookings["text/html"]
    assert "No window fits" in why["text/html"]
    assert all(name in listing["text/html"] for name in ("ocean", "test", "too-dear"))
    assert listing["text/html"].count("booked") == 2
