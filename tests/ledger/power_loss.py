"""Simulated losses of power: what the disk may hold then is a sound ledger.

``python tests/ledger/power_loss.py IMAGES [PROCESSES [SEED [SABOTAGE]]]`` makes IMAGES.
An odd number of processes books shares of nodes, an even one whole nodes.
Workers book in one ledger under strace, which records their writes and flushes. An
image is what the disk may hold at a random moment: all that was flushed before, and any
subset of the sectors of 512 bytes that were written after. The independent check judges
each image, and each call that had returned at that moment must be in it.

SABOTAGE is ``flush``, which removes the flush after a call, or ``order``, with which
SQLite does not flush before it overwrites: both must be found. Names of files are
durable when they are created, as on file systems that order them.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import slotkern as sk
from slotkern.ledger.check import check_ledger
from slotkern.ledger.sqlite import SqliteStore

SECTOR = 512
CALLS = "pwrite64,write,fdatasync,fsync,ftruncate"
#: A call of a process, with the path of its file.
_CALL = re.compile(r"(\w+)\(\d+<([^>]*)>(.*)\)\s*= (\d+)$")


def worker(path: str, notes: str, seed: int, rounds: int, sabotage: str) -> None:
    """Book, and write the token of each call to a file when it has returned."""
    if sabotage == "flush":
        SqliteStore.flush = lambda *_: None  # type: ignore[method-assign,assignment]
    rng, mine = random.Random(seed), []
    pool = sk.SlotPool.open(path, user=f"w{seed}")
    connection = pool._store.connection  # type: ignore[attr-defined]
    connection.execute("PRAGMA wal_autocheckpoint = 40")
    if sabotage == "order":
        connection.execute("PRAGMA synchronous = OFF")
    share = {"cores": 3} if isinstance(pool, sk.HostPool) else None
    with open(notes, "a") as file:
        for i in range(rounds):
            tokens = [f"{seed}-{i}"]
            if i % 10 == 9:
                tokens = [f"{seed}-{i}-{k}" for k in range(8)]
                with pool.group(within=9):
                    for token in tokens:
                        pool.place(sk.Request(1, 9, share=share), token=token)
            elif i % 40 == 20:
                pool.snapshot()
                continue
            else:
                job = sk.Request(rng.randint(1, 4), 10, share=share)
                mine.append(pool.place(job, token=tokens[0]))
            print(json.dumps(tokens), file=file, flush=True)
            if i % 7 == 6:
                pool.release(mine.pop(0))
    os._exit(0)  # a close would checkpoint and remove the WAL


class Event(NamedTuple):
    """A write, a truncation or a flush; a flush covers the events before `begun`."""

    kind: str
    name: str
    offset: int = 0
    data: bytes = b""
    begun: int = 0


def events_of(trace: Path, folder: Path) -> list[Event]:
    """Return the events of the files of a folder, in the order of their ends."""
    found: list[Event] = []
    begun: dict[str, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    for line in trace.read_text().splitlines():
        process, _, text = line.partition(" ")
        text, at = text.strip(), len(found)
        if text.endswith("<unfinished ...>"):
            begun[process] = text.removesuffix("<unfinished ...>").rstrip(), at
            continue
        if text.startswith("<... "):
            text = text.partition("resumed>")[2]
            first, at = begun.pop(process)
            text = first + text
        call = _CALL.match(text)
        path = (
            Path(bytes.fromhex(call[2].replace("\\x", "")).decode()) if call else None
        )
        if call is None or path is None or path.parent != folder:
            continue
        kind, name = call[1], path.name
        if kind in ("fdatasync", "fsync"):
            found.append(Event("flush", name, begun=at))
        elif kind == "ftruncate":
            found.append(Event("truncate", name, int(call[3].rpartition(",")[2])))
        else:
            data = bytes.fromhex(call[3].split('"')[1].replace("\\x", ""))
            assert len(data) == int(call[4]), "strace has cut a text"
            offset = sizes.get(name, 0)
            if kind == "pwrite64":
                offset = int(call[3].rpartition(",")[2])
            sizes[name] = offset + len(data)
            found.append(Event("write", name, offset, data))
    return found


def changed(data: bytearray, event: Event) -> None:
    """Apply a write or a truncation to the bytes of a file."""
    if event.kind == "truncate":
        del data[event.offset :]
        data.extend(bytes(event.offset - len(data)))
        return
    end = event.offset + len(event.data)
    data.extend(bytes(max(0, end - len(data))))
    data[event.offset : end] = event.data


class Disk:
    """A disk: flushed bytes of each file, and events that were not flushed yet."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.flushed = {name: bytearray(data) for name, data in files.items()}
        self.pending: dict[str, list[tuple[int, Event]]] = {}
        self.returned: list[str] = []  # tokens of calls
        self._notes: dict[str, str] = {}

    def add(self, number: int, event: Event) -> None:
        """Add the next event."""
        name = event.name
        if name.startswith("notes"):
            *lines, rest = (self._notes.get(name, "") + event.data.decode()).split("\n")
            self._notes[name] = rest
            self.returned += [token for line in lines for token in json.loads(line)]
        elif event.kind == "flush":
            data = self.flushed.setdefault(name, bytearray())
            waiting = self.pending.get(name, [])
            for before, each in waiting:
                if before < event.begun:
                    changed(data, each)
            self.pending[name] = [each for each in waiting if each[0] >= event.begun]
        else:
            self.pending.setdefault(name, []).append((number, event))

    def image(self, rng: random.Random) -> Iterator[tuple[str, bytes]]:
        """Yield names and bytes of files as the disk may hold them now."""
        kept = rng.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.0])  # the share of the sectors
        for name in self.flushed.keys() | self.pending.keys():
            data = bytearray(self.flushed.get(name, b""))
            for _, event in self.pending.get(name, []):
                if event.kind == "truncate":
                    if rng.random() < kept:
                        changed(data, event)
                    continue
                for at in range(0, len(event.data), SECTOR):
                    if rng.random() < kept:
                        piece = event.data[at : at + SECTOR]
                        changed(data, Event("write", name, event.offset + at, piece))
            yield name, bytes(data)


