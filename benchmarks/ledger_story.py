"""A minute of a site: a loop books in a ledger, is killed, and starts again.

    python benchmarks/ledger_story.py [--seconds S] [--kills K] [--entries N]

A ledger of 5,000 nodes has 20,000 bookings. A process gets 20 requests a second, due at
fixed times, and answers each by one durable booking with a token. It also releases a
booking after ten of a hundred requests, and closes a node after one. It is killed by
SIGKILL at random times; its successor opens the ledger and first repeats the last call
by its token. A follower in another process reads the entries as they come.

Times of calls are wall-clock and CPU times. The delay of a booking is the time since it
was due, which includes that of restarts. The check judges the ledger, and each answer
is compared with it.

Then a follower replays N entries of another ledger at once, which is opened with and
without a snapshot: seconds and CPU seconds, and entries per second of both.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from ledger import measured, replay, show

import slotkern as sk

NODES, BEFORE, RATE = 5_000, 20_000, 20.0
SPEED = 60.0  # units of the pool's time in a second, so that a minute is an hour


def job_of(number: int) -> sk.Request:
    """Return the request of a number: the same in every process."""
    rng = random.Random(number)
    length = round(60 * 10 ** rng.uniform(0, 2.5))
    return sk.Request(rng.choice([1, 2, 4, 8, 16, 32, 64]), length, name=f"j{number}")


class Notes:
    """The file of a loop: what it asked for, and the times of its calls.

    A line has the call, its number, the id of its booking, its wall-clock and CPU
    seconds, and the seconds since it was due.
    """

    def __init__(self, file: TextIO) -> None:
        self.file = file
        file.seek(0)
        self.lines = [line.split() for line in file if line.endswith("\n")]

    def ask(self, number: int) -> None:
        """Write that a request will be answered."""
        print("ask", number, 0, 0, 0, 0, file=self.file, flush=True)

    def call(self, what: str, number: int, due: float, function: Any) -> Any:
        """Make a call, and write its times when it has returned."""
        wall, cpu, found = measured(function)
        booked = found.id if isinstance(found, sk.Booking) else 0
        late = time.time() - due
        print(what, number, booked, wall, cpu, late, file=self.file, flush=True)
        return found


def loop(path: str, notes: Notes, begin: float, seconds: float, born: float) -> None:
    """Answer the requests from the first without an answer, as they are due.

    `born` is the time at which the loop before was killed, or this one was started.
    """
    asked = [int(number) for what, number, *_ in notes.lines if what == "ask"]
    booked = {int(n): int(i) for what, n, i, *_ in notes.lines if what == "book"}
    for what, number, *_ in notes.lines:
        if what == "release":
            booked.pop(int(number), None)
    reopen = partial(sk.SlotPool.open, path, user="loop")
    pool = notes.call("open", 0, born, reopen)

    def place(number: int, due: float) -> None:
        how: Any = {"owner": "loop", "token": f"r{number}"}
        notes.ask(number)
        job = job_of(number)
        call = notes.call("book", number, due, lambda: pool.place(job, **how))
        booked[number] = call.id

    number = len({*asked})
    if asked:  # killed before the last call, in it, or after it
        last = asked[-1]
        job, token = job_of(last), f"r{last}"
        again = notes.call(
            *("restart", last, born),
            lambda: pool.place(job, owner="loop", token=token),
        )
        assert booked.get(last, again.id) == again.id, last
    rng = random.Random(number)
    while (due := begin + number / RATE) < begin + seconds:
        time.sleep(max(0.0, due - time.time()))
        place(number, due)
        number += 1
        if number % 20 == 0:
            now = (time.time() - begin) * SPEED
            notes.call("advance", number, due, partial(pool.advance, now))
        if rng.random() < 0.1:
            victim = rng.choice([*booked])
            release = partial(pool.release, booked.pop(victim), owner="loop")
            with suppress(LookupError):  # it is past
                notes.call("release", victim, due, release)
        if rng.random() < 0.01:
            node, now = rng.randrange(NODES), pool.now
            close = partial(pool.disable, [node], now, now + 4 * 3600)
            notes.call("disable", node, due, close)


def follow(path: str, until: float) -> None:
    """Read the entries as they come; print their number and the CPU seconds."""
    pool = sk.SlotPool.open(path, readonly=True)
    first, cpu = pool.version, time.process_time()
    while time.time() < until:
        pool.refresh()
        time.sleep(0.05)
    print(json.dumps([pool.version - first, time.process_time() - cpu]))


def story(folder: Path, seconds: float, kills: int) -> dict[str, Any]:
    """Run the loop and kill it; return the percentiles of each kind of call."""
    path, notes = folder / "site.db", folder / "notes"
    slots = sk.make_slots(node=range(NODES), start=0, end=1e8, performance=1, price=1)
    with sk.SlotPool(slots).share(path) as pool:
        pool.schedule([job_of(-i) for i in range(1, BEFORE + 1)], owner="night")
        pool.snapshot()
    rng = random.Random(1)
    moments = sorted(rng.uniform(0.1, 0.9) * seconds for _ in range(kills))
    begin = time.time() + 5.0  # the loop and the follower have started by then

    def start(*words: Any) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, *map(str, words)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    follower = start("--follow", path, begin + seconds)
    running = start("--loop", path, notes, begin, seconds, begin)
    try:
        for moment in moments:
            time.sleep(max(0.0, begin + moment - time.time()))
            running.send_signal(signal.SIGKILL)
            assert running.wait() == -signal.SIGKILL, "the loop ended by itself"
            born = time.time()
            running = start("--loop", path, notes, begin, seconds, born)
        assert running.wait() == 0
        read, cpu = json.loads(follower.communicate()[0])
    finally:
        running.kill()
        follower.kill()
    return judged(path, notes) | {
        "kills": kills,
        "follower_entries": read,
        "follower_cpu_ms_a_second": round(1e3 * cpu / seconds, 1),
    }


def judged(path: Path, notes: Path) -> dict[str, Any]:
    """Return the times of the calls; AssertionError for a wrong answer or log."""
    calls: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    answers: dict[str, int] = {}
    asked: set[str] = set()
    for line in notes.read_text().splitlines():
        what, number, booked, *times = line.split()
        if what == "ask":
            asked.add(f"r{number}")
            continue
        calls[what].append(tuple(map(float, times)))
        if what in ("book", "restart"):
            assert answers.setdefault(f"r{number}", int(booked)) == int(booked), number
    with sk.SlotPool.open(path, readonly=True) as pool:
        report, table = pool.check(), pool.calls(user="loop")
    assert report, str(report)
    stored = dict(zip(table["token"].tolist(), table["last"].tolist(), strict=True))
    assert {token: stored[token] for token in answers} == answers
    assert asked == answers.keys(), "a request has no answer"
    found: dict[str, Any] = {"requests": len(answers), "entries": report.version}
    for what, rows in calls.items():
        wall, cpu, late = (1e3 * np.array(column) for column in zip(*rows, strict=True))
        half, most = np.percentile(wall, [50, 99])
        found[what] = {
            "calls": len(rows),
            "p50_ms": round(float(half), 2),
            "p99_ms": round(float(most), 2),
            "longest_ms": round(float(wall.max()), 1),
            "cpu_ms": round(float(np.median(cpu)), 2),
            "since_due_p50_ms": round(float(np.median(late)), 1),
            "since_due_longest_ms": round(float(late.max()), 1),
        }
    return found


def main() -> None:
    """Run both parts and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        what = f"{NODES:,} nodes, {RATE:g} requests a second for {given.seconds:g} s"
        wall, _, found = measured(lambda: story(folder, given.seconds, given.kills))
        show("sqlite", what, found | {"seconds": round(wall)})
        if given.entries:
            found = replay(folder / "many.db", given.entries, NODES)
            show("sqlite", f"replay of {given.entries:,} entries", found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--loop"]:
        with open(sys.argv[3], "a+") as file:
            loop(sys.argv[2], Notes(file), *map(float, sys.argv[4:7]))
    elif sys.argv[1:2] == ["--follow"]:
        follow(sys.argv[2], float(sys.argv[3]))
    else:
        main()
