"""``slotkern generate`` and ``slotkern slots-from-trace``: files of free slots."""

from __future__ import annotations

from pathlib import Path

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run


def test_generate_writes_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "env.npz"
    words = ("--preset", "square", "--nodes", 7, "--interval", 300, "--load", "0.1:0.4")
    result = run("generate", "--output", path, *words, "--seed", 5)
    assert result.exit_code == 0, result.stderr
    environment = sk.generate_environment(
        "square", nodes=7, interval=300, load=(0.1, 0.4), seed=5
    )
    assert (sk.read_slots(path) == environment.slots).all()
    assert f"{environment.slots.size} free slots of 7 nodes" in result.stdout
    refused(run("generate", "--output", path, "--preset", "x"), "x", "aep")
    refused(run("generate", "--output", path, "--nodes", 0), "nodes", "0")
    for load in ("0.1", "0.1:x", "1:2:3"):
        refused(run("generate", "--output", path, "--load", load), load, "LOW:HIGH")
    assert "--load LOW:HIGH" in " ".join(run("generate", "--help").stdout.split())
    refused(run("generate", "--output", tmp_path / "no" / "env.npz"), tmp_path / "no")


def test_slots_from_trace(tmp_path: Path) -> None:
    trace, path = tmp_path / "small.swf", tmp_path / "slots.npz"
    jobs = [(1, 0, 100, 2), (2, 10, 50, 1), (3, 20, 30, 2), (4, 30, 0, 1)]
    trace.write_text(
        "; MaxProcs: 4\n"
        + "".join(
            f"{job} {submit} 0 {length} {width}" + " -1" * 13 + "\n"
            for job, submit, length, width in jobs
        )
    )
    words = ("--at", 10, "--horizon", 200, "--price", 2, "--performance", 3)
    result = run("slots-from-trace", trace, *words, "--output", path)
    assert result.exit_code == 0, result.stderr
    slots = sk.read_slots(path)
    assert set(slots["price"].tolist()) == {2.0}
    assert set(slots["performance"].tolist()) == {3.0}
    assert result.stdout == (
        f"{path}: {slots.size} free slots of 4 processors in [10, 210); "
        "3 jobs placed, 1 of them delayed, 1 skipped\n"
    )
    plain = run("slots-from-trace", trace, *words[:4], "--output", path)
    assert plain.exit_code == 0, plain.stderr
    machine = sk.read_slots(path)
    assert set(machine["performance"].tolist()) == {1.0}
    assert set(machine["price"].tolist()) == {0.0}
    free = (slots["end"] - slots["start"]).sum()
    assert free == 4 * 200 - (2 * 90 + 50 + 2 * 30)
    word = ("--price", "cheap")
    refused(
        run("slots-from-trace", trace, *words[:4], *word, "--output", path), "cheap"
    )
    trace.write_text("1 2 3\n")
    refused(run("slots-from-trace", trace, *words, "--output", path), trace, "line 1")
