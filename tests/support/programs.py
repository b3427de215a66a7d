"""Finds the programs that tests/native/CMakeLists.txt builds for the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def program(name: str) -> Path:
    """Return the path of a program.

    Skips the test if the program is not built on this machine, or if no programs
    were built and ``SLOTKERN_PROGRAMS`` does not name their folder.

    Raises
    ------
    FileNotFoundError
        If ``SLOTKERN_PROGRAMS`` names a folder without the list of programs.
    KeyError
        If the build has no program of this name.
    """
    if "SLOTKERN_SANITIZED" in os.environ:
        pytest.skip("programs are built without the sanitizers of this package")
    folder = Path(os.environ.get("SLOTKERN_PROGRAMS", ROOT / "build" / "programs"))
    listing = folder / "programs.txt"
    if "SLOTKERN_PROGRAMS" not in os.environ and not listing.exists():
        pytest.skip("no programs were built: make programs")
    lines = listing.read_text(encoding="utf-8").splitlines()
    status = dict(line.split(" ", 1) for line in lines)[name]
    if status != "built":
        pytest.skip(f"{name}: {status}")
    return folder.absolute() / name
