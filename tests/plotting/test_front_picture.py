"""The picture of a Pareto front."""

from __future__ import annotations

from pathlib import Path

import pytest

import slotkern as sk

pytest.importorskip("matplotlib")
JOB = sk.Request(5, 310, budget=1500)


@pytest.fixture(scope="module")
def environment() -> sk.Environment:
    return sk.generate_environment("aep", seed=9)


def test_points_gaps_and_labels(environment: sk.Environment, tmp_path: Path) -> None:
    front = sk.pareto(environment, JOB, shape="ragged", most=4)
    figure = front.plot(title="$5", path=tmp_path / "front.svg")
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cost", "finish")
    assert ax.get_title(loc="left") == r"\$5"
    dots = ax.lines[1].get_xydata()
    assert dots.tolist() == front.values.tolist()
    assert len(ax.collections[0].get_paths()) == 3
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["may hold more windows", "windows that no other dominates"]
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")


def test_a_complete_front_has_no_gaps(
    environment: sk.Environment,
) -> None:
    ax = sk.pareto(environment, JOB).plot().axes[0]
    assert not ax.collections
    nothing = sk.pareto(environment, JOB.replace(budget=1.0))
    assert nothing.plot().axes[0].get_legend() is None


def test_times_of_a_clock_are_dates() -> None:
    machine = sk.Machine({"name": ["a", "b"], "performance": [1, 2], "price": [1, 3]})
    times = {"start": "2026-03-02 08:00", "end": "2026-03-03 08:00"}
    slots = sk.free_slots(machine, [], **times, zone="Europe/Berlin", unit="h")
    job = sk.Request(1, walltime="4:00:00")
    figure = sk.pareto(slots, job, ("runtime", "cost")).plot()
    assert figure.axes[0].get_xlabel() == "runtime (h)"
    figure = sk.pareto(slots, job, ("cost", "finish")).plot()
    figure.canvas.draw()
    (ax,) = figure.axes
    assert ax.get_ylabel() == "finish (Europe/Berlin)"
    assert any(":" in tick.get_text() for tick in ax.get_yticklabels())
