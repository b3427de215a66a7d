"""The page of a cluster that is written again and again, and its calendar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
from command_line import refused, run

import slotkern as sk
from slotkern.clusters import (
    RecordedCluster,
    Site,
    SiteAccess,
    UnreachableError,
    read_slurm,
)
from slotkern.commands import cluster

NODES = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\nbatch up 1:00 4 idle n[1-4]\n"
NOW = 1800000000


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> RecordedCluster:
    """Replace the scheduler of the commands by a cluster in memory."""
    found = RecordedCluster(read_slurm(NODES, now=NOW, zone="Europe/Berlin"))
    access = SiteAccess(found, Site())
    monkeypatch.setattr(cluster, "open_cluster", lambda *_: access)
    return found


@pytest.mark.parametrize(
    "fault",
    [
        UnreachableError("no answer within 20 seconds"),
        ValueError("sinfo, line 3: no answer within 20 seconds"),
    ],
)
def test_the_page_reports_a_cluster_that_cannot_be_read(
    there: RecordedCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: ValueError,
) -> None:
    page, pages, read = tmp_path / "page.html", [], there.read

    def sleep(seconds: float) -> None:
        assert seconds == 5
        pages.append(page.read_text())
        if len(pages) == 1:

            def fail() -> Any:
                raise fault

            monkeypatch.setattr(there, "read", fail)
        else:
            monkeypatch.setattr(there, "read", read)
            there.reserve("run1", ["n1"], NOW, NOW + 600, "anna")

    monkeypatch.setattr(cluster.time, "sleep", sleep)
    done = run("watch", page, "--every", 5, "--count", 3)
    assert done.exit_code == 0
    pages.append(page.read_text())
    assert ["no answer within 20 seconds" in each for each in pages] == [0, 1, 0]
    assert ["reservation run1" in each for each in pages] == [0, 0, 1]
    assert all('http-equiv="refresh" content="5"' in each for each in pages)
    assert "its state at 2027-01-15 09:00:00+01:00" in done.stdout


@pytest.mark.parametrize("count", [0, -1])
def test_a_number_of_pages_that_never_ends_is_refused(
    there: RecordedCluster, tmp_path: Path, count: int
) -> None:
    done = run("watch", tmp_path / "page.html", "--count", count)
    refused(done, f"--count must be at least 1, got {count}")
    assert not (tmp_path / "page.html").exists()


def test_the_page_remains_after_an_interrupt(
    there: RecordedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster.time, "sleep", sleep)
    page = tmp_path / "page.html"
    assert run("watch", page).exit_code in (1, 130)
    assert page.read_text().rstrip().endswith("</html>")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_cluster_that_was_never_read_is_an_error(
    there: RecordedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise UnreachableError("no answer within 20 seconds")

    monkeypatch.setattr(there, "read", fail)
    refused(run("watch", tmp_path / "page.html"), "no answer within 20 seconds")
    refused(run("watch", tmp_path / "page.txt"), "PAGE: ", "page.txt does not end in")
    page = tmp_path / "page.html"
    refused(run("watch", page, "--every", 0), "--every")
    refused(run("watch", page, "--every", 1e300), "--every must be at most 86400")


def test_reservations_are_a_calendar(there: RecordedCluster, tmp_path: Path) -> None:
    pytest.importorskip("icalendar")
    path = tmp_path / "cluster.ics"
    assert run("cluster", "bookings", "--output", path).exit_code == 1
    assert "VEVENT" not in path.read_text()
    there.reserve("run1", ["n1", "n2"], NOW, NOW + 600, "anna")
    run("cluster", "bookings", "--output", path)
    table = sk.read_ics(path, start="2027-01-15", end="2027-01-16", zone="UTC")
    assert table["node"].tolist() == ["n[1-2]"]
    assert table["reason"].tolist() == ["anna: run1"]
    run("cluster", "bookings", "--output", path.with_suffix(".csv"))
    assert "2027-01-15T09:00:00+01:00" in path.with_suffix(".csv").read_text()
