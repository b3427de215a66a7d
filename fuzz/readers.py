"""Fuzz the readers of files and texts: slots, traces, pools, clusters, calendars, ...

    python fuzz/readers.py [TARGET ...] [--executions N] [--seed S]

Each input must give either a valid result, which is equal after writing and reading it
again, or a ValueError or TypeError with a message of one line that names the file.
Other exceptions, warnings, more than 10 seconds of CPU time or 4 GiB of memory are
findings: the input is saved in ``fuzz/findings``, and the exit code is 1. If the
interpreter crashes, the input remains in the temporary folder. Runs with equal seeds
are equal.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern.expressions.filters import evaluate
from slotkern.files import FORMATS
from slotkern.files.slots import read_slots, write_slots
from slotkern.studies.load import load_study
from slotkern.studies.papers import PAPERS, study_text

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # also for tests, which load this file by its path
from cluster_texts import CLUSTER_TARGETS  # noqa: E402
from mutation import (  # noqa: E402
    Target,
    mutate,
    mutate_archive,
    mutate_packed,
    mutate_words,
    result_or_error,
)

LONGEST = 10  # seconds of CPU time for each input
MOST = 4 << 30  # bytes of address space
SLOTS = sk.make_slots(
    node=[4, 2, 4, 7],
    start=[0, 0.1, 7, -3],
    end=[5, np.inf, 9, 1e9],
    performance=[2, 3.5, 2, 1],
    price=[0, 1 / 3, 5e-324, 2],
    memory=np.array([64, 128, 64, 2], np.int16),
    site=["a", "", 'say "é", ok', "b"],
    gpu=[True, False, True, False],
    load=np.array([0.5, np.nan, -np.inf, 1], np.float32),
)


def same(one: np.ndarray, other: np.ndarray, text: bool) -> bool:
    """Return True if slots are equal; in text formats types may differ in width."""
    if text:
        return repr(one.tolist()) == repr(other.tolist())
    return one.dtype == other.dtype and all(
        one[name].tobytes() == other[name].tobytes() for name in one.dtype.names
    )


def slot_target(suffix: str) -> Target:
    """Return the target of slot files with this suffix."""
    text = not FORMATS[suffix].is_typed

    def seeds(folder: Path) -> list[bytes]:
        found = []
        path = folder / f"seed{suffix}"
        plain = SLOTS[list(sk.SLOT.names or ())]
        for slots in (SLOTS, plain, SLOTS[:1], SLOTS[:0]):
            write_slots(path, sk.make_slots(**{n: slots[n] for n in slots.dtype.names}))
            found.append(path.read_bytes())
        if suffix == ".npz":
            columns = {name: SLOTS[name] for name in SLOTS.dtype.names}
            for save in (np.savez, np.savez_compressed):
                sink = io.BytesIO()
                save(sink, **columns)
                found.append(sink.getvalue())
        return found

    def check(data: bytes, folder: Path) -> bool:
        path = folder / f"input{suffix}"
        path.write_bytes(data)
        slots = result_or_error(lambda: read_slots(path), str(path))
        if slots is None:
            return False
        sk.validate_slots(slots)
        again = folder / f"again{suffix}"
        try:
            write_slots(again, slots)
        except TypeError:  # the format has no such column type, such as dates in csv
            return True
        if len(slots) or not text:
            assert same(read_slots(again), slots, text), (
                "changed by writing and reading"
            )
        return True

    change = mutate_words if text else mutate
    return Target(seeds, check, mutate_archive if suffix == ".npz" else change)


def pool_seeds(folder: Path) -> list[bytes]:
    """Return pool files: without bookings, with bookings, and after further changes."""
    found = []
    pool = sk.SlotPool(SLOTS)
    path = folder / "seed.npz"
    for step in range(3):
        if step:
            pool.schedule([sk.Request(1, 1), sk.Request(2, 1)])
        if step == 2:
            pool.advance(1)
            pool.remove_node(7)
        pool.save(path)
        found.append(path.read_bytes())
    return found


def check_pool(data: bytes, folder: Path) -> bool:
    """Load a pool file; a valid pool must be equal after saving and loading it."""
    path = folder / "input.npz"
    path.write_bytes(data)
    pool = result_or_error(lambda: sk.SlotPool.load(path), str(path))
    if pool is None:
        return False
    sk.validate_slots(pool.slots)
    pool.save(folder / "again.npz")
    again = sk.SlotPool.load(folder / "again.npz")
    for name in ("slots", "origin", "booked"):
        assert same(getattr(pool, name), getattr(again, name), False), name
    assert repr(pool.now) == repr(again.now)
    result_or_error(lambda: pool.find(sk.Request(1, 1), "start"), "volume")
    return True


EXPRESSIONS = [
    b"memory >= 64 and site == 'a'",
    b"not gpu or (1 < price <= 2.5 and node in (1, 2, -3))",
    b"site not in ['a', \"b\"] and memory != 0x1F",
    b"gpu == True and end > 1e300 and site < 'z'",
]


def check_where(data: bytes, folder: Path) -> bool:
    """Evaluate a filter expression on all slots and on each slot alone."""
    text = data.decode(errors="surrogateescape")
    passed = result_or_error(lambda: evaluate(text, SLOTS), "where ")
    if passed is None:
        return False
    assert passed.dtype == np.bool_, passed.dtype
    assert passed.shape == SLOTS.shape, passed.shape
    for row in range(len(SLOTS)):  # a filter evaluates each slot independently
        assert evaluate(text, SLOTS[row : row + 1]) == passed[row], row
    return True


def study_seeds(folder: Path) -> list[bytes]:
    """Return the studies of the papers and of the examples."""
    example = HERE.parent / "examples" / "study.toml"
    return [example.read_bytes(), *(study_text(name).encode() for name in PAPERS)]


def check_study(data: bytes, folder: Path) -> bool:
    """Load a study file; loading it twice must give equal studies."""
    path = folder / "input.toml"
    path.write_bytes(data)
    study = result_or_error(lambda: load_study(path), str(path))
    if study is None:
        return False
    assert repr(load_study(path)) == repr(study)
    return True


CALENDAR = b"""BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//x//EN
BEGIN:VEVENT
UID:1
SUMMARY:Course\\, long
  line
