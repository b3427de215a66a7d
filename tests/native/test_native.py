"""Tests of the headers without Python: units, and equal digests on all targets."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from programs import program

ROOT = Path(__file__).parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
UNITS = sorted(
    path.stem for path in (ROOT / "tests" / "native" / "units").glob("*.cpp")
)
# Units that also run with the default options of the search structures.
BOTH = ("adaptive_cost_search", "cost_ties", "pool")


@pytest.fixture(scope="module")
def here() -> str:
    """Return the digests of a build for the baseline instruction set."""
    return subprocess.check_output([program("digest")], text=True)


def test_digests_are_distinct(here: str) -> None:
    lines = here.splitlines()
    assert len(lines) >= 28  # the number of criteria, values and methods
    # The default method of choose runs the search first, which may solve every case.
    digests = [line.split()[-1] for line in lines if not line.startswith("choose 0 ")]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4", "clones"])
def test_digests_are_equal_for_all_instruction_sets(level: str, here: str) -> None:
    there = subprocess.check_output([program(f"digest-{level}")], text=True)
    assert there == here


# Other compilers and platforms, and the command that runs their programs here.
ELSEWHERE = {
    "clang": [],
    "clang-clones": [],
    "clang-19": [],
    "windows": ["wine"],
    "aarch64": ["qemu-aarch64"],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_digests_are_equal_for_other_compilers_and_platforms(
    name: str, here: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "WINEPREFIX": str(tmp_path), "WINEDEBUG": "-all"}
    there = subprocess.run(
        [*ELSEWHERE[name], program(f"digest-{name}")],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env=environment,
    ).stdout
    assert there == here


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((layer, []) for layer in UNITS),
        *((layer, ["defaults"]) for layer in BOTH),
        ("threads-thread", []),  # under ThreadSanitizer
        ("ranked-undefined", []),  # under UndefinedBehaviorSanitizer
    ],
)
def test_native_units_pass(name: str, arguments: list[str]) -> None:
    command = [program(f"units-{name}"), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) > 0


def test_headers_do_not_include_python() -> None:
    for header in (ROOT / "src/_native/slotkern").rglob("*.hpp"):
        assert "Python.h" not in header.read_text(), header
