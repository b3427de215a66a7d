"""Fuzz targets for the texts and JSON of schedulers, site files and recurrence rules.

The seeds are the recorded outputs of the tests. A text that is read must give busy
spans of known nodes, and free slots that keep the rules of slots.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mutation import Target, mutate_words, result_or_error

import slotkern as sk
from slotkern.calendars.rules import RecurrenceRule
from slotkern.clusters import read_site, read_slurm_files
from slotkern.clusters.oar_queue import read_oar_queue

TEXTS = Path(__file__).parents[1] / "tests" / "clusters" / "texts"
NOW = 1795893009.0
ZONE = "Europe/Berlin"
NODES = "NODELIST STATE\na[01-08],b[01-04] idle\n"
SITE = b"""horizon = 604800
lead = 15.5
after = 120
unit = "h"
pending = "ignore"
partitions = ["batch", "fast"]
sudo = ["sudo", "-n"]
zone = "Europe/Berlin"
[[node]]
price = 0.5
[[node]]
where = "cpus >= 8 and feature_avx512"
performance = 2
price = "weight"
"""
RULES = [
    b"FREQ=WEEKLY;BYDAY=TU,TH;COUNT=10",
    b"FREQ=MONTHLY;BYDAY=1MO,-1FR;UNTIL=20271231T230000Z;INTERVAL=2",
    b"FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO;BYSETPOS=-1;WKST=SU",
    b"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29,-1;BYHOUR=1,2;UNTIL=20300101",
    b"FREQ=YEARLY;BYYEARDAY=-1,366;BYMINUTE=30;BYSECOND=0",
]


def seeds_of(*names: str) -> Callable[[Path], list[bytes]]:
    """Return the function that reads the seeds of all versions, for a `Target`."""
    return lambda _: [
        path.read_bytes() for name in names for path in sorted(TEXTS.rglob(name))
    ]


def text_target(option: str, *names: str) -> Target:
    """Return the target of a text that `read_slurm_files` takes as this argument."""

    def check(data: bytes, folder: Path) -> bool:
        path, nodes = folder / "input.txt", folder / "nodes.txt"
        path.write_bytes(data)
        if not nodes.exists():
            nodes.write_text(NODES)
        paths = {"sinfo": nodes} | {option: path}

        def read() -> Any:
            return read_slurm_files(**paths, now=NOW, zone=ZONE)

        snapshot = result_or_error(read, "")
        if snapshot is None:
            return False
        check_snapshot(snapshot)
        return True

    return Target(seeds_of(*names), check, mutate_words)


def check_snapshot(snapshot: Any) -> None:
    """Assert that busy spans are of known nodes, and that free slots are valid."""
    free = result_or_error(lambda: snapshot.free_slots(None, 86400.0), "")
    if free is not None:
        sk.validate_slots(free.slots)
    assert all(0 <= span[0] < len(snapshot.machine) for span in snapshot.busy)
    assert (snapshot.busy["start"] <= snapshot.busy["end"]).all()


def oar_target(is_nodes: bool) -> Target:
    """Return the target of the nodes or of the jobs of OAR, with the queue."""
    names = ("oarnodes.json", "oarstat.json")

    def check(data: bytes, _: Path) -> bool:
        texts = [(TEXTS / name).read_text() for name in names]
        texts[not is_nodes] = data.decode(errors="replace")

        def read() -> Any:
            return read_oar_queue(*texts, now=NOW, zone=ZONE, group="cluster")

        queue = result_or_error(read, "oar")
        if queue is None:
            return False
        check_snapshot(queue.snapshot)
        assert all(job.width >= 1 and job.length > 0 for job in queue.jobs)
        return True

    return Target(seeds_of(names[not is_nodes]), check, mutate_words)


def check_sacct(data: bytes, folder: Path) -> bool:
    """Read a trace from the output of sacct."""
    path = folder / "input.txt"
    path.write_bytes(data)
    trace = result_or_error(lambda: sk.read_trace(path, zone=ZONE), str(path))
    if trace is None:
        return False
    again = sk.read_trace(path, zone=ZONE)
    assert repr(again.jobs.tolist()) == repr(trace.jobs.tolist())
    return True


def check_site(data: bytes, folder: Path) -> bool:
    """Read a site file, and price a machine by its rules."""
    path = folder / "input.toml"
    path.write_bytes(data)
    site = result_or_error(lambda: read_site(path), str(path))
    if site is None:
        return False
    machine = sk.Machine({"name": ["n1", "n2"], "cpus": [4, 8], "weight": [1, 2]})
    result_or_error(lambda: site.priced(machine), "")
    assert read_site(path) == site
    return True


def check_rule(data: bytes, folder: Path) -> bool:
    """Expand a recurrence rule for two years."""
    text = data.decode(errors="replace")
    start, limit = dt.datetime(2026, 2, 28, 8), dt.datetime(2028, 2, 28, tzinfo=dt.UTC)

    def dates() -> list[dt.datetime]:
        rule = RecurrenceRule.parse(text)
        return rule.dates(start, ZoneInfo(ZONE), limit)

    found = result_or_error(dates, "")
    if found is None:
        return False
    assert found == sorted(found)
    assert all(start <= each < dt.datetime(2028, 2, 29) for each in found)
    return True


CLUSTER_TARGETS = {
    "sinfo": text_target("sinfo", "sinfo.txt", "sinfo-fields.txt", "sinfo-long.txt"),
    "scontrol-nodes": text_target("sinfo", "nodes.txt"),
    "squeue": text_target(
        "squeue", "squeue.txt", "squeue-epoch.txt", "squeue-long.txt"
    ),
    "reservations": text_target(
        "reservations", "reservations.txt", "reservations-epoch.txt"
    ),
    "sinfo-json": text_target("sinfo", "sinfo.json", "nodes.json"),
    "squeue-json": text_target("squeue", "squeue.json"),
    "oarnodes": oar_target(True),
    "oarstat": oar_target(False),
    "sacct": Target(seeds_of("sacct.txt"), check_sacct, mutate_words),
    "site": Target(lambda _: [SITE], check_site, mutate_words),
    "rule": Target(lambda _: RULES, check_rule, mutate_words),
}
