"""Time of a queue of jobs for groups of a tree: cores of a node, CPUs of a switch.

    python benchmarks/trees.py [--quick]

The platform and the mix of jobs are those of the benchmark "Normal" of OAR's scheduler
in Rust (oar-scheduler-redox), with our own random numbers: 10,000 cores in CPUs of 64,
4 CPUs in a node, 24 nodes at a switch; 40 % of the jobs take 1 to 64 cores of one node,
40 % 1 to 32 CPUs of one switch, 10 % 1 to 8 nodes and 10 % 4 to 24 nodes of one switch.
`HostPool.schedule` books each at its earliest start, and the same with quotas: at most
9,000 cores in all and 6,500 for each of four accounts at once. Each start is compared
with that of a plain scan: all times at which anything changes, in order. CPU time of
this process, the least of 5 runs, each on a new pool, without the creation of the
requests.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import slotkern as sk

CORES, CPU, BOARD, SWITCH = 10_000, 64, 4, 24  # cores, of a CPU; CPUs; nodes
HORIZON = 1e7  # minutes
ACCOUNTS, LIMIT, LIMIT_OF_ACCOUNT = 4, 9_000, 6_500  # of cores at once
#: Part of the jobs, kind, walltimes and sizes: least, most and step.
MIX = (
    (0.4, "cores", (5, 120, 5), (1, 64, 1)),
    (0.4, "cpus", (5, 180, 5), (1, 32, 1)),
    (0.1, "nodes", (120, 840, 15), (1, 8, 1)),
    (0.1, "nodes", (480, 840, 30), (4, 24, 2)),
)
Job = tuple[str, int, int]  # kind, size, minutes


def new_pool(quotas: bool = False) -> sk.HostPool:
    """Return the platform: one row for each CPU; ``board`` is the node of OAR."""
    cpu = np.arange(-(-CORES // CPU))
    board = cpu // BOARD
    table = {
        "name": [f"cpu{k}" for k in cpu],
        "cores": np.minimum(CPU, CORES - CPU * cpu),
        "board": board,
        "switch": board // SWITCH,
    }
    machine = sk.Machine(table, capacity=["cores"], levels=["board", "switch"])
    free = sk.free_slots(machine, start=0, end=HORIZON)
    if not quotas:
        return sk.HostPool(free)
    pool = sk.HostPool(free, caps={"core": LIMIT})
    pool.quota("core", LIMIT_OF_ACCOUNT, each=True)
    return pool


def draw(count: int, seed: int) -> list[Job]:
    """Return a queue of the mix, in random order."""
    rng = np.random.default_rng(seed)
    jobs: list[Job] = []
    for part, kind, walltimes, sizes in MIX:
        size = round(part * count)
        minutes, amounts = (
            rng.choice(np.arange(least, most + 1, step), size)
            for least, most, step in (walltimes, sizes)
        )
        jobs += zip([kind] * size, amounts.tolist(), minutes.tolist(), strict=True)
    return [jobs[i] for i in rng.permutation(len(jobs))]


def request_of(job: Job) -> sk.Request:
    """Return the request of a job."""
    kind, size, minutes = job
    if kind == "cores":
        return sk.Request(
            size, minutes, share={"cores": 1}, stack=CPU, tree={"board": 1}
        )
    whole = "board" if kind == "nodes" else None
    return sk.Request(size, minutes, tree={"switch": 1}, whole=whole)


def counted(request: sk.Request, job: Job, index: int) -> sk.Request:
    """Return a request with its cores as a use, for one of the accounts."""
    return request.replace(uses={"core": cores_of(job)}, account=f"a{index % ACCOUNTS}")


def cores_of(job: Job) -> int:
    """Return the cores that a quota counts of a job."""
    return job[1] * {"cores": 1, "cpus": CPU, "nodes": CPU * BOARD}[job[0]]


class PlainScan:
    """The free cores of each CPU by time, and the definition of the earliest start.

    With quotas also the cores that each account uses, and their sum.
    """

    def __init__(self, pool: sk.HostPool, quotas: bool) -> None:
        self.quotas = quotas
        self.limits = np.array([LIMIT_OF_ACCOUNT] * ACCOUNTS + [LIMIT])
        self.used = [np.zeros(ACCOUNTS + 1, int)]
        columns = pool.machine.columns
        self.capacity = columns["cores"].astype(int)
        self.board, self.switch = columns["board"], columns["switch"]
        self.first = np.unique(self.board, return_index=True)[1]
        self.starts, self.free = [0.0], [self.capacity.copy()]

    def earliest(self, job: Job, account: int) -> float:
        """Return the first start at which a job fits."""
        kind, size, minutes = job
        for i, start in enumerate(self.starts):
            last = int(np.searchsorted(self.starts, start + minutes))
            if self.quotas and not self._is_within(i, last, job, account):
                continue
            if self._fits(kind, size, np.min(self.free[i:last], axis=0)):
                return start
        raise AssertionError("no start")

    def _is_within(self, first: int, last: int, job: Job, account: int) -> bool:
        most = np.max(self.used[first:last], axis=0)
        left = self.limits - most
        return bool(min(left[account], left[ACCOUNTS]) >= cores_of(job))

    def _fits(self, kind: str, size: int, free: NDArray[np.int_]) -> bool:
        if kind == "cores":
            return bool((np.add.reduceat(free, self.first) >= size).any())
        whole, switch = free == self.capacity, self.switch
        if kind == "nodes":
            whole = np.logical_and.reduceat(whole, self.first)
            switch = switch[self.first]
        return bool((np.bincount(switch, whole) >= size).any())

    def take(self, window: sk.ShareWindow, job: Job, account: int) -> None:
        """Subtract the cores of the window of a job."""
        first, last = self._cut(window.start), self._cut(window.finish)
        table = window.slots
        taken = table["count"].astype(int)
        if window.share is None:
            taken = self.capacity[table["node"]]
        for free, used in zip(
            self.free[first:last], self.used[first:last], strict=True
        ):
            free[table["node"]] -= taken
            used[[account, ACCOUNTS]] += cores_of(job)

    def _cut(self, when: float) -> int:
        i = int(np.searchsorted(self.starts, when))
        if i == len(self.starts) or self.starts[i] != when:
            self.starts.insert(i, when)
            self.free.insert(i, self.free[i - 1].copy())
            self.used.insert(i, self.used[i - 1].copy())
        return i


def measure(count: int, quotas: bool) -> None:
    """Time a queue, and compare its starts with those of the plain scan."""
    jobs, best = draw(count, seed=1), np.inf
    for _ in range(5):
        pool, queue = new_pool(quotas), [request_of(job) for job in jobs]
        if quotas:
            queue = [
                counted(request, job, i)
                for i, (request, job) in enumerate(zip(queue, jobs, strict=True))
            ]
        begin = time.process_time()
        booked = pool.schedule(queue, "start")
        best = min(best, (time.process_time() - begin) / len(jobs))
    scan = PlainScan(pool, quotas)
    for i, (job, window) in enumerate(zip(jobs, booked, strict=True)):
        assert window is not None
        assert scan.earliest(job, i % ACCOUNTS) == window.start
        scan.take(window, job, i % ACCOUNTS)
    print(
        f"| {count:,} | {'yes' if quotas else 'no'} | {1e6 * best:.1f} µs "
        f"| {np.max(booked.finish) / 60:,.0f} |",
        flush=True,
    )


def main() -> None:
    """Measure queues of 150, 500 and 2,000 jobs, or with --quick of 150."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="150 jobs only")
    quick = parser.parse_args().quick
    print("| jobs | quotas | a job | makespan, h |\n|---|---|---|---|")
    for count in (150,) if quick else (150, 500, 2_000):
        for quotas in (False, True):
            measure(count, quotas)
    print("All starts are equal to those of the plain scan.")


if __name__ == "__main__":
    main()
