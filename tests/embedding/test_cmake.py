"""CMake projects outside slotkern find the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from programs import program

import slotkern as sk

EXAMPLES = Path(__file__).parents[2] / "examples" / "embedding"
BESIDE = Path(sys.executable).with_name("cmake")
CMAKE = str(BESIDE) if BESIDE.exists() else shutil.which("cmake")
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(placing C CXX)
find_package(slotkern {version} CONFIG REQUIRED)
add_executable(schedule "{examples}/schedule.cpp")
target_link_libraries(schedule PRIVATE slotkern::slotkern)
add_executable(schedule_c "{examples}/schedule.c")
target_link_libraries(schedule_c PRIVATE slotkern::c)
"""

pytestmark = [
    pytest.mark.skipif(CMAKE is None, reason="needs cmake"),
    pytest.mark.skipif(
        shutil.which(os.environ.get("CXX", "g++")) is None,
        reason="needs a C++ compiler",
    ),
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
    pytest.mark.skipif(
        "SLOTKERN_SANITIZED" in os.environ, reason="the programs are not of this build"
    ),
]


def configure(folder: Path, version: str) -> subprocess.CompletedProcess[str]:
    text = PROJECT.format(version=version, examples=EXAMPLES.as_posix())
    (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
    command = [str(CMAKE), "-G", "Unix Makefiles", "-S", ".", "-B", "build"]
    command.append(f"-Dslotkern_ROOT={sk.get_include()}")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_programs_built_against_the_package_run() -> None:
    """The build of the native test programs uses the same package."""
    for name in ("example-schedule", "example-schedule-c"):
        lines = subprocess.check_output([program(name)], text=True)
        assert lines.startswith("job 0 starts ")


def test_a_compatible_version_is_found(tmp_path: Path) -> None:
    done = configure(tmp_path, ".".join(sk.__version__.split(".")[:2]))
    assert done.returncode == 0, done.stderr


def test_another_version_is_not_found(tmp_path: Path) -> None:
    done = configure(tmp_path, "99.0")
    assert done.returncode != 0
    assert "slotkern" in done.stderr
    assert sk.__version__ in done.stderr
