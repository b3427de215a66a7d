"""The demo: a table with the best value of each column marked, and a picture."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rich")
from command_line import refused, run
from rich.console import Console

from slotkern.commands.tables import TOTALS, comparison_table

ROOT = Path(__file__).parents[2]


def rows_of(table: Any) -> list[list[str]]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return [line.split() for line in capture.get().splitlines() if line.strip()]


def window(*totals: float) -> Any:
    return SimpleNamespace(**dict(zip(TOTALS, totals, strict=True)))


def test_the_best_of_every_column_is_marked_in_its_group() -> None:
    table = comparison_table(
        {
            "ragged": {
                "start": window(0, 50, 50, 9.5, 200),
                "cost": window(10, 50, 40, 8.5, 300),
            },
            "square": {"start": window(1, 60, 59, 99, 400), "cost": None},
        }
    )
    assert rows_of(table)[2:-1] == [
        ["ragged", "start", "0*", "50*", "50", "9.50", "200*"],
        ["cost", "10", "50*", "40*", "8.50*", "300"],
        ["square", "start", "1*", "60*", "59*", "99*", "400*"],
        ["cost", "no", "window"],
    ]


def test_make_demo_announces_each_step(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "demo", f"VENV={tmp_path / 'none'}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for step in ("-m venv", "ninja", "-e "):
        at = next(
            i for i, line in enumerate(lines) if step in line and "echo" not in line
        )
        announced = [line for line in lines[:at] if line.startswith('echo "make: ')]
        assert announced
        assert lines[at - 1] in announced or "-m venv" in lines[at - 1]
    assert "source" in lines[-1]
    (long,) = [line for line in lines if "-e " in line and "pip install" in line]
    assert "--quiet" not in long


def test_a_file_in_place_of_the_folder_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    done = run("demo", "--folder", tmp_path / "out")
    refused(done, "a file, not a folder")
    assert done.stdout == ""


def test_the_demo_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    from slotkern.commands.main import app

    folder = tmp_path / "out"
    assert app(["demo", "--folder", str(folder)], standalone_mode=False) in (0, None)
    picture = folder / "gantt.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert str(picture) in printed
    assert "12 searches took" in printed
    for word in ("first", "finish", "runtime", "cost", "square", "ragged"):
        assert word in printed
