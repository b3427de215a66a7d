"""Malformed texts of Slurm's commands: read, or refused with an error of one line."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from recorded_texts import FIELDS, PLAIN, Recorded, spans

import slotkern as sk
from slotkern.clusters import read_slurm

WORDS = (
    *("Unknown", "None", "N/A", "UNLIMITED", "NOT_SET", "(null)", "INVALID", "-1", ""),
    *("|", "\x1f", "\n", "\r\n", " ", "=", "[1-3]", "[", "n[1-99999]", "1-00:00:00"),
    *("é", "\0", "9" * 30, "2026-10-25T02:30:00", "CANCELLED by 7", "DAILY", "WEEKLY"),
    *("StartTime=1", "inf", "nan", "0", "RUNNING", "idle*", ":", ","),
)


def mutated(given: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(given) + 1)
        past = min(len(given), at + rng.choice((0, 1, 1, 3, 20)))
        match rng.randrange(3):
            case 0:
                new = rng.choice(WORDS)
            case 1:
                other = rng.randrange(len(given) + 1)
                new = given[other : other + rng.randint(0, 30)]
            case _:
                new = chr(rng.randrange(1, 128))
        given = given[:at] + new + given[past:]
    return given


def accepted(reader: Callable[[], Any]) -> Any:
    """Return what is read, or None for an error of one line; raise any other one."""
    try:
        return reader()
    except ValueError as error:
        message = str(error)
    assert "\n" not in message
    return None


def test_random_mutations_are_read_or_refused(
    tmp_path: Path, recorded: Recorded
) -> None:
    mutations(tmp_path, recorded, random.Random(1), 40)


def sets_of_texts(recorded: Recorded) -> list[list[str]]:
    """Return texts of nodes, jobs and reservations, in each format."""
    nodes = "sinfo.json" if recorded.version == "22.05" else "nodes.json"
    names = (
        FIELDS,
        PLAIN,
        ("nodes.txt", *FIELDS[1:]),
        (nodes, "squeue.json", FIELDS[2]),
    )
    return [[recorded.text(name) for name in each] for each in names]


def mutations(folder: Path, recorded: Recorded, rng: random.Random, count: int) -> None:
    zones = ("UTC", "Europe/Berlin", None)
    count_read = 0
    for _ in range(count):
        for texts in sets_of_texts(recorded):
            which = rng.randrange(3)
            some = [
                mutated(each, rng) if k == which else each
                for k, each in enumerate(texts)
            ]
            zone = rng.choice(zones)
            read = partial(read_slurm, *some, now=recorded.now, zone=zone)
            count_read += accepted(lambda read=read: spans(read())) is not None  # type: ignore[misc]
        path = folder / "jobs.txt"
        path.write_text(mutated(recorded.text("sacct.txt"), rng), encoding="utf-8")
        zone = rng.choice(zones)
        count_read += accepted(partial(sk.read_trace, path, zone=zone)) is not None
    assert 0 < count_read < 5 * count


def test_cut_texts_and_doubled_lines(tmp_path: Path, recorded: Recorded) -> None:
    """JSON that is cut is refused; a text is read or refused, and never as more nodes.

    A doubled line of nodes, jobs or reservations changes nothing.
    """
    rng = random.Random(2)
    for texts in sets_of_texts(recorded):
        whole = read_slurm(*texts, now=recorded.now, zone="UTC")
        for which, given in enumerate(texts):
            others = list(texts)
            for _ in range(25):
                others[which] = given[: rng.randrange(len(given.rstrip()))]
                found = accepted(
                    partial(read_slurm, *others, now=recorded.now, zone="UTC")
                )
                if found is not None:
                    assert given[0] != "{", "JSON that is cut"
                    assert len(found.machine) <= len(whole.machine)
            if given[0] == "{":
                continue
            lines = given.splitlines(True)
            head = len(lines) - (12 if which == 0 else 3)
            for at in range(head, len(lines)):
                if given.startswith("ReservationName") and "Users=" not in lines[at]:
                    continue  # a line within a block
                others[which] = "".join([*lines[: at + 1], *lines[at:]])
                doubled = read_slurm(*others, now=recorded.now, zone="UTC")
                assert spans(doubled) == spans(whole)
    given, path = recorded.text("sacct.txt"), tmp_path / "sacct.txt"
    for _ in range(40):
        path.write_text(given[: rng.randrange(1, len(given))])
        accepted(partial(sk.read_trace, path, zone="UTC"))
