"""The community that runs for real: nodes are killed, no job is lost or run twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "community.py"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="SIGKILL is of other systems"
)


@pytest.mark.parametrize("more", [[], ["--no-restart"]], ids=["restart", "gone"])
def test_a_third_of_the_nodes_is_killed(more: list[str]) -> None:
    command = [sys.executable, str(EXAMPLE), "--jobs=24", "--length=1.5", *more]
    done = subprocess.run(command, capture_output=True, timeout=300, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["jobs"] == 24
    assert report["started_twice"] == report["done_twice"] == []
    assert report["done"] + len(report["not_done"]) == 24
    reasons = {state.partition(" on")[0] for state in report["not_done"].values()}
    if more:  # on the journals of nodes that are gone, or on the way there
        assert reasons <= {"submitted", "came", "giving", "started"}
        assert report["done"] >= 8
    else:
        assert reasons <= {"interrupted"}
        assert report["done"] >= 16
