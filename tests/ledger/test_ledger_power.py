"""Simulated losses of power leave a sound ledger with all calls that had returned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.ledger.power_loss import power_losses

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")


@pytest.mark.parametrize("processes", [2, 3], ids=["nodes", "shares"])
def test_a_loss_of_power_loses_no_call(tmp_path: Path, processes: int) -> None:
    counts = power_losses(tmp_path, 40, processes)
    assert counts["events"] > 500
    assert counts["violations"] == 0, counts


@pytest.mark.parametrize("sabotage", ["flush", "order"])
def test_missing_flushes_are_found(tmp_path: Path, sabotage: str) -> None:
    assert power_losses(tmp_path, 40, 2, sabotage)["violations"] > 4
