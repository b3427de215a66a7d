"""Times and counts searches over domains in two workers of dask, by n and by domains.

    python benchmarks/remote_domains.py [--quick]

The workers are processes that are reached over TCP on this machine. Each domain has a
pool with one to three slots a node, random starts, prices of 1 to 19 and four
performances. Each row is the median of several requests by every criterion; windows
must be those of one pool with all slots. Latency is wall time, and that of a round
without work is given for comparison.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from domains import joined, parts, site

import slotkern as sk
from slotkern.domains.rounds import CRITERIA


def measured(
    far: sk.RemoteDomains, near: sk.SlotPool, n: int, count: int
) -> tuple[float, float, float, float]:
    """Return medians: ms, rounds, bytes sent and received for windows of n parts."""
    rng = np.random.default_rng(5)
    rows = []
    for k in range(count * len(CRITERIA)):
        criterion = CRITERIA[k % len(CRITERIA)]
        request = sk.Request(n, float(rng.integers(50, 400)), earliest=float(k % 9))
        traffic = far.traffic
        before = traffic.rounds, traffic.sent, traffic.received
        begin = time.perf_counter()
        window = far.find(request, criterion, shape="ragged")
        seconds = time.perf_counter() - begin
        after = traffic.rounds, traffic.sent, traffic.received
        other = near.find(request, criterion, shape="ragged")
        assert window is not None
        assert other is not None
        assert parts(window)[:2] == parts(other)[:2]
        names = [f"d{i // NODES}/{i % NODES}" for i in other.nodes]
        assert list(window.names) == names
        rows.append(
            (1e3 * seconds, *(b - a for a, b in zip(before, after, strict=True)))
        )
    ms, rounds, sent, received = (median(column) for column in zip(*rows, strict=True))
    return ms, rounds, sent, received


NODES = 0


def main() -> None:
    """Print the table."""
    global NODES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small domains")
    quick = parser.parse_args().quick
    from distributed import Client, LocalCluster

    sizes = [200] if quick else [2_000, 20_000]
    count = 2 if quick else 5
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        workers = sorted(client.scheduler_info()["workers"])
        print(
            f"{'nodes':>7} {'domains':>8} {'n':>4} {'ms':>8} {'empty ms':>9} "
            f"{'rounds':>7} {'sent':>8} {'received':>9}"
        )
        for NODES in sizes:
            for domains, widths in ((2, (4, 16, 64)), (4, (16,)), (8, (16,))):
                pools: dict[str, Any] = {
                    f"d{k}": site(NODES, k) for k in range(domains)
                }
                far = sk.RemoteDomains(
                    {
                        name: sk.remote_domain(
                            client, partial(site, NODES, k), workers[k % 2]
                        )
                        for k, name in enumerate(pools)
                    }
                )
                near = joined(pools, NODES)
                begin = time.perf_counter()
                for _ in range(10):
                    far._ask("facts")
                empty = 100 * (time.perf_counter() - begin)
                for n in widths:
                    ms, rounds, sent, received = measured(far, near, n, count)
                    print(
                        f"{NODES:>7,} {domains:>8} {n:>4} {ms:>8.1f} {empty:>9.1f} "
                        f"{rounds:>7.1f} {sent:>8,.0f} {received:>9,.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
