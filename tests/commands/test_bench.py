"""The scaling report: what it fits, what it compares, which rows it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import slotkern as sk

pytest.importorskip("rich")
pytest.importorskip("numba")
from rich.console import Console

from slotkern.commands import bench

SMALL: dict[str, Any] = {"cycles": 1, "nodes": (20, 40), "intervals": (200, 400)}


def lines_of(report: bench.ScalingReport) -> list[str]:
    console = Console(width=300)
    with console.capture() as capture:
        for table in report.tables():
            console.print(table)
    return [line.strip() for line in capture.get().splitlines()]


def test_growth_exponent_is_the_slope_of_the_logarithms() -> None:
    x = np.array([50.0, 100, 200, 400])
    assert bench.growth_exponent(x, 3e-6 * x**1.5) == pytest.approx(1.5)
    noisy = 3e-6 * x**2 * np.array([1.1, 0.9, 0.9, 1.1])
    fitted = np.polynomial.polynomial.polyfit(np.log(x), np.log(noisy), 1)[1]
    assert bench.growth_exponent(x, noisy) == pytest.approx(fitted)
    assert np.isnan(bench.growth_exponent(x, x - 50))


def test_streams_are_of_different_jobs_and_repeatable() -> None:
    jobs = bench.stream(100, (1, 2), nodes=3, volume=10, budget=50)
    assert jobs == bench.stream(100, (1, 2), nodes=3, volume=10, budget=50)
    assert jobs != bench.stream(100, (1, 3), nodes=3, volume=10, budget=50)
    assert len(set(jobs)) == 100
    volumes = [job.volume for job in jobs]
    assert 8 <= min(volumes) < 9 < 11 < max(volumes) <= 12


def test_sweeps_count_slots_and_hold_every_algorithm() -> None:
    report = bench.scaling(seed=4, **SMALL)
    for sweep, sizes in (
        (report.by_nodes, [{"nodes": 20}, {"nodes": 40}]),
        (report.by_interval, [{"interval": 200}, {"interval": 400}]),
    ):
        expected = [
            sk.generate_environment(**{"nodes": 100, "interval": 600} | size, seed=4)
            for size in sizes
        ]
        assert sweep.slots.tolist() == [e.slots.size for e in expected]
        assert list(sweep.times["published"]) == ["CSA", *bench.ALGORITHMS]
        found = [
            sk.find_alternatives(e.slots, bench.BASE_JOB, shape="ragged")
            for e in expected
        ]
        assert sweep.alternatives.tolist() == [len(windows) for windows in found]
        for engine in bench.ENGINES:
            assert all((times > 0).all() for times in sweep.times[engine].values())


def test_a_different_answer_stops_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    find = sk.find_window

    def blind(*given: Any, **options: Any) -> Any:
        return None if options["method"] == "exact" else find(*given, **options)

    monkeypatch.setattr(sk, "find_window", blind)
    with pytest.raises(AssertionError, match="published and exact differ"):
        bench.scaling(**SMALL)


def test_rows_stand_as_in_the_paper() -> None:
    lines = lines_of(bench.scaling(**SMALL))
    rows = [line.split("  ")[0] for line in lines if "published, ms" in line]
    names = ["CSA per Alt", "CSA", *bench.ALGORITHMS]
    assert rows == [f"{name}, published, ms" for name in names] * 2
    assert "CSA: Alternatives Num" in "".join(lines)


def test_labels_are_spread_as_little_as_possible() -> None:
    assert bench._spread(np.array([0.0, 5.0, 9.0]), 1.0) == [0.0, 5.0, 9.0]
    assert bench._spread(np.array([2.0, 2.0, 2.0]), 1.0) == [1.0, 2.0, 3.0]
    places = bench._spread(np.array([0.0, 0.1, 0.2, 3.0, 3.1]), 0.5)
    assert (np.diff(places) >= 0.5 - 1e-12).all()
    assert np.mean(places) == pytest.approx(1.28)
