"""The example with real processes: nodes are killed, no job is lost or run twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "community.py"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no SIGKILL"
)


@pytest.mark.parametrize("more", [[], ["--no-restart"]], ids=["restart", "gone"])
def test_a_third_of_the_nodes_is_killed(more: list[str]) -> None:
    command = [sys.executable, str(EXAMPLE), "--jobs=24", "--length=1.5", *more]
    done = subprocess.run(command, capture_output=True, timeout=1500, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["jobs"] == 24
    assert report["started_twice"] == report["done_twice"] == []
    assert report["done"] + len(report["not_done"]) == 24
    reasons = {state.partition(" on")[0] for state in report["not_done"].values()}
    if more:  # in journals of dead nodes, or in transit to them
        assert reasons <= {"submitted", "came", "giving", "started"}
        assert report["done"] >= 8
    else:
        assert reasons <= {"interrupted"}
        assert report["done"] >= 16


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc")
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_no_node_outlives_its_parent_process(name: str) -> None:
    command = [sys.executable, str(EXAMPLE), "--nodes", "3", "--jobs", "40"]
    with subprocess.Popen(
        [*command, "--length", "3"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as play:
        listed = Path(f"/proc/{play.pid}/task/{play.pid}/children")
        deadline = time.monotonic() + 60
        while len(nodes := listed.read_text().split()) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)  # until the nodes have started
        play.send_signal(getattr(signal, name))
    while any(is_running(node) for node in nodes):
        assert time.monotonic() < deadline + 60
        time.sleep(0.1)


def is_running(process: str) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
