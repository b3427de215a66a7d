"""Change the kernels one place at a time, and see which tests notice.

``python ci/mutants.py --count 100 --seed 1`` weaves so many changes into one copy of
the headers: an operator, a constant, a condition or a statement that changes when the
environment says ``MUTANT=k`` (ci/mutate.hpp). So each program is compiled once (the
unit tests, the fuzz targets, the digest) and run for each mutant that it reaches.
``--python`` builds the doors with the same copy, and runs the Python tests of its room
for each mutant that is left. Prints those that nothing noticed. What is known to change
no answer, with the reason: docs/develop/mutants.md.
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

# What a line says that decides about no answer (how often signals are looked for,
# memory kept for later), or what is no expression.
IDLE = re.compile(
    r"poll\(|expect_long|reserve\(|static_assert|#|SLOTKERN_CLONES|kMany|template|"
    r"constexpr|case |operator|noexcept"
)
# The same operator stands on both sides of the word that changes it, so that nothing
# else is read in another way: a < b becomes a < mutate::Less<7>{} < b.
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
    "community": ["tests/community"],
}


class Mutant(NamedTuple):
    """Texts to be put in at some places of a header, and what this does."""

    header: str
    line: int
    texts: tuple[tuple[int, int, str], ...]  # from, to, instead; # is the number
    what: str

    def __str__(self) -> str:
        code = (HEADERS / self.header).read_text().splitlines()[self.line - 1].strip()
        return f"{self.header}:{self.line}: {self.what}\n    {code}"


def closing(text: str, at: int, step: int, ends: tuple[str, ...]) -> int:
    """Where the operand ends that begins here, going forwards or back."""
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
    """Every change of this header."""
    name = header.relative_to(HEADERS).as_posix()
    text = re.sub(r"//.*|\"[^\"\n]*\"", lambda m: " " * len(m[0]), header.read_text())
    begin, before = 0, ";"  # of the line; how the code ended above it
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        first, last = begin, begin + len(line)
        begin = last
        above, before = before, (line.strip() or before)[-1]
        if not line.strip() or IDLE.search(line):
            continue

        def one(at: int, to: int, new: str, what: str, line: int = number) -> Mutant:
            return Mutant(name, line, ((at, to, new),), what)

        for found in OPERATOR.finditer(text, first, last):
            at, sign = found.start(), found[1]
            if word := WORDS.get(sign):
                yield one(at, at, f"{sign} mutate::{word}<#>{{}} ", f"another {sign}")
            elif sign in ("&&", "||"):
                ends = ("&& ", "|| ", "? ", ": ", ", ", "= ", ";", "return ")
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
            yield one(*found.span(), f"({found[1]} != mutate::on(#))", "the contrary")
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
            yield one(at, at, "if (mutate::on(#)) {} else ", "left out")


class Program(NamedTuple):
    """What fails when it notices: sources, arguments, and whether its output counts."""

    name: str
    sources: list[Path]
    arguments: list[str]
    output: bool = False


def programs(cases: int) -> list[Program]:
    """All native programs, the quick ones first."""
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
    """A copy of the headers with mutants in it, and what is built of it."""

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
            (self.folder / "woven").replace(self.headers / header)  # others read it

    def build(self, command: list[str]) -> bool:
        """Compile, without the mutants that are no C++; False where this cannot be."""
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

    def doors(self) -> bool:
        """The package with these headers, importable from `folder`/src."""
        tools = Path(sys.executable).parent
        cmake, build = [str(tools / "cmake")], str(self.folder / "build")
        options = [
            "-DSKBUILD_PROJECT_NAME=slotkern",
            "-DSKBUILD_PROJECT_VERSION=0",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}",
            f"-DCMAKE_CXX_FLAGS={' '.join(FLAGS)}",
            f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
            "-DCMAKE_BUILD_TYPE=None",
            "-DSLOTKERN_MULTIVERSION=OFF",
        ]
        where = ["-S", str(self.folder), "-B", build, "-G", "Ninja"]
        done = self.build([*cmake, *where, *options])
        done = done and self.build([*cmake, "--build", build])
        for door in (self.folder / "build").glob("*.so"):
            shutil.copy2(door, self.folder / "src" / "slotkern")
        return done

    def tests(self, k: int) -> list[str]:
        """The call of the Python tests that know this mutant's room."""
        start = (  # the copy comes first, whatever else is installed
            "import sys, pytest; sys.meta_path[:] = [f for f in sys.meta_path"
            " if 'editable' not in type(f).__module__];"
            f" sys.path.insert(0, {str(self.folder / 'src')!r});"
            f" tests = {ROOMS[self.mutants[k].header.split('/')[1]]!r};"
            " sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', *tests]))"
        )
        return [sys.executable, "-c", start]


