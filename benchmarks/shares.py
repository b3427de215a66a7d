"""Times of queues of jobs that share hosts: a table of rows, views and whole nodes.

    python benchmarks/shares.py [HOSTS JOBS DEMANDS WIDEST]

Compiles `benchmarks/shares.cpp` with the C++ compiler of the system and runs it. The
program plans each queue on rows and on views, and stops if their windows differ. Then
`HostPool.schedule` books queues of the same kind, and the first windows are compared
with those of `find`.
"""

from __future__ import annotations

import csv
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import slotkern as sk

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=off", "-DSLOTKERN_MULTIVERSION=1"]
HEADER = (
    "| hosts, jobs | parts | demands | rows | views | whole nodes | rows, MB |"
    " makespan, h | whole nodes, h |\n|---|---|---|---|---|---|---|---|---|"
)

CAPACITY = {"cores": 64, "gpus": 4, "memory": 512}
#: Cores, GPUs and GB of a part, as in shares.cpp.
DEMANDS = (
    *((1, 0, 4), (4, 0, 16), (8, 0, 32), (16, 0, 64), (32, 0, 128), (64, 0, 256)),
    *((8, 1, 64), (16, 1, 64), (16, 2, 128), (32, 4, 256)),
)
COMPARED = 200  # windows


def time_python(hosts: int, count: int, widest: int, owner: str | None) -> float:
    """Return the CPU time of `HostPool.schedule` in microseconds a job."""
    draw = random.Random(5)
    names = [f"n{i}" for i in range(hosts)]
    machine = sk.Machine({"name": names, **CAPACITY}, capacity=[*CAPACITY])
    free = sk.free_slots(machine, start=0, end=math.inf)
    jobs = []
    for _ in range(count):
        share = zip(CAPACITY, draw.choice(DEMANDS), strict=True)
        taken = {name: amount for name, amount in share if amount}
        job = sk.Request(draw.randint(1, widest), draw.randint(1, 24), share=taken)
        jobs.append(job)
    pool, other = sk.HostPool(free), sk.HostPool(free)
    begin = time.process_time()
    booked = pool.schedule(jobs, owner=owner)
    spent = time.process_time() - begin
    for job, window in zip(jobs[:COMPARED], booked, strict=False):
        found = other.find(job, "start")
        assert window == found
        other.book(found)
    return 1e6 * spent / count


def print_python() -> None:
    """Print the table of `HostPool.schedule`."""
    print("\n| hosts, jobs | parts | from Python | with an owner |\n|---|---|---|---|")
    for hosts, count, widest in (
        *((1000, 20_000, 8), (1000, 20_000, 1)),
        (10_000, 20_000, 8),
    ):
        times = [time_python(hosts, count, widest, owner) for owner in (None, "ann")]
        print(
            f"| {hosts:,}, {count:,} | 1 to {widest} "
            f"| {times[0]:.1f} | {times[1]:.1f} |"
        )


def main() -> int:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        print("this benchmark needs a C++ compiler", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "shares")
        source = str(ROOT / "benchmarks" / "shares.cpp")
        include = f"-I{ROOT / 'src' / '_native'}"
        subprocess.run([compiler, *FLAGS, include, source, "-o", program], check=True)
        command = [program, *sys.argv[1:]]
        text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    print(HEADER)
    for row in csv.DictReader(text.stdout.splitlines()):
        print(
            f"| {int(row['hosts']):,}, {int(row['jobs']):,} | 1 to {row['widest']} "
            f"| {int(row['demands']):,} | {row['rows']} | {row['views'] or '-'} "
            f"| {row['whole']} | {row['megabytes']} | {row['shared hours']} "
            f"| {row['whole hours']} |"
        )
    if len(sys.argv) == 1:
        print_python()
    return 0


if __name__ == "__main__":
    sys.exit(main())
