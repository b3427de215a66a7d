"""The headers alone: no Python, every instruction set gives the same bits."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
UNITS = sorted((ROOT / "tests" / "native" / "units").glob("*.cpp"))
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-pthread"]
# Small cases that are searched as large pools and wide windows are, or as they are.
LARGE = ["-DSLOTKERN_FEW_ROWS=0", "-DSLOTKERN_FEW_BLOCKS=0", "-DSLOTKERN_WIDE=3"]
SIZES = {"large": LARGE, "small": []}
SMALL = ("kinds", "known_costs", "pool")  # small pools take other ways here


def build(
    target: Path,
    *options: str,
    compiler: str | None = COMPILER,
    program: str = "digest",
) -> Path:
    source = ROOT / "tests" / "native" / f"{program}.cpp"
    include = ["-I", ROOT / "src/_native"]
    subprocess.run(
        [compiler, *FLAGS, *options, *include, source, "-o", target], check=True
    )
    return target


def runs_here(level: str) -> bool:
    """Whether this machine has the instructions of an x86-64 level."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0]
    return {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}[
        level
    ] in flags.split()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digests of this machine, without any of its own instructions."""
    program = build(tmp_path_factory.mktemp("digest") / "here", "-O1", *LARGE)
    return subprocess.check_output([program], text=True)


@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
def test_every_search_and_every_method_has_a_digest_of_its_own(here: str) -> None:
    digests = [line.split()[-1] for line in here.splitlines()]
    assert len(digests) >= 28  # as many as there are criteria, values and methods
    assert len(set(digests)) == len(digests)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="clones are for x86-64")
@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4", "clones"])
def test_every_instruction_set_gives_the_same_bits(
    level: str, here: str, tmp_path: Path
) -> None:
    if level == "clones":
        option = "-DSLOTKERN_MULTIVERSION=1"
    elif runs_here(level):
        option = f"-march={level}"
    else:
        pytest.skip(f"this machine has no {level}")
    program = build(tmp_path / level, "-O3", option, *LARGE)
    assert subprocess.check_output([program], text=True) == here


# What else builds the program, and what runs it here: a skip names what is missing.
ELSEWHERE = {
    "clang": (["clang++", "-O2"], []),
    "clang-clones": (["clang++", "-O2", "-DSLOTKERN_MULTIVERSION=1"], []),
    "clang-19": (["clang++-19", "-O2"], []),
    "windows": (["x86_64-w64-mingw32-g++-posix", "-O2", "-static"], ["wine"]),
    "aarch64": (["aarch64-linux-gnu-g++", "-O2", "-static"], ["qemu-aarch64"]),
}


@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_compilers_and_machines_give_the_same_bits(
    name: str, here: str, tmp_path: Path
) -> None:
    (compiler, *options), runner = ELSEWHERE[name]
    for tool in (compiler, *runner):
        if shutil.which(tool) is None:
            pytest.skip(f"no digest of {name}: {tool} is not installed")
    if "clones" in name and platform.machine() != "x86_64":
        pytest.skip("clones are for x86-64")
    program = build(tmp_path / "there.exe", *options, *LARGE, compiler=compiler)
    environment = {**os.environ, "WINEPREFIX": str(tmp_path), "WINEDEBUG": "-all"}
    there = subprocess.run(
        [*runner, program],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env=environment,
    ).stdout
    assert there == here


@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
@pytest.mark.parametrize(
    ("room", "size"),
    [
        *((path.stem, "large") for path in UNITS),
        *((room, "small") for room in SMALL),
    ],
)
def test_parts_of_kernels_are_what_they_say(
    room: str, size: str, tmp_path: Path
) -> None:
    program = build(tmp_path / room, "-O1", *SIZES[size], program=f"units/{room}")
    run = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[0]) > 0


@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
@pytest.mark.parametrize("sanitizer", ["thread", "undefined,float-cast-overflow"])
def test_units_under_sanitizers_that_the_suite_does_not_run_under(
    sanitizer: str, tmp_path: Path
) -> None:
    """Threads that share what is prepared, and numbers out of range."""
    options = ["-O1", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}\n")
    built = subprocess.run([COMPILER, *options, probe, "-o", tmp_path / "probe"])
    if built.returncode or subprocess.run([tmp_path / "probe"]).returncode:
        pytest.skip(f"{COMPILER} has no sanitizer of {sanitizer} that runs here")
    room = "threads" if sanitizer == "thread" else "ranked"
    program = build(tmp_path / room, *options, *LARGE, program=f"units/{room}")
    run = subprocess.run([program], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr


def test_a_new_limit_of_a_request_is_not_forgotten_by_the_hints(tmp_path: Path) -> None:
    headers = tmp_path / "slotkern"
    shutil.copytree(ROOT / "src/_native/slotkern", headers)
    source = tmp_path / "all.cpp"
    source.write_text('#include "slotkern/pool/hints.hpp"\n')
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