def record(
    folder: Path, processes: int, sabotage: str, seed: int
) -> tuple[Disk, list[Event]]:
    """Run workers under strace; return the disk before them, and their events."""
    path, trace = folder / "site.db", folder.with_name("trace")
    table = {"name": [f"n{i}" for i in range(20)], "cores": [8] * 20}
    if processes % 2:
        machine = sk.Machine(table, capacity="cores")
        sk.HostPool(sk.free_slots(machine, start=0, end=1e5)).share(path).close()
    else:
        slots = sk.make_slots(node=range(20), start=0, end=1e5, performance=1, price=1)
        sk.SlotPool(slots).share(path).close()
    disk = Disk({path.name: path.read_bytes()})
    words = [path, folder / "notes", processes, 160 // processes, seed, sabotage]
    subprocess.run(
        [
            *("strace", "-f", "-y", "-qq", "-xx", "-s", "1000000", "-e", CALLS),
            *("-o", trace, sys.executable, __file__, "--workers", *map(str, words)),
        ],
        check=True,
    )
    return disk, events_of(trace, folder)


def workers(
    path: str, notes: str, processes: int, rounds: int, seed: int, sabotage: str
) -> None:
    """Run workers, each in a process of its own."""
    running = []
    for place in range(processes):
        own = [f"{notes}{place}", str(100 * seed + place), str(rounds), sabotage]
        words = ["--worker", path, *own]
        running.append(subprocess.Popen([sys.executable, __file__, *words]))
    assert not any([process.wait() for process in running])


def violation(folder: Path, returned: list[str]) -> str:
    """Return the first violation of an image; "" for none."""
    report = check_ledger(folder / "site.db")
    if not report:
        return report.violations[0]
    with sqlite3.connect(folder / "site.db") as connection:
        stored = {token for (token,) in connection.execute("SELECT token FROM calls")}
    connection.close()
    lost = [token for token in returned if token not in stored]
    return f"{len(lost)} calls that had returned are missing" if lost else ""


def power_losses(
    folder: Path, images: int, processes: int = 3, sabotage: str = "", seed: int = 1
) -> dict[str, int]:
    """Make images; return the number of images, of events, and of each violation."""
    work, place = folder / "work", folder / "image"
    work.mkdir()
    disk, events = record(work, processes, sabotage, seed)
    rng = random.Random(seed)
    noted = [i for i, event in enumerate(events) if event.name.startswith("notes")]
    stops = sorted(rng.choices(range(noted[0], noted[-1] + 1), k=images))
    counts = {"images": images, "events": len(events), "violations": 0}
    done = 0
    for stop in stops:
        for number in range(done, stop + 1):
            disk.add(number, events[number])
        done = max(done, stop + 1)
        place.mkdir()
        for name, data in disk.image(rng):
            (place / name).write_bytes(data)
        fault = violation(place, disk.returned)
        if fault:
            counts["violations"] += 1
            kind = re.sub(r"\d+", "N", fault)[:60]
            counts[kind] = counts.get(kind, 0) + 1
        shutil.rmtree(place)
    return counts


if __name__ == "__main__":
    if sys.argv[1] == "--workers":
        where, prefix, *numbers, wrong = sys.argv[2:]
        workers(where, prefix, *map(int, numbers), wrong)
    elif sys.argv[1] == "--worker":
        given = sys.argv[2:]
        worker(given[0], given[1], int(given[2]), int(given[3]), given[4])
    else:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(dir=memory) as made:
            several = int(sys.argv[2]) if len(sys.argv) > 2 else 3
            chosen = int(sys.argv[3]) if len(sys.argv) > 3 else 1
            broken = "".join(sys.argv[4:5])
            count = int(sys.argv[1])
            found = power_losses(Path(made), count, several, broken, chosen)
            print(found)
