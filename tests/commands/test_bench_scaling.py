"""``slotkern bench scaling``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import run

from slotkern import studies


def test_bench_scaling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of `reproduce aep`, by the same measurement."""
    pytest.importorskip("numba")
    pytest.importorskip("matplotlib")
    from slotkern.studies.papers import study_text

    text = study_text("aep")
    for key, sizes in (("nodes", "20, 40"), ("interval", "200, 400")):
        begin = text.index(f"grid.environment.{key}")
        line = text[begin : text.index("\n", begin)]
        text = text.replace(line, f"grid.environment.{key} = [{sizes}]")
    for table in ("table1", "table2"):
        for key in ("time_ms", "time_per_alternative_ms"):
            text = text.replace(f' = "aep.{table}.{key}"', ".csa = [1.5, 3]")
    path = tmp_path / "small.toml"
    path.write_text(
        text[: text.index("[[compare]]")] + text[text.index("[[timing]]") :]
    )
    asked: dict[str, int] = {}

    def small(name: str, *, seed: int) -> Any:
        asked.update(seed=seed)
        assert name == "aep"
        return load_study(path, seed=seed)

    load_study = studies.load_study
    monkeypatch.setattr(studies, "load_study", small)
    out = tmp_path / "figures"
    words = ("--cycles", 2, "--seed", 9, "--out", out)
    result = run("bench", "scaling", *words)
    assert result.exit_code == 0, result.stderr
    assert asked == {"seed": 9}
    lines = result.stdout.splitlines()
    for name, sizes in (("nodes", ["20", "40"]), ("interval", ["200", "400"])):
        assert any(line.strip() == f"Times in ms by {name}" for line in lines)
        assert any(line.split() == ["search", *sizes, "growth"] for line in lines)
    assert sum(line.split()[:4] == ["CSA", "published", "1.5", "3"] for line in lines)
    for name in ("CSA", "AMP", "minRuntime", "minFinish", "minCost"):
        kinds = [line.split()[1] for line in lines if line.split()[:1] == [name]]
        assert kinds == ["published" if name == "CSA" else "slotkern"] * 2, name
    printed = [line.split() for line in lines if "paper's algorithm" in line]
    assert len(printed) == 2 * 7  # CSA twice, also per alternative; minProcTime
    assert all(float(cell) > 0 for row in printed for cell in row[-3:-1])
    assert {path.name for path in out.iterdir()} == {"figure-4a.png", "figure-4b.png"}
