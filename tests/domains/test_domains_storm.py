"""Metaschedulers that are killed at random leave no part without its others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.domains.storm import storm


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no flock")
def test_a_storm_of_killed_metaschedulers(tmp_path: Path) -> None:
    counts = storm(tmp_path, 20)
    assert counts["across"] > 0
