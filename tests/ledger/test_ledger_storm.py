"""Processes that are killed at random leave a sound ledger and keep their answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.ledger.storm import storm


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no flock")
@pytest.mark.parametrize("shares", [False, True], ids=["nodes", "shares"])
def test_a_storm_of_killed_processes(
    tmp_path: Path, where: Path | str, shares: bool
) -> None:
    counts = storm(tmp_path, 12, where=where, shares=shares)
    assert counts["version"] > 0
