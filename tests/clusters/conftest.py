"""Fixtures: a private Slurm, a private OAR, and access to them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import temporary_cluster
from private_oar import PrivateOar, missing_oar
from private_slurm import SEARCH, PrivateSlurm, missing_programs
from recorded_texts import RECORDED, Recorded

from slotkern.clusters import OarCluster, Site, SiteAccess, SlurmCluster


@pytest.fixture(params=RECORDED, ids=lambda each: each.version)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    found: Recorded = request.param
    return found


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
        ("PATH", SEARCH),
    ):
        monkeypatch.setenv(name, value)
    site = Site(lead=5, before=2)
    cluster = SlurmCluster(site, "UTC")
    yield SiteAccess(cluster, site)
    for each in cluster.bookings():
        slurm.run("scancel", f"--reservation={each.name}")
        for _ in range(100):
            if f"={each.name} " not in slurm.run("scontrol", "-o", "show", "res"):
                break
            try:
                slurm.run("scontrol", "delete", f"ReservationName={each.name}")
            except RuntimeError:
                time.sleep(0.1)


@pytest.fixture(scope="module")
def oar() -> Iterator[PrivateOar]:
    if missing := missing_oar():
        pytest.skip(missing)
    folder = tempfile.TemporaryDirectory(prefix="oar-")  # of the user oar
    with temporary_cluster() as database, folder as name:
        private = PrivateOar(Path(name), database.url)
        try:
            private.start()
            yield private
        finally:
            private.stop()


@pytest.fixture
def oar_access(
    oar: PrivateOar, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SiteAccess]:
    monkeypatch.setenv("PATH", f"{oar.folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TZ", "America/New_York")
    # No reservation starts during a test: no node answers, so its job would fail.
    site = Site(lead=900, before=2, zone="UTC", timeout=60)
    cluster = OarCluster(site, "cluster")
    yield SiteAccess(cluster, site)
    for each in cluster.bookings():
        cluster.release(each.name, each.number)
