"""A storm: metaschedulers and local managers book over two ledgers and are killed.

``python tests/domains/storm.py KILLS [PROCESSES]`` runs one. A metascheduler writes
each token to a file before its call. A new one first repeats the last call of its
predecessor. After the storm no window may have a part without its others, and no node
may be booked twice at the same time. One of `LOCAL` kills is that of a local manager.
"""

from __future__ import annotations

import itertools
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

import slotkern as sk

SITES = ("cern", "jinr")
NODES = 4
HOLD = 0.3  # seconds: some holds end while their process sleeps
LONGEST_PAUSE = 0.02  # seconds between two calls of a booking
LOCAL = 5
OWNER = "local"


def _domains(folder: Path) -> sk.Domains:
    return sk.Domains({n: sk.SlotPool.open(folder / f"{n}.db") for n in SITES})


def metascheduler(folder: Path, notes: Path, seed: int) -> None:
    """Place and release windows over both sites until killed."""
    rng = random.Random(seed)
    domains = _domains(folder)
    confirm = sk.SharedPool.confirm

    def slow_confirm(self: sk.SharedPool, booking: sk.Booking) -> sk.Booking:
        time.sleep(rng.uniform(0, LONGEST_PAUSE))
        return confirm(self, booking)

    sk.SharedPool.confirm = slow_confirm  # type: ignore[method-assign,assignment]
    with notes.open("a+") as file:
        file.seek(0)
        asked = [line.split() for line in file if line.endswith("\n")]
        if asked:
            token, n, volume = asked[-1]
            with suppress(ValueError, LookupError):  # local managers were quicker
                domains.place(sk.Request(int(n), float(volume)), token=token, hold=HOLD)
        for i in itertools.count():
            token, n = f"{seed}-{i}", rng.randint(1, 2 * NODES)
            volume = float(rng.randint(1, 9))
            print(token, n, volume, file=file, flush=True)
            with suppress(ValueError, LookupError):
                made = domains.place(sk.Request(n, volume), token=token, hold=HOLD)
                if made is not None and rng.random() < 0.5:
                    domains.release(made)


def local_manager(path: Path, seed: int) -> None:
    """Book and release windows of one site until killed."""
    rng = random.Random(seed)
    pool = sk.SlotPool.open(path)
    mine = pool.open_bookings(OWNER)  # those of a predecessor
    while True:
        if mine and rng.random() < 0.5:
            pool.release(mine.pop(rng.randrange(len(mine))))
        else:
            job = sk.Request(rng.randint(1, NODES), rng.randint(1, 9))
            found = pool.place(job, owner=OWNER)
            mine += [] if found is None else [found]
        time.sleep(rng.uniform(0, LONGEST_PAUSE))


def storm(folder: Path, kills: int, processes: int = 2) -> dict[str, int]:
    """Run a storm; return counts. AssertionError for a part without its others."""
    slots = sk.make_slots(node=range(NODES), start=0, end=1e6, performance=1, price=1)
    for name in SITES:
        sk.SlotPool(slots).share(folder / f"{name}.db").close()
    notes = [folder / f"notes{place}" for place in range(processes)]
    seeds = itertools.count(1)
    rng = random.Random(1)

    # Processes are forks of a server that has imported slotkern: quick to start.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["slotkern"])

    def start(target: Callable[..., None], *given: Path) -> BaseProcess:
        process = context.Process(target=target, args=(*given, next(seeds)))
        process.start()
        return process

    def size(place: int) -> int:
        return notes[place].stat().st_size if notes[place].exists() else 0

    def await_note(place: int, before: int) -> None:
        end = time.monotonic() + 120
        while size(place) <= before:
            assert time.monotonic() < end, f"metascheduler {place} does nothing"
            time.sleep(0.005)

    def kill(process: BaseProcess) -> None:
        process.kill()
        process.join()
        code = process.exitcode
        assert code == -signal.SIGKILL, f"a process ended by itself: {code}"

    local = [start(local_manager, folder / f"{name}.db") for name in SITES]
    running = [start(metascheduler, folder, note) for note in notes]
    sizes = [0] * processes
    try:
        for number in range(kills):
            if number % LOCAL == LOCAL - 1:
                site = rng.randrange(len(SITES))
                kill(local[site])
                local[site] = start(local_manager, folder / f"{SITES[site]}.db")
                continue
            place = rng.randrange(processes)
            await_note(place, sizes[place])
            time.sleep(rng.uniform(0, 0.2))
            kill(running[place])
            sizes[place] = size(place)
            running[place] = start(metascheduler, folder, notes[place])
        assert all(each.exitcode is None for each in local), "a local manager ended"
    finally:
        for process in running + local:
            process.kill()
            process.join()
    return judge(folder, notes)


def judge(folder: Path, notes: list[Path]) -> dict[str, int]:
    """Recover all tokens, and check that each has all its parts or none."""
    domains = _domains(folder)
    counts = {"tokens": 0, "booked": 0, "across": 0, "repaired": 0}
    expected: set[tuple[str, int]] = set()
    before = sum(len(domains[name].open_bookings()) for name in SITES)
    for note in notes:
        for line in note.read_text().splitlines():
            token, n, _ = line.split()
            counts["tokens"] += 1
            found = domains.recover(token)
            if found is None:
                continue
            assert len(found.window) == int(n), token
            assert len({each.window.start for each in found.parts.values()}) == 1
            assert domains.recover(token) == found
            expected |= {(name, each.id) for name, each in found.parts.items()}
            counts["booked"] += 1
            counts["across"] += len(found.parts) > 1
    after = 0
    for name in SITES:
        pool = domains[name]
        assert pool.check(), str(pool.check())
        calls = pool.calls()
        of_tokens = {int(c["first"]) for c in calls if c["token"]}
        still = {each.id for each in pool.open_bookings()}
        # a part that no recovered window has would be a part without its others
        assert {(name, i) for i in still & of_tokens} <= expected
        assert all(each.expires is None for each in pool.open_bookings())
        after += len(still)
    counts["repaired"] = before - after
    return counts


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
        print(storm(Path(made), int(sys.argv[1]), count))
