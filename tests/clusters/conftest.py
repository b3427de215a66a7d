"""Fixtures: a private Slurm, and access to it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from private_slurm import PrivateSlurm, missing_programs

from slotkern.clusters import Site, SiteAccess, SlurmCluster


@pytest.fixture(scope="module")
def slurm() -> Iterator[PrivateSlurm]:
    if missing := missing_programs():
        pytest.skip(f"not installed: {', '.join(missing)}")
    # munged refuses a socket in a folder that others may not enter, as pytest's are.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        private = PrivateSlurm(Path(folder))
        try:
            private.start()
            yield private
        finally:
            private.stop()


@pytest.fixture
def access(
    slurm: PrivateSlurm, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SiteAccess]:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    for name, value in (
        ("SQUEUE_FORMAT", "%i"),
        ("SINFO_FORMAT", "%N"),
        ("SLURM_TIME_FORMAT", "relative"),
        ("SBATCH_PARTITION", "nowhere"),
    ):
        monkeypatch.setenv(name, value)
    site = Site(lead=5, before=2)
    cluster = SlurmCluster(site, "UTC")
    yield SiteAccess(cluster, site)
    for each in cluster.bookings():
        slurm.run("scancel", f"--reservation={each.name}")
        for _ in range(100):
            if f"={each.name}" not in slurm.run("scontrol", "-o", "show", "res"):
                break
            try:
                slurm.run("scontrol", "delete", f"ReservationName={each.name}")
            except RuntimeError:
                time.sleep(0.1)
