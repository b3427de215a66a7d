"""The layers of the project: which layer may use which, and a picture of the uses.

``python ci/layers.py`` draws ``docs/develop/layers.svg`` again and fails if a rule is
broken; ``tests/architecture/test_layers.py`` checks both. The purpose of each layer and
how to add to it are described in ``docs/develop/architecture.md``.

A use is an ``#include``, an import or a cimport, at the top of a module or in a
function. Imports under ``TYPE_CHECKING`` do not count, but for those of the package
itself, which are the names that it loads lazily.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "develop" / "layers.svg"


class Layer(NamedTuple):
    """The source tree of a layer, its purpose, and the modules of a Python layer."""

    tree: str
    purpose: str
    modules: tuple[str, ...] = ()


HEADERS, PYTHON = "src/_native/slotkern/", "src/slotkern/"

#: The one list of layers. A layer uses itself and the layers before it.
LAYERS = {
    "base": Layer(HEADERS, "codes, interrupts, rules of floating point"),
    "choice": Layer(HEADERS, "knapsacks by themselves"),
    "slots": Layer(HEADERS, "records, requests, prepared columns, zone maps"),
    "window": Layer(HEADERS, "sweeps, criteria, tie rule, alternatives"),
    "tariff": Layer(HEADERS, "prices that change while a part runs"),
    "value": Layer(HEADERS, "searches by sums of values"),
    "pool": Layer(HEADERS, "slots that change: book, release, schedule, embed"),
    "shares": Layer(HEADERS, "hosts whose resources jobs share"),
    "batch": Layer(HEADERS, "many jobs at once, and how they really run"),
    "replay": Layer(HEADERS, "traces read, queues of jobs replayed"),
    "community": Layer(HEADERS, "schedulers that negotiate, and their simulation"),
    "foundation": Layer(
        PYTHON,
        "checks of arguments, expressions, extras, types, display of results",
        ("foundation", "display", "expressions", "typing"),
    ),
    "core": Layer(
        PYTHON,
        "bindings of requests, slots, windows and searches",
        ("_kernels",),
    ),
    "arrays": Layer(PYTHON, "arrays of slots, checked", ("slots",)),
    "bindings": Layer(
        PYTHON,
        "the other bindings",
        (
            "_kernels.batch",
            "_kernels.community",
            "_kernels.knapsack",
            "_kernels.pricing",
            "_kernels.replay",
            "_kernels.values",
        ),
    ),
    "files": Layer(PYTHON, "files and tables in and out", ("files",)),
    "machine": Layer(
        PYTHON,
        "named nodes, dates, busy time, calendars, tariffs",
        ("calendars", "machine", "tariffs"),
    ),
    "pools": Layer(
        PYTHON,
        "slots that change, their owners and files",
        ("_kernels.pool", "_kernels.shares", "embed", "pool"),
    ),
    "ledger": Layer(PYTHON, "pools that several processes change", ("ledger",)),
    "domains": Layer(PYTHON, "pools of several domains as one", ("domains",)),
    "published": Layer(PYTHON, "the papers' algorithms as printed", ("published",)),
    "compound": Layer(PYTHON, "jobs of several parts", ("compound",)),
    "searches": Layer(
        PYTHON,
        "functions that users call, above the bindings",
        ("fronts", "knapsack", "numba", "search"),
    ),
    "environment": Layer(PYTHON, "random environments", ("environment",)),
    "batches": Layer(PYTHON, "schedules of many jobs at once", ("batch",)),
    "traces": Layer(
        PYTHON, "workload traces, and the free slots they leave", ("traces",)
    ),
    "replays": Layer(PYTHON, "traces replayed on a cluster", ("replays",)),
    "communities": Layer(
        PYTHON, "communities of schedulers, simulated", ("communities",)
    ),
    "clusters": Layer(
        PYTHON, "clusters as their schedulers report them", ("clusters",)
    ),
    "plotting": Layer(PYTHON, "pictures", ("plotting",)),
    "viewer": Layer(PYTHON, "schedules as pages of one file", ("viewer",)),
    "api": Layer(PYTHON, "the names of import slotkern", ("slotkern", "forks")),
    "service": Layer(PYTHON, "ledgers over HTTP, pools as tools", ("service",)),
    "studies": Layer(PYTHON, "experiments, reports, figures", ("studies",)),
    "commands": Layer(PYTHON, "the command line", ("commands", "__main__")),
}


class Use(NamedTuple):
    """A module or header, another that it uses, and True if only inside a function."""

    user: str
    used: str
    late: bool


def layer_of(name: str) -> str | None:
    """Return the layer of a header ("window/find.hpp") or module ("files.csv")."""
    if "/" in name:
        layer = name.split("/")[0]
        return layer if layer in LAYERS and LAYERS[layer].tree == HEADERS else None
    while name:  # the innermost package or module that a layer lists
        for layer, its in LAYERS.items():
            if name in its.modules:
                return layer
        name = name.rpartition(".")[0]
    return None


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


def text_of(path: Path) -> str:
    """Return the text of a file, with the parts that a binding includes."""
    text = path.read_text(encoding="utf-8")
    for part in re.findall(r'^include "([^"]*)"', text, re.M):
        text += (path.parent / part).read_text(encoding="utf-8")
    return text


def _cython(root: Path) -> Iterator[Use]:
    """Uses of the bindings. A .pxd counts for its module, a .pxi for its includer."""
    names = _names(root)
    for path in (*(root / "src").rglob("*.pyx"), *(root / PYTHON).rglob("*.pxd")):
        own, text = _binding(root, path), text_of(path)
        for header in re.findall(r'cdef extern from "slotkern/([^"]*)"', text):
            yield Use(own, header, False)
        pattern = r"^( *)from ([\w.]+) c?import (\([^)]*\)|.*)|^( *)c?import ([\w.]+)"
        for indent, base, listed, plain_indent, plain in re.findall(
            pattern, text, re.M
        ):
            late = bool(indent or plain_indent)
            for used in _targets(base or plain, re.findall(r"\w+", listed), names):
                if used != own:
                    yield Use(own, used, late)


def _python(root: Path) -> Iterator[Use]:
    names, top = _names(root), root / PYTHON
    for path in top.rglob("*.py"):
        name = _name(path.relative_to(top))
        package = ["slotkern", *path.relative_to(top).parent.parts]
        lazy = name == "slotkern"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, late in _imports(tree, False, lazy):
            if isinstance(node, ast.Import):
                found = [u for a in node.names for u in _targets(a.name, [], names)]
            else:
                parts = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join([*parts, *([node.module] if node.module else [])])
                found = _targets(base, [alias.name for alias in node.names], names)
            yield from (Use(name, used, late) for used in found if used != name)


def _imports(
    tree: ast.AST, late: bool, lazy: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, late
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            parts = [*node.body, *node.orelse] if lazy else node.orelse
            yield from _imports(ast.Module(parts, []), late or lazy, lazy)
        else:
            inner = isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            yield from _imports(node, late or inner, lazy)


def _name(path: Path) -> str:
    parts = [*path.parent.parts, *([path.stem] if path.stem != "__init__" else [])]
    return ".".join(parts) or "slotkern"


def _names(root: Path) -> set[str]:
    top = root / PYTHON
    found = {_name(p.relative_to(top)) for p in top.rglob("*.py*")}
    return found | {_binding(root, path) for path in (root / "src").rglob("*.pyx")}


def _binding(root: Path, path: Path) -> str:
    """Return the name of the module of a .pyx or .pxd."""
    inside = path.is_relative_to(root / PYTHON)
    return _name(path.relative_to(root / PYTHON)) if inside else path.stem


def _targets(base: str, listed: list[str], names: set[str]) -> list[str]:
    """Return the modules of this project that ``from base import listed`` uses."""
    if base != "slotkern" and not base.startswith("slotkern."):
        return []
    base = base.removeprefix("slotkern").removeprefix(".")
    inner = [f"{base}.{name}" if base else name for name in listed]
    modules = [name for name in inner if name in names]
    if len(modules) < len(listed) or not listed:
        modules.append(base or "slotkern")
    return modules


def against_the_rule(use: Use) -> bool:
    """Return True if a use goes to a later layer."""
    layers = list(LAYERS)
    user, used = layer_of(use.user), layer_of(use.used)
    if user is None or used is None:
        return True
    return layers.index(used) > layers.index(user)


def faults(found: list[Use]) -> list[str]:
    """Return a message for each use that breaks a rule."""
    names_in_use = {name for use in found for name in use[:2]}
    wrong = [
        f"{name} belongs to no layer"
        for name in sorted(names_in_use)
        if not layer_of(name)
    ]
    bad = {use[:2] for use in found if against_the_rule(use)}
    wrong += [
        f"{user} ({layer_of(user)}) must not use {used} ({layer_of(used)})"
        for user, used in sorted(bad)
        if layer_of(user) and layer_of(used)
    ]
    graph: dict[str, set[str]] = {}
    for use in found:
        graph.setdefault(use.user, set()).add(use.used)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        wrong.append("a cycle: " + " uses ".join(reversed(error.args[1])))
    return wrong


CELL, LEFT, TOP = 30, 430, 104
INK, FAINT, GRID, RULE = "#222222", "#777777", "#e4e4e4", "#9a9a9a"
DOT = "#2f6f9f"


def draw(found: list[Use]) -> str:
    """Return the picture: a row for each layer, a dot under each layer that it uses."""
    pairs = {(layer_of(use.user), layer_of(use.used)) for use in found}
    layers = list(LAYERS)
    size = CELL * len(layers)
    width, height = LEFT + size + 90, TOP + size + 60
    kernels = CELL * sum(layer.tree == HEADERS for layer in LAYERS.values())
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

    for i, name in enumerate(layers):
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
        text(116, TOP + middle + 5, LAYERS[name].purpose, FAINT, ' font-size="11.5"')
        x, y = LEFT + middle + 4, TOP - 8
        text(x, y, name, more=f' transform="rotate(-55 {x} {y})"')
    for user, used in sorted(pairs, key=str):
        if user is None or used is None or user == used:
            continue
        x = LEFT + layers.index(used) * CELL + CELL // 2
        y = TOP + layers.index(user) * CELL + CELL // 2
        out.append(f'<circle cx="{x}" cy="{y}" r="8" fill="{DOT}"/>')
    text(12, TOP - 12, "layer", FAINT)
    text(LEFT - 8, TOP - 12, "uses", FAINT, ' text-anchor="end"')
    y = TOP + size + 30
    out.append(f'<circle cx="{LEFT + 8}" cy="{y - 4}" r="8" fill="{DOT}"/>')
    text(LEFT + 24, y, "uses")
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
