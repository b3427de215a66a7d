"""A storm: processes change one ledger at random and are killed; the check judges.

``python tests/ledger/storm.py KILLS [PROCESSES [URL]]`` runs one; with ``shares`` after
the program's name, of a ledger of shares of nodes. A worker writes
each token to a file before its call, and the answer after it. A new worker first
repeats the last call of its predecessor with its token.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import slotkern as sk
from slotkern import ledger


def worker(path: str, notes: str, seed: int) -> None:
    """Call at random until killed."""
    rng = random.Random(seed)
    pool = sk.SlotPool.open(path, user=f"w{os.getpid()}")
    share = {"cores": 3} if isinstance(pool, sk.HostPool) else None
    mine: list[sk.Booking] = []

    def job(n: int, volume: float) -> sk.Request:
        return sk.Request(n, volume, share=share if rng.random() < 0.8 else None)

    with open(notes, "a+") as file:
        file.seek(0)
        asked = [line.split() for line in file if line.endswith("\n")]
        if asked and asked[-1][0] == "ask":
            _, token, n, volume = asked[-1]
            answer(pool, file, token, int(n), float(volume))
        for i in range(10**9):
            act = rng.random()
            with suppress(LookupError, ValueError):  # another was faster
                if act < 0.5:
                    token, n = f"{seed}-{i}", rng.randint(1, 4)
                    volume = float(rng.randint(1, 9))
                    print("ask", token, n, volume, file=file, flush=True)
                    mine += answer(pool, file, token, n, volume)
                elif act < 0.65 and mine:
                    pool.release(mine.pop(rng.randrange(len(mine))))
                elif act < 0.7 and mine:
                    booking = mine[-1]
                    pool.release(booking)
                    pool.release(booking)  # always too late
                elif act < 0.8:
                    hold = pool.place(job(1, 2), hold=rng.choice([0.005, 5]))
                    if hold is not None and rng.random() < 0.7:
                        pool.confirm(hold)
                elif act < 0.85:
                    mine += pool.book([pool.find(job(2, 3))])
                elif act < 0.9:
                    with pool.group(within=0.01):
                        for _ in range(rng.randint(1, 20)):
                            pool.place(job(1, 1))
                elif act < 0.93:
                    pool.schedule([job(2, 2)] * 5, token=f"s{seed}-{i}")
                elif act < 0.95:
                    pool.disable([rng.randrange(8)], pool.now + 5, pool.now + 9)
                elif act < 0.97:
                    pool.advance(max(pool.now, 0) + 0.5)
                elif act < 0.98:
                    pool.compact(keep=0.5)
                else:
                    pool.snapshot()


def answer(pool, file, token, n, volume):  # type: ignore[no-untyped-def]
    try:
        share = {"cores": n} if isinstance(pool, sk.HostPool) else None
        request = sk.Request(n, volume, share=share)
        booking = pool.place(request, token=token, owner="all")
    except ledger.TokenUsed:
        print("wrong", token, file=file, flush=True)
        raise
    print("got", token, booking and booking.id, file=file, flush=True)
    return [] if booking is None else [booking]


def storm(
    folder: Path,
    kills: int,
    processes: int = 4,
    where: Path | str | None = None,
    shares: bool = False,
) -> dict[str, int]:
    """Run a storm; return counts. AssertionError if the ledger is not sound.

    The ledger is created at `where`, by default in the folder. A worker is killed at a
    random moment after its first note, so also slow machines kill at work.
    """
    path = folder / "site.db" if where is None else where
    if shares:
        machine = sk.Machine(
            {"name": [*"abcdefgh"], "cores": [8] * 8}, capacity="cores"
        )
        sk.HostPool(sk.free_slots(machine, start=0, end=1e6)).share(path)
    else:
        slots = sk.make_slots(node=range(8), start=0, end=1e6, performance=1, price=1)
        sk.SlotPool(slots).share(path)

    notes = [folder / f"notes{place}" for place in range(processes)]
    seeds = itertools.count(1)
    sizes = [0] * processes

    def start(place: int) -> subprocess.Popen[bytes]:
        sizes[place] = notes[place].stat().st_size if notes[place].exists() else 0
        words = ["--worker", str(path), str(notes[place]), str(next(seeds))]
        return subprocess.Popen([sys.executable, __file__, *words])

    def await_note(place: int) -> None:
        end = time.monotonic() + 120
        while not notes[place].exists() or notes[place].stat().st_size <= sizes[place]:
            assert time.monotonic() < end, f"worker {place} does nothing"
            time.sleep(0.01)

    rng = random.Random(1)
    running: list[subprocess.Popen[bytes]] = []
    try:
        running.extend(map(start, range(processes)))
        for _ in range(kills):
            place = rng.randrange(processes)
            await_note(place)
            time.sleep(rng.uniform(0, 0.3))
            running[place].send_signal(signal.SIGKILL)
            code = running[place].wait()
            assert code == -signal.SIGKILL, f"a worker ended by itself: {code}"
            running[place] = start(place)
    finally:
        for process in running:
            process.kill()
            process.wait()
    pool = sk.SlotPool.open(path)
    report = pool.check()
    assert report, str(report)
    calls = pool.calls()
    stored = dict(zip(calls["token"].tolist(), calls["last"].tolist(), strict=True))
    first = int(calls["first"].min()) if len(calls) else 0
    confirmed = 0
    for note in notes:
        lines = note.read_text().splitlines() if note.exists() else []
        assert not [line for line in lines if line.startswith("wrong")]
        answers: dict[str, str] = {}
        for line in lines:
            word, token, *rest = line.split()
            if word == "got":
                assert answers.setdefault(token, rest[0]) == rest[0]
        for token, number in answers.items():
            if number != "None" and int(number) >= first:
                assert stored[token] == int(number), token
                confirmed += 1
    return {
        "version": pool.version,
        "calls": len(calls),
        "confirmed": confirmed,
    }


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        words = [word for word in sys.argv[1:] if word != "shares"]
        with tempfile.TemporaryDirectory() as made:
            count = int(words[1]) if len(words) > 1 else 4
            of = words[2] if len(words) > 2 else None
            print(storm(Path(made), int(words[0]), count, of, "shares" in sys.argv))