DTSTART;TZID=Europe/Berlin:20261020T080000
DTEND;TZID=Europe/Berlin:20261020T100000
RRULE:FREQ=WEEKLY;BYDAY=TU,-1MO;INTERVAL=2;COUNT=9
EXDATE:20261103T070000Z,20261117T070000Z
RDATE;VALUE=PERIOD:20261022T080000Z/PT1H
LOCATION:n[1-4]\\,n7
END:VEVENT
BEGIN:VEVENT
UID:1
RECURRENCE-ID:20261201T070000Z
DTSTART:20261201T120000
DURATION:P1DT2H
STATUS:CANCELLED
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20260601
RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;BYSETPOS=1;UNTIL=20301231T000000Z;WKST=SU
RDATE;VALUE=DATE:20260609
TRANSP:OPAQUE
END:VEVENT
END:VCALENDAR
"""


def check_calendar(data: bytes, folder: Path) -> bool:
    """Read a calendar, and read again what is written of its busy time."""
    path, again = folder / "input.ics", folder / "again.ics"
    path.write_bytes(data)
    span = {"start": "2026-01-01", "end": "2027-01-01", "zone": "Europe/Berlin"}
    table = result_or_error(lambda: sk.read_ics(path, nodes="n1", **span), str(path))
    if table is None:
        return False
    clock = sk.Clock("2026-01-01", zone="Europe/Berlin")
    times = {name: clock.times(table[name]) for name in ("start", "end")}
    assert (times["start"] <= times["end"]).all()
    rows = {"nodes": table["node"], "start": times["start"], "finish": times["end"]}
    text = sk.to_ics(rows | {"owner": table["reason"]}, clock=clock)
    again.write_bytes(text.encode())
    copied = sk.read_ics(again, **span)
    for name in ("start", "end"):
        assert sorted(clock.times(copied[name])) == sorted(times[name]), name
    return True


def trace_target(suffix: str) -> Target:
    """Return the target of trace files with this suffix."""
    grid, packed = "gwf" in suffix, suffix.endswith(".gz")
    fields = sk.GWF if grid else sk.SWF

    def seeds(folder: Path) -> list[bytes]:
        jobs = (
            "1 0 3 97.5 4 -1 -1 4 200",
            "2 5 0 1e2 2 +5 .5 -1 -1",
            "3 5 0 0 1 9 9 1 1",
        )
        more = (
            "-1 1 U1 G1 x -1 p s/a s/b BoT" + " -1" * 10 if grid else "-1 1" + " 2" * 7
        )
        mark = "#" if grid else ";"
        lines = [f"{mark} MaxProcs: 8", f"{mark} Note: x", ""]
        text = "\n".join([*lines, *(f"{job} {more}" for job in jobs)]).encode()
        return [gzip.compress(text, mtime=0) if packed else text]

    def check(data: bytes, folder: Path) -> bool:
        path = folder / f"input{suffix}"
        path.write_bytes(data)
        read = sk.read_trace  # invalid lines can be skipped, unlike an invalid file
        trace = result_or_error(lambda: read(path, max_bytes=2**24), str(path))
        loose = result_or_error(
            lambda: read(path, errors="skip", max_bytes=2**24), str(path)
        )
        if trace is None:
            return False
        assert trace.jobs.dtype == fields
        assert loose.skipped == 0
        assert loose.jobs.tobytes() == trace.jobs.tobytes()
        if not grid:
            sk.write_trace(folder / "again.swf", trace)
            again = sk.read_trace(folder / "again.swf") if len(trace.jobs) else trace
            assert repr(again.jobs.tolist()) == repr(trace.jobs.tolist())
        result_or_error(lambda: sk.replay(trace, 8, "easy"), "")
        return True

    return Target(seeds, check, mutate_packed if packed else mutate_words)


TARGETS = {
    "swf": trace_target(".swf"),
    "swf.gz": trace_target(".swf.gz"),
    "gwf": trace_target(".gwf"),
    **{suffix[1:]: slot_target(suffix) for suffix in FORMATS},
    "pool": Target(pool_seeds, check_pool, mutate_archive),
    "where": Target(lambda _: EXPRESSIONS, check_where, mutate_words),
    "ics": Target(lambda _: [CALENDAR], check_calendar, mutate_words),
    "study": Target(study_seeds, check_study, mutate_words),
    **CLUSTER_TARGETS,
}


def run(name: str, executions: int, seed: int, found: Path = HERE / "findings") -> str:
    """Run a target; return one line of statistics, or raise the error of a finding."""
    target = TARGETS[name]
    rng = random.Random(f"{name} {seed}")
    accepted, slowest, began = 0, 0.0, time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        folder = Path(temporary)
        seeds = target.seeds(folder)
        corpus = list(seeds)
        warnings.simplefilter("error")
        for number in range(executions):
            data = target.mutate(rng.choice(corpus), seeds, rng)
            start = time.perf_counter()
            if hasattr(signal, "SIGPROF"):
                signal.setitimer(signal.ITIMER_PROF, LONGEST)
            try:
                valid = target.check(data, folder)
            except BaseException:
                found.mkdir(exist_ok=True)
                (found / f"{name}-{seed}-{number}").write_bytes(data)
                raise
            finally:
                if hasattr(signal, "SIGPROF"):
                    signal.setitimer(signal.ITIMER_PROF, 0)
            slowest = max(slowest, time.perf_counter() - start)
            accepted += valid
            # Valid inputs join the corpus, from which later inputs are mutated.
            if valid and len(corpus) < 200 and len(data) < 20_000:
                corpus.append(data)
    took = time.perf_counter() - began
    return (
        f"{name}: {executions:,} executions in {took:.0f} s, {accepted:,} valid, "
        f"{executions - accepted:,} rejected, slowest {slowest:.2f} s, no finding"
    )


def main() -> int:
    """Fuzz the chosen targets; return 1 after a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--executions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if unknown := set(options.targets) - TARGETS.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}")
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    code = 0
    for name in options.targets or TARGETS:
        try:
            print(run(name, options.executions, options.seed), flush=True)
        except Exception:
            traceback.print_exc()
            print(f"{name}: a finding, saved in {HERE / 'findings'}", flush=True)
            code = 1
    return code


if __name__ == "__main__":
    if hasattr(signal, "SIGPROF"):

        def too_long(*_: Any) -> None:
            raise RuntimeError(f"more than {LONGEST} seconds")

        signal.signal(signal.SIGPROF, too_long)
    sys.exit(main())