def run(command: list[str], k: int | None, seconds: float) -> tuple[int, str, set[int]]:
    """Exit code (1 after so many seconds), output, and the mutants that it reached."""
    chosen = {"MUTANT": "0" if k is None else str(k)}
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
        return 1, "", set()
    reached = re.findall(r"^reached (\d+)$", done.stderr, re.M)
    return done.returncode, done.stdout, {int(number) for number in reached}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=4000, help="of a fuzz target")
    parser.add_argument("--only", default="", help="headers whose path holds this")
    parser.add_argument("--python", action="store_true", help="Python tests too")
    parser.add_argument("--minutes", type=float, default=1e9, help="for these")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    options = parser.parse_args()
    every = [
        mutant
        for header in sorted(HEADERS.rglob("*.hpp"))
        if options.only in header.relative_to(HEADERS).as_posix()
        for mutant in mutants_of(header)
    ]
    random.Random(options.seed).shuffle(every)
    lines = {(m.header, m.line): m for m in reversed(every)}  # one mutant a line
    chosen = [m for m in every if lines[m.header, m.line] is m]
    woven = Woven(options.folder.resolve(), chosen[: options.count * 5 // 4])
    with ThreadPoolExecutor(options.jobs) as pool:
        built = list(pool.map(woven.compile, programs(options.cases)))
    kept = [program for program in built if program]
    mutants = dict(list(woven.mutants.items())[: options.count])
    print(f"{len(every)} places, {len(mutants)} mutants", flush=True)
    killed: dict[int, str] = {}
    seen: set[int] = set()
    for program in kept:
        command = [str(woven.folder / program.name), *program.arguments]
        begin = time.monotonic()
        code, told, reached = run(command, None, 3600)
        seconds = 10 + 8 * (time.monotonic() - begin)
        if code != 0:
            raise SystemExit(f"{program.name} fails as it is")
        seen |= reached

        def judge(
            k: int,
            command: list[str] = command,
            seconds: float = seconds,
            program: Program = program,
            told: str = told,
        ) -> None:
            code, output, _ = run(command, k, seconds)
            if code != 0 or (program.output and output != told):
                killed[k] = program.name

        left = [k for k in mutants if k in reached and k not in killed]
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(judge, left))
        print(f"{program.name}: {len(left)} reached, {len(killed)} killed", flush=True)
    left = [k for k in mutants if k not in killed]
    if options.python and left and woven.doors():
        until, sound = time.monotonic() + 60 * options.minutes, set[str]()
        for k in [k for k in left if k in woven.mutants]:
            if time.monotonic() > until:
                print(f"python: {k} is not tried", flush=True)
                continue
            room = mutants[k].header.split("/")[1]
            if room not in sound and run(woven.tests(k), None, 3600)[0] != 0:
                raise SystemExit(f"the Python tests of {room} fail as it is")
            sound.add(room)
            if run(woven.tests(k), k, 1800)[0] != 0:
                killed[k] = "python"
            done = "killed" if k in killed else "survives"
            print(f"python: {k} {done} {mutants[k]}", flush=True)
    for k, mutant in mutants.items():
        if k not in killed:
            print("survives" if k in seen else "survives, natively not reached", mutant)
    print(f"{len(mutants)} mutants; noticed by", dict(Counter(killed.values())))


if __name__ == "__main__":
    main()
