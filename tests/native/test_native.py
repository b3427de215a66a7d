"""The headers alone: no Python, every instruction set gives the same bits."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-pthread"]


def build(target: Path, *options: str) -> Path:
    source = ROOT / "tests" / "native" / "digest.cpp"
    command = [COMPILER, *FLAGS, *options, "-I", ROOT / "src/_native", source]
    subprocess.run([*command, "-o", target], check=True)
    return target


def runs_here(level: str) -> bool:
    """Whether this machine has the instructions of an x86-64 level."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0]
    return {"x86-64": "sse2", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}[
        level
    ] in flags.split()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="clones are for x86-64")
@pytest.mark.skipif(
    "SLOTKERN_SANITIZED" in os.environ, reason="the program is not built by this build"
)
def test_every_instruction_set_gives_the_same_bits(tmp_path: Path) -> None:
    outputs = {}
    for level in filter(runs_here, ("x86-64", "x86-64-v3", "x86-64-v4")):
        program = build(tmp_path / level, "-O3", f"-march={level}")
        outputs[level] = subprocess.check_output([program], text=True)
    clones = build(tmp_path / "clones", "-O3", "-DSLOTKERN_MULTIVERSION=1")
    outputs["clones"] = subprocess.check_output([clones], text=True)
    assert outputs["x86-64"].count("\n") == 10
    assert set(outputs.values()) == {outputs["x86-64"]}, outputs
    assert len(set(outputs["x86-64"].splitlines())) == 10  # every search differs


def test_headers_do_not_know_python() -> None:
    for header in (ROOT / "src/_native/slotkern").glob("*.hpp"):
        assert "Python.h" not in header.read_text(), header
