"""``--tree``, ``--whole`` and tables of jobs with columns of trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import refused, run

import slotkern as sk

#: Two switches of two racks of three nodes each; those of the second cost more.
MACHINE = (
    "name,cores,rack,switch,price\n"
    "a[0-2],8,r0,s0,1\na[3-5],8,r1,s0,1\nb[0-2],8,r2,s1,2\nb[3-5],8,r3,s1,2\n"
)
SPAN = ["--start", "2026-10-24", "--end", "2026-10-25", "--zone", "UTC", "--unit", "h"]
JOB = ["--volume", 4, "--criterion", "start"]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    table, pool = tmp_path / "machine.csv", tmp_path / "pool.npz"
    table.write_text(MACHINE)
    made = run("free", table, *SPAN, "--capacity", "cores", "--output", pool)
    assert made.exit_code == 0, made.output
    return pool


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        (["--nodes", 4, "--tree", "switch=1,rack=2"], [0, 1, 3, 4]),
        (["--nodes", 2, "--tree", "rack=1,switch=2"], [0, 6]),
        (["--nodes", 4, "--tree", "switch=1", "--tree", "rack=2"], [0, 1, 3, 4]),
        (["--nodes", 1, "--whole", "rack"], [0, 1, 2]),
        (["--nodes", 1, "--tree", "switch=2", "--whole", "rack"], None),
        (["--nodes", 2, "--tree", "switch=2", "--whole", "rack"], [0, 1, 2, 6, 7, 8]),
        (
            ["--nodes", 9, "--tree", "rack=1", "--share", "cores=2", "--stack", 4],
            [0, 1, 2],
        ),
    ],
)
def test_groups_of_trees_are_found(
    pool: Path, options: list[object], nodes: list[int] | None
) -> None:
    found = run("find", pool, *options, *JOB, "--json")
    if nodes is None:
        refused(found, "cannot be divided among 2 groups", "whole groups")
        return
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert [part["node"] for part in answer["window"]["slots"]] == nodes


def test_amounts_that_are_given_twice_are_refused(pool: Path) -> None:
    twice = ["--nodes", 2, "--tree", "rack=1", "--tree", "rack=2"]
    refused(run("find", pool, *twice, *JOB), "tree has 'rack' twice")


def test_a_request_without_a_window_is_explained(pool: Path) -> None:
    asked = ["--nodes", 9, "--tree", "switch=1,rack=3", "--volume", 4]
    explained = run("explain", pool, *asked)
    assert "9 nodes in 1 of switch and 3 of rack are asked for" in explained.stdout
    assert "it fits with 2 of rack" in explained.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tree", "switc=1"], ["no column 'switc'", "'switch'"]),
        (["--tree", "switch"], ["switch=1,rack=3", "'switch'"]),
        (["--tree", "switch=0"], ["tree takes nothing"]),
        (["--tree", "switch=x"], ["'switch=x'"]),
        (["--tree", ""], ["tree must be amounts"]),
        (["--tree", "rack=3"], ["nodes=4", "3 groups"]),
        (["--whole", "rak"], ["no column 'rak'", "'rack'"]),
        (["--whole", ""], ["whole must be one name"]),
        (["--whole", "rack", "--share", "cores=1"], ["omit share="]),
        (["--within", "rack", "--tree", "switch=1"], ["write tree={'rack': 1}"]),
        (["--tree", "switch=1", "--criterion", "cost"], ["start, finish", "'cost'"]),
    ],
)
def test_wrong_options_are_refused(
    pool: Path, options: list[str], words: list[str]
) -> None:
    refused(run("find", pool, "--nodes", 4, *JOB, *options), *words)


def test_slots_of_whole_nodes_refuse_trees(tmp_path: Path) -> None:
    path = tmp_path / "slots.csv"
    slots = sk.make_slots(node=[1, 2], start=0, end=9, performance=1, price=1)
    sk.write_slots(path, slots)
    asked = ["find", path, "--nodes", 2, "--volume", 4]
    refused(run(*asked, "--tree", "node=1"), "tree={'node': 1}", "HostPool")
    refused(run(*asked, "--whole", "node"), "whole='node'", "HostPool")


JOBS = "name,nodes,volume,{}\ntwo,4,4,1,2,\nracks,2,4,1,,rack\nplain,1,4,,,\n"
COLUMNS = "tree.switch,tree.rack,whole"


def test_tables_of_jobs_with_trees_are_scheduled(pool: Path, tmp_path: Path) -> None:
    jobs, saved = tmp_path / "jobs.csv", tmp_path / "saved.npz"
    jobs.write_text(JOBS.format(COLUMNS))
    done = run("schedule", pool, jobs, "--output", saved)
    assert done.exit_code == 0, done.output
    assert "3 of 3 jobs booked" in done.output
    booked = sk.HostPool.load(saved).booked
    assert sorted(booked["node"].tolist()) == [*range(5), *range(6, 12)]
    jobs.write_text(
        'name,nodes,volume,tree,whole\ntwo,4,4,"switch=1,rack=2",\nr,2,4,switch=1,rack\n'
    )
    assert "2 of 2 jobs booked" in run("schedule", pool, jobs).output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("two,4,4,1,2", "two,4,4,1,x", ["jobs.csv, line 2", "'tree.rack'", "'x'"]),
        ("two,4,4,1,2", "two,4,4,1,1.5", ["jobs.csv, line 2", "tree['rack'] is 1.5"]),
        ("two,4,4,1,2", "two,4,4,1,-1", ["jobs.csv, line 2", "not be negative"]),
        ("two,4,4,1,2", "two,4,4,1,3", ["jobs.csv, line 2", "nodes=4", "3 groups"]),
        (",,rack", ",,rak", ["jobs.csv, line 3", "no column 'rak'", "'rack'"]),
        ("tree.rack", "tree.rak", ["jobs.csv, line 2", "no column 'rak'", "'rack'"]),
        ("tree.rack", "trii.rack", ["jobs.csv", "unknown column 'trii.rack'"]),
        ("tree.rack", "tree.", ["jobs.csv", "unknown column 'tree.'"]),
    ],
)
def test_wrong_cells_are_refused(
    pool: Path, tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(JOBS.format(COLUMNS).replace(old, new, 1))
    refused(run("schedule", pool, jobs), *words)
