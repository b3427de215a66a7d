"""Tests that what commands print with --json meets the schemas of `slotkern schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk

pytest.importorskip("typer")
pytest.importorskip("jsonschema")
import typer
from command_line import run, strict
from jsonschema import Draft202012Validator as Validator
from jsonschema import ValidationError

from slotkern.commands.main import app
from slotkern.commands.schemas import SCHEMAS, schema_of

DOCS = Path(__file__).parents[2] / "docs"
JOB = ("--nodes", 2, "--volume", 3)
LARGE = ("--nodes", 9, "--volume", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slots without a clock, pools with one, with shares and capacities, and tables."""
    folder = tmp_path_factory.mktemp("schemas")
    slots = sk.make_slots(
        node=range(4),
        start=[0, 0, 5, 7],
        end=30,
        performance=1,
        price=[1, 2, 3, 4],
        rack=["r", "r", "s", "s"],
    )
    sk.write_slots(folder / "slots.csv", slots)
    nodes = {"name": ["a", "b", "c"], "rack": ["r", "r", "s"], "price": [1, 2, 4]}
    times = {"start": "2026-12-01", "end": "2026-12-03", "unit": "h", "zone": "UTC"}
    priced = sk.Machine(nodes | {"tariff": ["night", "night", ""]})
    tariffs = {"night": {"06:00": 2, "22:00": 1}}
    free = sk.free_slots(priced, **times, tariffs=tariffs)
    sk.SlotPool(free).save(folder / "dates.npz")
    sk.SlotPool(slots, caps={"licences": 3}).save(folder / "caps.npz")
    hosts = sk.Machine(nodes | {"cores": 8}, capacity=["cores"])
    sk.HostPool(sk.free_slots(hosts, **times)).save(folder / "hosts.npz")
    (folder / "queue.csv").write_text("nodes,walltime\n2,3\n3,2\n")
    jobs = "name,arrival,nodes,volume\nx,0,2,3\ny,1,9,1\n"
    (folder / "jobs.csv").write_text(jobs)
    return folder


#: Commands, the words after the file, and the exit code.
CASES = [
    ("find", "slots.csv", JOB, 0),
    ("find", "slots.csv", (*LARGE, "--within", "rack"), 1),
    ("find", "slots.csv", (*JOB, "--within", "rack"), 0),
    ("find", "dates.npz", ("--nodes", 2, "--walltime", "2h"), 0),
    ("find", "dates.npz", (*LARGE, "--deadline", "2026-12-02 12:00"), 1),
    ("find", "caps.npz", (*JOB, "--uses", "licences=1", "--account", "ann"), 0),
    ("find", "hosts.npz", (*JOB, "--share", "cores=2", "--stack", 2), 0),
    ("front", "slots.csv", JOB, 0),
    ("front", "dates.npz", (*JOB, "--most", 4), 0),
    ("front", "slots.csv", LARGE, 1),
    ("alternatives", "slots.csv", (*JOB, "--limit", "sum(price) <= 9"), 0),
    ("alternatives", "dates.npz", LARGE, 1),
    ("starts", "slots.csv", JOB, 0),
    ("starts", "dates.npz", JOB, 0),
    ("starts", "slots.csv", LARGE, 1),
    ("explain", "slots.csv", JOB, 0),
    ("explain", "caps.npz", (*JOB, "--uses", "licences=1", "--account", "ann"), 0),
    ("explain", "hosts.npz", (*JOB, "--share", "cores=2", "--stack", 2), 0),
    ("explain", "slots.csv", (*LARGE, "--within", "rack"), 1),
    ("explain", "dates.npz", (*LARGE, "--deadline", "2026-12-02 12:00"), 1),
    ("holes", "slots.csv", ("--nodes", 2), 0),
    ("holes", "dates.npz", (), 0),
    ("when", "slots.csv", (*JOB, "--queue", "queue.csv", "--runs", 5), 0),
    ("when", "dates.npz", (*JOB, "--queue", "queue.csv", "--runs", 5), 0),
    ("cycles", "slots.csv", ("jobs.csv", "--length", 5, "--horizon", 20), 0),
]


@pytest.mark.parametrize(("command", "file", "words", "code"), CASES)
def test_output_meets_schema(
    folder: Path, command: str, file: str, words: tuple[Any, ...], code: int
) -> None:
    given = [folder / word if str(word).endswith(".csv") else word for word in words]
    done = run(command, folder / file, *given, "--json")
    assert done.exit_code == code, done.output
    Validator(schema_of(command)).validate(strict(done.stdout))


def test_entries_meet_schema(tmp_path: Path) -> None:
    slots = sk.make_slots(node=range(4), start=0, end=30, performance=1, price=1)
    ledger = tmp_path / "site.db"
    with sk.SlotPool(slots).share(ledger) as pool:
        held = pool.place(sk.Request(2, 3, name="a"), owner="ann", hold="1h")
        assert held is not None
        pool.confirm(held.id)
        pool.release(held.id)
        pool.disable([3], start=1, end=2)
        pool.advance(1)
        count = pool.version
    done = run("ledger", "follow", ledger, "--since", 0, "--count", count)
    lines = done.stdout.splitlines()
    assert len(lines) == count > 3
    validator = Validator(schema_of("ledger follow"))
    for line in lines:
        validator.validate(strict(line))


def test_every_command_with_json_has_a_schema() -> None:
    group: Any = typer.main.get_command(app)
    named = {
        name
        for name, command in group.commands.items()
        if any("--json" in each.opts for each in command.params)
    }
    assert named | {"ledger follow"} == SCHEMAS.keys()
    assert named <= {command for command, *_ in CASES}


def test_schemas_are_valid_and_list_documented_fields() -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    for command in SCHEMAS:
        schema = schema_of(command)
        Validator.check_schema(schema)
        for name in schema["properties"]:
            assert f"`{name}`" in page, (command, name)


def test_schemas_refuse_other_objects() -> None:
    for command in SCHEMAS:
        with pytest.raises(ValidationError):
            Validator(schema_of(command)).validate({"slotkern": "0.1.0"})


def test_schemas_are_printed() -> None:
    assert run("schema").stdout.splitlines() == [*SCHEMAS]
    assert json.loads(run("schema", "find").stdout) == schema_of("find")
    words = run("schema", "ledger", "follow").stdout
    assert json.loads(words) == schema_of("ledger follow")
    done = run("schema", "fnd")
    assert done.exit_code == 2
    assert "did you mean 'find'" in done.stderr
