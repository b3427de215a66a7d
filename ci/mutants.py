"""Mutation test of the kernels: change one place at a time, run the tests.

``python ci/mutants.py --count 100 --seed 1`` weaves 125 mutants into one copy of the
headers and tests the first 100 that compile. A mutant is an operator, a constant, a
condition or a statement that changes if the environment has ``MUTANT=k``
(ci/mutate.hpp). So each program (unit tests, fuzz targets, digest) is compiled once,
and runs once for each mutant that it executes. ``--python`` also builds the package
from this copy, and runs, for each mutant that survives, those Python tests of its layer
that execute it. Prints the surviving mutants. Mutants known to be equivalent are listed
in docs/develop/mutants.md.
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
from threading import Lock
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "src" / "_native"
NATIVE = ROOT / "tests" / "native"
WEAVE = ROOT / "ci" / "mutate.hpp"
COMPILER = os.environ.get("CXX") or shutil.which("clang++") or "c++"
FLAGS = ["-std=c++20", "-O0", "-w", "-ffp-contract=off", "-pthread"]
FLAGS += ["-include", str(WEAVE)]
if "clang" in COMPILER:
    FLAGS += ["-Wno-c++11-narrowing", "-Wno-invalid-constexpr", "-ferror-limit=0"]

# Lines without mutants: they cannot change an answer (polling for signals, reserving
# memory), or they are not expressions.
UNCHANGED = re.compile(
    r"poll\(|enable_interrupts|reserve\(|static_assert|#|SLOTKERN_\w*CLONES|kMany|template|"
    r"constexpr|case |operator|noexcept"
)
# The operator is repeated on both sides of the inserted word, so that precedence does
# not change: a < b becomes a < mutate::Less<7>{} < b.
WORDS = {
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
    "==": "Equal",
    "!=": "Unequal",
    "+": "Plus",
    "-": "Minus",
    "*": "Times",
    "/": "Over",
    "+=": "Add",
    "-=": "Subtract",
}
OPERATOR = re.compile(r"(?<=[\w)\]] )([<>=!+\-*/]=?|&&|\|\|)(?= [\w(!\-*:&\[])")
STATEMENT = re.compile(
    r"^\s*(?!return|using|const|auto|break|continue|goto|if|for|while|else|do|struct|"
    r"class|public|private|friend)[\w(*][^{]*[=(+\-]"
)
DECLARATION = re.compile(r"\s*[\w:<>,*& ]+[>*& ] ?\w+(\{.*|\(.*| =.*|,.*|\[.*)?;")

# The Python tests of each layer.
LAYERS = {
    "base": ["tests/slots", "tests/window", "tests/choice"],
    "slots": ["tests/slots", "tests/window"],
    "window": ["tests/window"],
    "choice": ["tests/choice", "tests/value"],
    "value": ["tests/value"],
    "pool": ["tests/pool"],
    "batch": ["tests/batch"],
    "replay": ["tests/replay", "tests/traces"],
    "community": ["tests/community"],
}


class Mutant(NamedTuple):
    """A mutant: texts to insert into a line of a header, and a description."""

    header: str
    line: int
    texts: tuple[tuple[int, int, str], ...]  # begin, end, new text; # is its number
    what: str

    def __str__(self) -> str:
        code = (HEADERS / self.header).read_text().splitlines()[self.line - 1].strip()
        return f"{self.header}:{self.line}: {self.what}\n    {code}"


def closing(text: str, at: int, step: int, ends: tuple[str, ...]) -> int:
    """Return the end of the operand that begins at `at`, forwards or backwards."""
    depth = 0
    while True:
        sign = text[at] if step > 0 else text[at - 1]
        depth += {"(": step, "[": step, "{": step}.get(sign, 0)
        depth -= {")": step, "]": step, "}": step}.get(sign, 0)
        rest = text[at:] if step > 0 else text[:at]
        over = rest.startswith(ends) if step > 0 else rest.endswith(ends)
        if depth < 0 or (depth == 0 and over):
            return at
        at += step


def mutants_of(header: Path) -> Iterator[Mutant]:
    """Yield every mutant of this header."""
    name = header.relative_to(HEADERS).as_posix()
    text = re.sub(r"//.*|\"[^\"\n]*\"", lambda m: " " * len(m[0]), header.read_text())
    begin, before = 0, ";"  # offset of the line; last character of the code above it
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        first, last = begin, begin + len(line)
        begin = last
        above, before = before, (line.strip() or before)[-1]
        if not line.strip() or UNCHANGED.search(line):
            continue

        def one(at: int, to: int, new: str, what: str, line: int = number) -> Mutant:
            return Mutant(name, line, ((at, to, new),), what)

        for found in OPERATOR.finditer(text, first, last):
            at, sign = found.start(), found[1]
            if word := WORDS.get(sign):
                yield one(at, at, f"{sign} mutate::{word}<#>{{}} ", f"another {sign}")
            elif sign in ("&&", "||"):
                ends = ("&& ", "|| ", "? ", ": ", ", ", " = ", ";", "return ")
                left = closing(text, at - 1, -1, ends)
                right = closing(text, at + 3, 1, tuple(f" {e}" for e in ends) + ends)
                kind = "And" if sign == "&&" else "Or"
                texts = (
                    (left, left, f"mutate::{kind}<#>("),
                    (at, at + 2, ", [&] { return static_cast<bool>("),
                    (right, right, "); })"),
                )
                yield Mutant(name, number, texts, f"another {sign}")
        for found in re.compile(r"std::(min|max)\(").finditer(text, first, last):
            least = {"min": "least", "max": "most"}[found[1]]
            yield one(found.start(), found.end(), f"mutate::{least}<#>(", "the other")
        for found in re.compile(r"(?<![\w.<])(\d+)(?![\w.>'])").finditer(
            text, first, last
        ):
            sign = "-" if found[1] == "1" else "+"
            new = f"({found[1]} {sign} mutate::on(#))"
            yield one(*found.span(), new, f"another {found[1]}")
        for found in re.compile(r"\b(true|false)\b").finditer(text, first, last):
            yield one(*found.span(), f"({found[1]} != mutate::on(#))", "negated")
        for found in re.compile(r"\bif \(").finditer(text, first, last):
            end = closing(text, found.end(), 1, ())
            for word in ("yes", "no"):
                pair = (
                    (found.end(), found.end(), f"mutate::{word}<#>("),
                    (end, end, ")"),
                )
                yield Mutant(name, number, pair, f"always {word}")
        if (
            above in ";{})"
            and STATEMENT.match(line)
            and not DECLARATION.match(line)
            and text[first : text.find(";", first)].count("{") == 0
        ):
            at = first + len(line) - len(line.lstrip())
            yield one(at, at, "if (mutate::on(#)) {} else ", "removed")


class Program(NamedTuple):
    """A native test program: its sources, arguments, and True to compare its output."""

    name: str
    sources: list[Path]
    arguments: list[str]
    output: bool = False


def programs(cases: int) -> list[Program]:
    """Return all native programs."""
    driver = NATIVE / "fuzz" / "driver.cpp"
    found = [
        Program(f"unit-{path.stem}", [path], [])
        for path in sorted((NATIVE / "units").glob("*.cpp"))
    ]
    found += [
        Program(f"fuzz-{path.stem}", [path, driver], ["1", str(cases)])
        for path in sorted((NATIVE / "fuzz").glob("*.cpp"))
        if path != driver
    ]
    return [*found, Program("digest", [NATIVE / "digest.cpp"], [], output=True)]


class Woven:
    """A copy of the headers with mutants woven in, and the programs built from it."""

    def __init__(self, folder: Path, mutants: list[Mutant]) -> None:
        self.folder, self.mutants = folder, dict(enumerate(mutants, 1))
        self.lock, self.dropped = Lock(), set[tuple[str, int]]()
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("src", "cmake"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        self.headers = folder / "src" / "_native"
        self.weave({mutant.header for mutant in mutants})

    def weave(self, headers: set[str]) -> None:
        for header in headers:
            text = (HEADERS / header).read_text()
            texts = [
                (at, to, -at if len(m.texts) > 1 else k, new.replace("#", str(k)))
                for k, m in self.mutants.items()
                if m.header == header
                for at, to, new in m.texts
            ]
            for at, to, _, new in sorted(texts, reverse=True):
                text = text[:at] + new + text[to:]
            (self.folder / "woven").write_text(text)
            (self.folder / "woven").replace(self.headers / header)  # atomic for readers

    def build(self, command: list[str]) -> bool:
        """Compile, dropping mutants that do not compile; False: another error."""
        while True:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return True
            places = re.findall(
                r"_native/(slotkern/\S+?\.hpp):(\d+):", done.stdout + done.stderr
            )
            wrong = {(header, int(line)) for header, line in places}
            with self.lock:
                every = self.mutants.items()
                bad = [k for k, m in every if (m.header, m.line) in wrong]
                self.weave({self.mutants.pop(k).header for k in bad})
            if not bad and not wrong & self.dropped:
                print(done.stdout[-2000:], done.stderr[-4000:], sep="\n")
                return False
            self.dropped |= wrong

    def compile(self, program: Program) -> Program | None:
        places = ["-I", self.headers, "-I", NATIVE, "-I", NATIVE / "fuzz"]
        target = ["-o", self.folder / program.name]
        command = [COMPILER, *FLAGS, *places, *program.sources, *target]
        return program if self.build([str(part) for part in command]) else None

    def build_package(self) -> bool:
        """Build the package with these headers, importable from `folder`/src."""
        tools = Path(sys.executable).parent
        cmake, build = [str(tools / "cmake")], str(self.folder / "build")
        options = [
            "-DSKBUILD_PROJECT_NAME=slotkern",
            "-DSKBUILD_PROJECT_VERSION=0",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}",
            f"-DCMAKE_CXX_FLAGS={' '.join(FLAGS)} -O1",  # -O0 makes the tests too slow
            f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
            "-DCMAKE_BUILD_TYPE=None",
            "-DSLOTKERN_MULTIVERSION=OFF",
        ]
        where = ["-S", str(self.folder), "-B", build, "-G", "Ninja"]
        done = self.build([*cmake, *where, *options])
        done = done and self.build([*cmake, "--build", build])
        for module in (self.folder / "build").glob("*.so"):
            shutil.copy2(module, self.folder / "src" / "slotkern")
        return done

    def pytest(self, files: list[str]) -> list[str]:
        """Return the command that runs these Python tests with these headers."""
        options = ["-q", "-x", "-p", "no:cacheprovider", *files]
        start = (  # the copy precedes any installed package on the path
            "import sys, pytest; sys.meta_path[:] = [f for f in sys.meta_path"
            " if 'editable' not in type(f).__module__];"
            f" sys.path.insert(0, {str(self.folder / 'src')!r});"
            f" sys.exit(pytest.main({options!r}))"
        )
        return [sys.executable, "-c", start]


class Run(NamedTuple):
    """The result of a program: True if it failed or timed out, its output and time."""

    failed: bool
    output: str
    seconds: float
    reached: set[int]


def run(command: list[str], k: int, seconds: float, reached: Path) -> Run:
    """Run the command with mutant `k`; 0 applies none and records the reached ones."""
    # Hypothesis does not shrink a failing example: that it fails is enough.
    chosen = {"MUTANT": str(k), "HYPOTHESIS_PROFILE": "unshrunk"}
    if k == 0:
        reached.write_text("")
        chosen["REACHED"] = str(reached)
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            cwd=ROOT,
            env={**os.environ, **chosen},
        )
    except subprocess.TimeoutExpired:
        return Run(True, "", seconds, set())
    places = {int(line) for line in reached.read_text().split()} if k == 0 else set()
    took = time.monotonic() - begin
    return Run(done.returncode != 0, done.stdout, took, places)


class MutantTester:
    """Runs tests on mutants; collects the killed mutants and the executed ones."""

    def __init__(self, woven: Woven, mutants: dict[int, Mutant], jobs: int) -> None:
        self.woven, self.mutants, self.jobs = woven, mutants, jobs
        self.killed: dict[int, str] = {}
        self.seen: set[int] = set()

    def survivors(self) -> list[int]:
        return [k for k in self.mutants if k not in self.killed]

    def run_unchanged(self, name: str, command: list[str]) -> Run:
        """Run the command without a mutant; it must succeed."""
        ran = run(command, 0, 3600, self.woven.folder / "reached")
        if ran.failed:
            raise SystemExit(f"{name} fails without a mutant\n{ran.output[-3000:]}")
        self.seen |= ran.reached
        return ran

    def run_mutant(self, k: int, command: list[str], seconds: float) -> Run:
        return run(command, k, 10 + 8 * seconds, self.woven.folder / "reached")

    def run_native_programs(self, programs: list[Program]) -> None:
        """Run the native programs, the fastest first."""
        plain = {
            program.name: self.run_unchanged(program.name, self.command(program))
            for program in programs
        }
        for program in sorted(programs, key=lambda p: plain[p.name].seconds):
            self.run_program(program, plain[program.name])

    def command(self, program: Program) -> list[str]:
        return [str(self.woven.folder / program.name), *program.arguments]

    def run_program(self, program: Program, plain: Run) -> None:
        command = self.command(program)

        def test_mutant(k: int) -> None:
            ran = self.run_mutant(k, command, plain.seconds)
            if ran.failed or (program.output and ran.output != plain.output):
                self.killed[k] = program.name

        reached = [k for k in self.survivors() if k in plain.reached]
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(test_mutant, reached))
        message = f"{len(reached)} reached, {len(self.killed)} killed"
        print(f"{program.name}: {message}", flush=True)

    def run_python_tests(self) -> None:
        """Run, for each mutant, the tests of its layer that reach it, fastest first."""
        layers = {k: self.mutants[k].header.split("/")[1] for k in self.survivors()}
        plain: dict[str, Run] = {}
        for file in sorted({f for layer in layers.values() for f in files_of(layer)}):
            plain[file] = self.run_unchanged(file, self.woven.pytest([file]))
            print(f"{file}: {plain[file].seconds:.0f} s", flush=True)

        def test_mutant(k: int) -> None:
            files = [file for file in files_of(layers[k]) if k in plain[file].reached]
            files.sort(key=lambda file: plain[file].seconds)
            seconds = sum(plain[file].seconds for file in files)
            if files and self.run_mutant(k, self.woven.pytest(files), seconds).failed:
                self.killed[k] = "python"
            done = "killed" if k in self.killed else "survives"
            print(f"python: {done} {self.mutants[k]}", flush=True)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(test_mutant, layers))


def files_of(layer: str) -> list[str]:
    """Return the Python test files of this layer."""
    folders = [ROOT / folder for folder in LAYERS[layer]]
    paths = sorted(path for folder in folders for path in folder.glob("test_*.py"))
    return [path.relative_to(ROOT).as_posix() for path in paths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--cases", type=int, default=4000, help="runs of each fuzz target"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        help="only headers whose path contains one of these",
    )
    parser.add_argument(
        "--python", action="store_true", help="run the Python tests too"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    options = parser.parse_args()
    every = [
        mutant
        for header in sorted(HEADERS.rglob("*.hpp"))
        if any(part in header.relative_to(HEADERS).as_posix() for part in options.only)
        for mutant in mutants_of(header)
    ]
    random.Random(options.seed).shuffle(every)
    lines = {(m.header, m.line): m for m in reversed(every)}  # one mutant a line
    chosen = [m for m in every if lines[m.header, m.line] is m]
    woven = Woven(options.folder.resolve(), chosen[: options.count * 5 // 4])
    with ThreadPoolExecutor(options.jobs) as pool:
        built = list(pool.map(woven.compile, programs(options.cases)))
    if options.python and not woven.build_package():
        raise SystemExit("the Python package cannot be built with the mutants")
    mutants = dict(list(woven.mutants.items())[: options.count])
    print(f"{len(every)} places, {len(mutants)} mutants", flush=True)
    tester = MutantTester(woven, mutants, options.jobs)
    tester.run_native_programs([program for program in built if program])
    if options.python:
        tester.run_python_tests()
    for k in tester.survivors():
        message = "survives" if k in tester.seen else "survives, not reached"
        print(f"{message}: {mutants[k]}")
    counts = dict(Counter(tester.killed.values()))
    print(f"{len(mutants)} mutants; killed by {counts}")


if __name__ == "__main__":
    main()
