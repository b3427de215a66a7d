"""``slotkern bench scaling``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import run

import slotkern as sk
from slotkern import studies
from slotkern.commands import growth


def test_bench_scaling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command prints the tables of `reproduce aep` from the same measurement."""
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


SMALL = (
    growth.Axis("more nodes", "nodes", nodes=(20, 40, 80)),
    growth.Axis("more slots", "slots", nodes=(20,), intervals=(300, 600)),
    growth.Axis("wider jobs", "n", nodes=(40,), wanted=(2, 5)),
)


def test_growth_far_beyond_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table and panel per axis; a limit of 0 s skips the published algorithm."""
    pytest.importorskip("numba")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(growth, "AXES", SMALL)
    monkeypatch.setattr(growth, "_MAX_PUBLISHED_SECONDS", 0.0)
    result = run("bench", "scaling", "--far", "--cycles", 3, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["search", "20", "40", "80", "growth"] in lines
    assert ["search", "2", "5", "growth"] in lines
    for name in ("start, ragged", "cost, square"):
        assert sum(line[:2] == name.split() for line in lines) == len(SMALL)
    printed = [line[3:] for line in lines if line[:2] == ["cost,", "as"]]
    assert [len(cells) for cells in printed] == [2] * len(
        SMALL
    )  # one size has no growth
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    assert lines[-1] == [str(tmp_path / "growth.png")]


def test_growth_has_a_time_for_every_size() -> None:
    """The sizes are those measured, and every time is a finite number."""
    pytest.importorskip("numba")
    nodes, slots, wide = growth.measure_growth(SMALL, 3, seed=1)
    assert (nodes.sizes, wide.sizes) == ([20, 40, 80], [2, 5])
    assert slots.sizes == [
        len(sk.generate_environment("aep", nodes=20, interval=each, seed=1).slots)
        for each in (300, 600)
    ]
    for one in (nodes, slots, wide):
        assert all(t > 0 for times in one.times.values() for t in times)
        assert {len(times) for times in one.times.values()} == {len(one.sizes)}


def test_growth_rejects_a_different_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that differs from the published algorithm raises AssertionError."""
    pytest.importorskip("numba")

    def doubled(slots: Any, job: Any, *args: Any, **how: Any) -> Any:
        if how.get("method") == "published":
            job = job.replace(volume=2 * job.volume, budget=2 * job.budget)
        return search(slots, job, *args, **how)

    search = sk.find_window
    monkeypatch.setattr(sk, "find_window", doubled)
    with pytest.raises(AssertionError, match="published and exact differ"):
        growth.measure_growth(SMALL[:1], 3, seed=1)
