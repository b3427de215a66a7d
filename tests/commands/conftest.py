"""Fixtures: a random environment and a file of its slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import slotkern as sk


@pytest.fixture(scope="module")
def environment() -> Any:
    return sk.generate_environment("square", nodes=60, seed=3)


@pytest.fixture(scope="module")
def slots_file(environment: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slots") / "slots.npz"
    sk.write_slots(path, environment.slots)
    return path
