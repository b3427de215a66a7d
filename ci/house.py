"""The rooms of the house: who may use whom, who does, and the picture of it.

``python ci/house.py`` draws ``docs/develop/house.svg`` anew and fails where a rule is
broken; ``tests/house/test_rooms.py`` does both checks. What a room is for and how to
add to it is told in ``docs/develop/house.md``.

A use is an ``#include``, an import or a cimport, at the top of a module or in a
function. What only a type checker reads does not count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "develop" / "house.svg"


class Room(NamedTuple):
    """Where it lies, what it is for, and the modules or packages of a Python room."""

    wing: str
    says: str
    holds: tuple[str, ...] = ()


HEADERS, PYTHON = "src/_native/slotkern/", "src/slotkern/"

#: The one list of layers: a room uses itself and those above it.
ROOMS = {
    "base": Room(HEADERS, "codes, interrupts, rules of floating point"),
    "choice": Room(HEADERS, "knapsacks by themselves"),
    "slots": Room(HEADERS, "records, requests, prepared columns, the screen"),
    "window": Room(HEADERS, "sweeps, criteria, tie rule, alternatives"),
    "value": Room(HEADERS, "searches by sums of values"),
    "pool": Room(HEADERS, "slots that change: book, release, schedule, embed"),
    "batch": Room(HEADERS, "many jobs at once, and how they really run"),
    "replay": Room(HEADERS, "traces read, queues of jobs replayed"),
    "community": Room(HEADERS, "schedulers that ask each other, and their simulation"),
    "ground": Room(
        PYTHON,
        "checks of arguments, filters, extras, types, what things show",
        (
            "checks",
            "errors",
            "extras",
            "forks",
            "hostlists",
            "html_table",
            "limits",
            "notes",
            "shown",
            "shown_table",
            "typing",
            "where",
        ),
    ),
    "core": Room(
        PYTHON,
        "the doors of requests, slots, windows and searches",
        (
            "_base",
            "_core",
            "_find",
            "_kernels",
            "_moments",
            "_request",
            "_windows",
        ),
    ),
    "arrays": Room(PYTHON, "arrays of slots, checked", ("slots",)),
    "doors": Room(
        PYTHON,
        "the other doors",
        (
            "_alternatives",
            "_batch",
            "_bookings",
            "_changing",
            "_choice",
            "_community",
            "_pool",
            "_pool_state",
            "_replay",
            "_spans",
            "_trace",
            "_value",
            "embed",
        ),
    ),
    "files": Room(PYTHON, "files and tables in and out", ("files",)),
    "machine": Room(
        PYTHON,
        "named nodes, dates, busy time, owners; files of pools",
        ("machine", "pool_file"),
    ),
    "published": Room(PYTHON, "the papers' algorithms as printed", ("published",)),
    "searches": Room(
        PYTHON,
        "what users call, over the doors",
        (
            "alternatives",
            "budget",
            "choice",
            "criteria",
            "explanation",
            "fronts",
            "numba",
            "one_each",
            "search",
        ),
    ),
    "environment": Room(PYTHON, "random environments", ("environment",)),
    "batches": Room(PYTHON, "schedules of many jobs at once", ("batch",)),
    "traces": Room(
        PYTHON, "workload traces, and the free slots they leave", ("traces",)
    ),
    "face": Room(PYTHON, "the names of import slotkern", ("slotkern",)),
    "replays": Room(PYTHON, "traces replayed on a cluster", ("replays",)),
    "communities": Room(
        PYTHON, "communities of schedulers, simulated", ("communities",)
    ),
    "plotting": Room(PYTHON, "pictures", ("plotting",)),
    "viewer": Room(PYTHON, "schedules as pages of one file", ("viewer",)),
    "studies": Room(PYTHON, "experiments, reports, figures", ("studies",)),
    "commands": Room(PYTHON, "the command line", ("commands", "__main__")),
}

#: Uses against the rule, each with its reason. A new one is an error, and so is one of
#: these that is no longer there.
EXCEPTIONS = {
    (
        "_find",
        "explanation",
    ): "find_window(required=True) raises with what explain says",
    ("_find", "search"): "find_window sends there what is no built-in criterion",
    ("shown", "files.tables"): "to_pandas and to_arrow of all that has a table",
    ("shown", "plotting.each"): "the plot method of all that has a picture",
    ("_alternatives", "criteria"): "best and pareto by a criterion of values",
    ("_moments", "machine.durations"): "durations of a request in rarer words",
    ("_moments", "machine.moments"): "dates in rarer words, and the changes of a zone",
    ("_core", "machine.terms"): "requests with dates, made numbers by a clock",
    ("_pool", "machine.jobs"): "requests of a table of jobs",
    ("_pool", "machine.closures"): "disabled nodes, and the bookings they hit",
    ("_pool", "machine.ledger"): "owners, reservations, tables of bookings",
    ("_bookings", "machine.ledger"): "a schedule as a table with names and dates",
    ("_pool", "alternatives"): "SlotPool.find_alternatives",
    ("_pool", "pool_file"): "SlotPool.save and load",
}


class Use(NamedTuple):
    """A module or header that uses another, and whether only when it is called."""

    user: str
    used: str
    late: bool


def room_of(name: str) -> str | None:
    """Return the room of a header such as "window/find.hpp" or a module "files.csv"."""
    if "/" in name:
        room = name.split("/")[0]
        return room if room in ROOMS and ROOMS[room].wing == HEADERS else None
    top = name.split(".")[0]
    return next((room for room, its in ROOMS.items() if top in its.holds), None)


def uses(root: Path = ROOT) -> list[Use]:
    """Return all uses, sorted."""
    return sorted({*_includes(root), *_cython(root), *_python(root)})


def _includes(root: Path) -> Iterator[Use]:
    top = root / HEADERS
    for path in top.rglob("*.hpp"):
        name = path.relative_to(top).as_posix()
        text = path.read_text(encoding="utf-8")
        for used in re.findall(r'^#include "slotkern/([^"]*)"', text, re.M):
            yield Use(name, used, False)


def _cython(root: Path) -> Iterator[Use]:
    """What the doors use; a .pxd is its module's, a .pxi that of who includes it."""
    names = _names(root)
    native = root / "src" / "_native"
    for path in (*native.glob("*.pyx"), *(root / PYTHON).rglob("*.pxd")):
        text = path.read_text(encoding="utf-8")
        for part in re.findall(r'^include "([^"]*)"', text, re.M):
            text += (native / part).read_text(encoding="utf-8")
        for header in re.findall(r'cdef extern from "slotkern/([^"]*)"', text):
            yield Use(path.stem, header, False)
        pattern = r"^( *)from ([\w.]+) c?import (\([^)]*\)|.*)|^( *)c?import ([\w.]+)"
        for indent, base, listed, plain_indent, plain in re.findall(
            pattern, text, re.M
        ):
            late = bool(indent or plain_indent)
            for used in _targets(base or plain, re.findall(r"\w+", listed), names):
                if used != path.stem:
                    yield Use(path.stem, used, late)


