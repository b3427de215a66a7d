"""The headers alone: no Python, every instruction set gives the same bits."""

import os
import re
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
# Units that are also built without the code paths of large pools.
SMALL = ("adaptive_cost_search", "kinds", "pool")


@pytest.fixture(scope="module")
def here() -> str:
    """The digests of this machine, without any of its own instructions."""
    return subprocess.check_output([program("digest")], text=True)


def test_every_search_and_every_method_has_a_digest_of_its_own(here: str) -> None:
    lines = here.splitlines()
    assert len(lines) >= 28  # as many as there are criteria, values and methods
    # The default method of choose runs the search first, and may end there every time.
    digests = [line.split()[-1] for line in lines if not line.startswith("choose 0 ")]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4", "clones"])
def test_every_instruction_set_gives_the_same_bits(level: str, here: str) -> None:
    there = subprocess.check_output([program(f"digest-{level}")], text=True)
    assert there == here


# Other compilers and machines, and the command that runs their programs here.
ELSEWHERE = {
    "clang": [],
    "clang-clones": [],
    "clang-19": [],
    "windows": ["wine"],
    "aarch64": ["qemu-aarch64"],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_compilers_and_machines_give_the_same_bits(
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
    "name",
    [
        *(f"{layer}-large" for layer in UNITS),
        *(f"{layer}-small" for layer in SMALL),
        "threads-thread",  # under ThreadSanitizer
        "ranked-undefined",  # under UndefinedBehaviorSanitizer
    ],
)
def test_units_of_the_headers_pass(name: str) -> None:
    run = subprocess.run([program(f"units-{name}")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) > 0


def test_a_new_limit_of_a_request_is_not_forgotten_by_the_hints(tmp_path: Path) -> None:
    headers = tmp_path / "slotkern"
    shutil.copytree(ROOT / "src/_native/slotkern", headers)
    source = tmp_path / "all.cpp"
    source.write_text('#include "slotkern/pool/start_bounds.hpp"\n')
    command = [COMPILER, *FLAGS, "-fsyntax-only", "-I", tmp_path, source]
    subprocess.run(command, check=True)
    opening = "struct Query {\n"
    (header,) = (p for p in headers.rglob("*.hpp") if opening in p.read_text())
    header.write_text(
        header.read_text().replace(opening, f"{opening}  double longest_wait = 0;\n")
    )
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode != 0
    assert re.search(r"only \d+ names provided|\d+ elements", found.stderr)


def test_headers_do_not_know_python() -> None:
    for header in (ROOT / "src/_native/slotkern").rglob("*.hpp"):
        assert "Python.h" not in header.read_text(), header
