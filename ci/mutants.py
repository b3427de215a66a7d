"""Change the kernels one place at a time, and see which tests notice.

``python ci/mutants.py --count 100 --seed 1`` copies the headers, changes one operator,
comparison, constant, condition or statement at a time, and runs what can tell: the unit
tests and fuzz targets that include the header, then (``--python``) the Python tests of
its room on doors that are built with it. Prints the mutants that nothing noticed. What
is known to change no answer, with the reason: docs/develop/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "src" / "_native"
NATIVE = ROOT / "tests" / "native"
COMPILER = os.environ.get("CXX") or shutil.which("clang++") or "c++"
FLAGS = ["-std=c++20", "-O0", "-w", "-ffp-contract=off", "-pthread"]

# What a line says that decides about no answer: how often signals are looked for,
# memory kept for later, what a compiler is told.
IDLE = re.compile(
    r"poll\(|expect_long|reserve\(|static_assert|#|SLOTKERN_CLONES|kMany|template"
)
SWAPS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " += ": " -= ",
    " -= ": " += ",
    "std::min(": "std::max(",
    "std::max(": "std::min(",
    "++": "--",
    "true": "false",
    "false": "true",
}
STATEMENT = re.compile(
    r"^\s*(?!return|using|const|auto|break|continue|case|goto)[\w(*]"
)

# Which Python tests know a room.
ROOMS = {
    "base": ["tests/slots", "tests/window", "tests/choice"],
    "slots": ["tests/slots", "tests/window"],
    "window": ["tests/window"],
    "choice": ["tests/choice", "tests/value"],
    "value": ["tests/value"],
    "pool": ["tests/pool"],
    "batch": ["tests/batch"],
    "replay": ["tests/replay", "tests/traces"],
}


class Mutant(NamedTuple):
    """One line of a header as it is, and as it would be."""

    header: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        before, after = self.before.strip(), self.after.strip()
        return f"{self.header}:{self.line}\n  - {before}\n  + {after}"


class Killer(NamedTuple):
    """A program that fails when it notices: its sources, and how it is called."""

    name: str
    sources: list[Path]
    arguments: list[str]


def killers() -> list[Killer]:
    """All native programs, the quick ones first."""
    units = [Killer("units", [NATIVE / "units.cpp"], [])]
    driver = NATIVE / "fuzz" / "driver.cpp"
    targets = sorted((NATIVE / "fuzz").glob("*.cpp"))
    return units + [
        Killer(target.stem, [target, driver], ["1", "6000"])
        for target in targets
        if target != driver
    ]


def mutants_of(header: Path) -> Iterator[Mutant]:
    """Every change of this header."""
    name = header.relative_to(HEADERS).as_posix()
    for number, line in enumerate(header.read_text().splitlines(), 1):
        code = line.split("//")[0]
        if not code.strip() or IDLE.search(code):
            continue
        for old, new in SWAPS.items():
            at = code.find(old)
            while at >= 0:
                yield Mutant(
                    name, number, line, code[:at] + new + code[at + len(old) :]
                )
                at = code.find(old, at + 1)
        for found in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", code):
            new = {"0": "1", "1": "0"}.get(found[1], str(int(found[1]) + 1))
            yield Mutant(
                name, number, line, code[: found.start()] + new + code[found.end() :]
            )
        if found := re.search(r"\bif \((.*)\) (?!constexpr)", code + " "):
            for constant in ("true", "false"):
                yield Mutant(
                    name,
                    number,
                    line,
                    f"{code[: found.start(1)]}{constant}{code[found.end(1) :]}",
                )
        if (
            STATEMENT.match(code)
            and code.rstrip().endswith(";")
            and re.search(r"[=(]|\+\+|--", code)
            and code.count("(") == code.count(")")
            and not re.match(r"\s*[\w:<>,*& ]+ \w+(\{.*\}|\(.*\)| =.*)?;", code)
        ):
            yield Mutant(name, number, line, re.sub(r"\S.*", ";", code))


def run(command: list[object], seconds: float, **more: object) -> int | None:
    """The exit code, or None after so many seconds."""
    try:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(part) for part in command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            **more,
        ).returncode
    except subprocess.TimeoutExpired:
        return None


class Trial:
    """A copy of the headers, and what has been seen of it."""

    def __init__(self, folder: Path, python: bool) -> None:
        self.folder = folder
        self.headers = folder / "src" / "_native"
        shutil.copytree(ROOT / "src", folder / "src", dirs_exist_ok=True)
        self.parsed: list[object] = []  # the standard library, read once for all
        standard = folder / "standard.hpp"
        names = {
            name
            for header in HEADERS.rglob("*.hpp")
            for name in re.findall(r"#include <([a-z_]+)>", header.read_text())
        }
        standard.write_text("".join(f"#include <{name}>\n" for name in sorted(names)))
        parsed = standard.with_suffix(".hpp.gch")
        if (
            run([COMPILER, *FLAGS, "-x", "c++-header", standard, "-o", parsed], 600)
            == 0
        ):
            self.parsed = ["-include", standard]
        self.killers = [killer for killer in killers() if self.build(killer) == 0]
        self.seconds: dict[str, float] = {}
        for killer in list(self.killers):
            begin = time.monotonic()
            if self.call(killer, 600) != 0:
                print(f"{killer.name} fails as it is: left out", flush=True)
                self.killers.remove(killer)
            self.seconds[killer.name] = 10 + 5 * (time.monotonic() - begin)
        self.includes = {k.name: self.included(k) for k in self.killers}
        self.doors = folder / "build" if python else None
        if self.doors:
            self.build_doors(configure=True)

    def program(self, killer: Killer) -> Path:
        return self.folder / killer.name

    def command(self, killer: Killer) -> list[object]:
        places = ["-I", self.headers, "-I", NATIVE]
        return [COMPILER, *FLAGS, *places, *killer.sources]

    def build(self, killer: Killer) -> int | None:
        command = [*self.command(killer), *self.parsed, "-o", self.program(killer)]
        return run(command, 600)

    def included(self, killer: Killer) -> str:
        command = [str(part) for part in [*self.command(killer), "-MM"]]
        return subprocess.check_output(command, text=True)

    def call(self, killer: Killer, seconds: float) -> int | None:
        return run([self.program(killer), *killer.arguments], seconds)

    def build_doors(self, configure: bool = False) -> int | None:
        assert self.doors is not None
        shutil.copy(ROOT / "CMakeLists.txt", self.folder)
        command = [Path(sys.executable).parent / "cmake"]
        if configure:
            names = ["-DSKBUILD_PROJECT_NAME=slotkern", "-DSKBUILD_PROJECT_VERSION=0"]
            where = ["-S", self.folder, "-B", self.doors, "-G", "Ninja"]
            tools = [
                f"-DPython_EXECUTABLE={sys.executable}",
                f"-DCMAKE_CXX_COMPILER={COMPILER}",
                "-DCMAKE_CXX_FLAGS=-O1 -w",
                f"-DCMAKE_MAKE_PROGRAM={Path(sys.executable).parent / 'ninja'}",
                "-DSLOTKERN_MULTIVERSION=OFF",
            ]
            if run([*command, *where, *names, *tools], 600) != 0:
                raise SystemExit("the doors cannot be configured")
        code = run([*command, "--build", self.doors], 1800)
        for door in self.doors.glob("*.so"):
            shutil.copy2(door, self.folder / "src" / "slotkern")
        return code

    def tests(self, room: str) -> int | None:
        # The copy comes first, whatever else is installed.
        start = (
            "import sys, pytest; sys.meta_path[:] = [f for f in sys.meta_path"
            " if 'editable' not in type(f).__module__];"
            f" sys.path.insert(0, {str(self.folder / 'src')!r});"
            f" tests = {ROOMS[room]!r};"
            " sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *tests]))"
        )
        return run([sys.executable, "-c", start], 900, cwd=ROOT)

    def judge(self, mutant: Mutant) -> str:
        """Who noticed: a killer's name, "compiler", "python", or "" if nobody did."""
        path = self.headers / mutant.header
        whole = path.read_text()
        lines = whole.splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.after + "\n"
        path.write_text("".join(lines))
        try:
            for killer in self.killers:
                if mutant.header not in self.includes[killer.name]:
                    continue
                if self.build(killer) != 0:
                    return "compiler"
                if self.call(killer, self.seconds[killer.name]) != 0:
                    return killer.name
            if self.doors:
                if self.build_doors() != 0:
                    return "compiler"
                if self.tests(mutant.header.split("/")[1]) != 0:
                    return "python"
            return ""
        finally:
            path.write_text(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="headers whose path holds this")
    parser.add_argument("--python", action="store_true", help="Python tests too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    options = parser.parse_args()
    every = [
        mutant
        for header in sorted(HEADERS.rglob("*.hpp"))
        if options.only in header.relative_to(HEADERS).as_posix()
        for mutant in mutants_of(header)
    ]
    chosen = iter(random.Random(options.seed).sample(every, len(every)))
    print(f"{len(every)} mutants of {HEADERS.relative_to(ROOT)}", flush=True)
    seen: Counter[str] = Counter()
    survivors = []

    def work(job: int) -> None:
        trial = Trial(options.folder / str(job), options.python)
        while sum(seen.values()) - seen["compiler"] < options.count:
            mutant = next(chosen, None)
            if mutant is None:
                return
            killer = trial.judge(mutant)
            seen[killer or "nobody"] += 1
            if not killer:
                survivors.append(mutant)
            place = f"{mutant.header}:{mutant.line}"
            said = f"killed by {killer}: {place}" if killer else f"survives: {mutant}"
            print(f"{seen.total()} {said}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(work, job) for job in range(options.jobs)]:
            job.result()
    count = sum(seen.values()) - seen["compiler"]
    print(f"{count} mutants, {len(survivors)} survive; noticed by", dict(seen))


if __name__ == "__main__":
    main()