def _python(root: Path) -> Iterator[Use]:
    names, top = _names(root), root / PYTHON
    for path in top.rglob("*.py"):
        name = _name(path.relative_to(top))
        package = ["slotkern", *path.relative_to(top).parent.parts]
        for node, late in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found = [u for a in node.names for u in _targets(a.name, [], names)]
            else:
                parts = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join([*parts, *([node.module] if node.module else [])])
                found = _targets(base, [alias.name for alias in node.names], names)
            yield from (Use(name, used, late) for used in found if used != name)


def _imports(
    tree: ast.AST, late: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from _imports(ast.Module([other], []), late)
        else:
            inner = isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            yield from _imports(node, late or inner)


def _name(path: Path) -> str:
    parts = [*path.parent.parts, *([path.stem] if path.stem != "__init__" else [])]
    return ".".join(parts) or "slotkern"


def _names(root: Path) -> set[str]:
    top = root / PYTHON
    found = {_name(p.relative_to(top)) for p in top.rglob("*.py*")}
    return found | {path.stem for path in (root / "src" / "_native").glob("*.pyx")}


def _targets(base: str, listed: list[str], names: set[str]) -> list[str]:
    """The modules that ``from base import listed`` uses, as far as they are ours."""
    if base != "slotkern" and not base.startswith("slotkern."):
        return []
    base = base.removeprefix("slotkern").removeprefix(".")
    inner = [f"{base}.{name}" if base else name for name in listed]
    modules = [name for name in inner if name in names]
    if len(modules) < len(listed) or not listed:
        modules.append(base or "slotkern")
    return modules


def against_the_rule(use: Use) -> bool:
    """Whether a use goes to a later room."""
    rooms = list(ROOMS)
    user, used = room_of(use.user), room_of(use.used)
    if user is None or used is None:
        return True
    return rooms.index(used) > rooms.index(user)


def faults(found: list[Use]) -> list[str]:
    """Return what is wrong with the uses, in words."""
    everyone = {name for use in found for name in use[:2]}
    wrong = [f"{name} has no room" for name in sorted(everyone) if not room_of(name)]
    bad = {use[:2] for use in found if against_the_rule(use)}
    wrong += [
        f"{user} ({room_of(user)}) must not use {used} ({room_of(used)})"
        for user, used in sorted(bad - EXCEPTIONS.keys())
        if room_of(user) and room_of(used)
    ]
    wrong += [
        f"{user} no longer uses {used}: take it out of EXCEPTIONS"
        for user, used in sorted(EXCEPTIONS.keys() - bad)
    ]
    graph: dict[str, set[str]] = {}
    for use in found:
        if not use.late:
            graph.setdefault(use.user, set()).add(use.used)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        wrong.append("a circle: " + " uses ".join(reversed(error.args[1])))
    return wrong


CELL, LEFT, TOP = 30, 430, 104
INK, FAINT, GRID, RULE = "#222222", "#777777", "#e4e4e4", "#9a9a9a"
DOT, EXCEPTION = "#2f6f9f", "#c0392b"


def draw(found: list[Use]) -> str:
    """Return the picture: a row for each room, a dot under each room that it uses."""
    counts = Counter((room_of(use.user), room_of(use.used)) for use in found)
    odd = Counter(
        (room_of(use.user), room_of(use.used)) for use in found if against_the_rule(use)
    )
    rooms = list(ROOMS)
    size = CELL * len(rooms)
    width, height = LEFT + size + 90, TOP + size + 60
    kernels = CELL * sum(room.wing == HEADERS for room in ROOMS.values())
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<rect x="{LEFT}" y="{TOP}" width="{kernels}" height="{kernels}" '
        'fill="#eef4f8"/>',
        f'<rect x="{LEFT + kernels}" y="{TOP + kernels}" width="{size - kernels}" '
        f'height="{size - kernels}" fill="#f6f3ea"/>',
    ]

    def text(x: int, y: int, words: str, colour: str = INK, more: str = "") -> None:
        out.append(
            f'<text x="{x}" y="{y}" fill="{colour}"{more}>{escape(words)}</text>'
        )

    for i, name in enumerate(rooms):
        at, middle = i * CELL, i * CELL + CELL // 2
        for x1, y1, x2, y2 in (
            (LEFT, TOP + at, LEFT + size, TOP + at),
            (LEFT + at, TOP, LEFT + at, TOP + size),
        ):
            line = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
            out.append(f'<line {line} stroke="{GRID}"/>')
        out.append(
            f'<rect x="{LEFT + at}" y="{TOP + at}" width="{CELL}" height="{CELL}" '
            f'fill="{RULE}"/>'
        )
        text(12, TOP + middle + 5, name, more=' font-weight="bold"')
        text(116, TOP + middle + 5, ROOMS[name].says, FAINT, ' font-size="11.5"')
        x, y = LEFT + middle + 4, TOP - 8
        text(x, y, name, more=f' transform="rotate(-55 {x} {y})"')
    for (user, used), count in sorted(counts.items(), key=str):
        if user is None or used is None or user == used:
            continue
        x = LEFT + rooms.index(used) * CELL + CELL // 2
        y = TOP + rooms.index(user) * CELL + CELL // 2
        colour = EXCEPTION if odd[user, used] else DOT
        out.append(f'<circle cx="{x}" cy="{y}" r="11" fill="{colour}"/>')
        more = ' text-anchor="middle" font-size="11.5"'
        text(x, y + 4, str(count), "white", more)
    text(12, TOP - 12, "room", FAINT)
    text(LEFT - 8, TOP - 12, "uses", FAINT, ' text-anchor="end"')
    y = TOP + size + 30
    for x, colour, words in (
        (LEFT, DOT, "uses, by number"),
        (LEFT + 160, EXCEPTION, "exceptions, each with its reason in ci/house.py"),
    ):
        out.append(f'<circle cx="{x + 8}" cy="{y - 4}" r="8" fill="{colour}"/>')
        text(x + 24, y, words)
    for x, fill, words in ((12, "#eef4f8", "C++ headers"), (140, "#f6f3ea", "Python")):
        box = f'x="{x}" y="{y - 12}" width="16" height="16"'
        out.append(f'<rect {box} fill="{fill}" stroke="{RULE}"/>')
        text(x + 24, y, words)
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    found = uses()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(found), encoding="utf-8")
    if wrong := faults(found):
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
