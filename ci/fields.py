"""Writes the fields of a request into the texts that cannot read them at run time.

    python ci/fields.py

src/_native/slotkern/slots/request_fields.def is the table. Stubs, docstrings, pages and
the interfaces of other languages contain a region for the fields, between two lines
that this program finds. A test checks that the regions are up to date.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from slotkern.foundation.special_fields import SPECIAL_FIELDS

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/_native/slotkern/slots/request_fields.def"

#: Types in Python, and in the docstring of `Request`.
STUBS = {"number": "float", "time": "Time", "duration": "Duration"}
TYPES = {
    "number": "float",
    "time": "float, date or str",
    "duration": "float, str or timedelta",
}
RANGES = {"positive": ", > 0", "amount": ", >= 0", "any": ""}
#: The layout of slotkern_request: other languages declare it too, so it only grows.
C_ORDER = (
    *("volume", "budget", "min_performance", "max_price", "earliest"),
    *("latest", "deadline", "max_runtime", "setup", "step"),
)


class Field(NamedTuple):
    """A line of the table."""

    name: str
    kind: str
    range: str
    default: str  # in Python
    unit: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence of the text."""
        return self.text.split(". ")[0].removesuffix(".")

    @property
    def is_infinite(self) -> bool:
        """True for an infinite default."""
        return self.default.endswith("inf")


class Region(NamedTuple):
    """The lines of a file between two texts, and how to write them."""

    path: str
    before: str
    after: str
    write: Callable[[list[Field], int], list[str]]


def read() -> tuple[list[Field], int]:
    """Return the fields, and how many of them precede the limits on sums."""
    table = re.sub(r"^//.*\n", "", TABLE.read_text(encoding="utf-8"), flags=re.M)
    table = re.sub(r'"\s*\n\s*"', "", table)  # adjacent literals
    line = re.compile(
        r"^SLOTKERN_REQUEST_FIELD\((\w+), (\w+), (\w+), (\S+), "
        r'"(.*?)", ".*?",\s*"(.*?)"\)',
        re.M,
    )
    known = {"kInfinity": "inf", "-kInfinity": "-inf", "kMaxTime": "inf"}
    fields = [
        Field(name, kind, range, known.get(default) or repr(float(default)), *texts)
        for name, kind, range, default, *texts in line.findall(table)
    ]
    earlier = table[: table.index("\nSLOTKERN_REQUEST_LIMITS")]
    return fields, len(line.findall(earlier))


def signature(fields: list[Field], limits: int) -> list[str]:
    """Write the arguments of `Request` for `inspect.signature`."""
    given = [f"{field.name}={field.default}" for field in fields[1:]]
    special = [f"{name}={each.default!r}" for name, each in SPECIAL_FIELDS.items()]
    rest = ("walltime=None", "reference=1.0", "name=None")
    rest = ("where=None", "limits=()", *special, *rest)
    text = ", ".join(("nodes", "volume=None", "*", *given, *rest))
    lines = textwrap.wrap(
        f'    """Request({text})',
        98,
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )
    return lines


def arguments(fields: list[Field], limits: int) -> list[str]:
    """Write the arguments of `Request.__init__`."""
    given = ", ".join(f"{field.name}=UNSET" for field in fields[1:]) + ","
    indent = " " * 17
    return textwrap.wrap(given, 98, initial_indent=indent, subsequent_indent=indent)


def pointers(fields: list[Field], limits: int) -> list[str]:
    """Write the array of the arguments of `Request.__init__`."""
    return [
        f"        cdef PyObject* given[{len(fields)}]",
        "        given[:] = [",
        *(f"            <PyObject*>{field.name}," for field in fields),
        "        ]",
    ]


def parameters(fields: list[Field], limits: int) -> list[str]:
    """Write the parameters in the docstring of `Request`."""
    lines = []
    for field in fields:
        optional = "" if field.name == "volume" else f", default {field.default}"
        given = f"{TYPES[field.kind]}{RANGES[field.range]}{optional}"
        lines.append(f"    {field.name} : {given}")
        lines += textwrap.wrap(
            field.text,
            95,
            initial_indent=" " * 8,
            subsequent_indent=" " * 8,
            break_on_hyphens=False,
        )
    return lines


def stub_arguments(fields: list[Field], limits: int) -> list[str]:
    """Write the arguments in the stub of `Request`."""
    return [
        f"        {field.name}: {STUBS[field.kind]} = "
        + ("...," if field.is_infinite else f"{field.default},")
        for field in fields[1:]
    ]


def stub_properties(fields: list[Field], limits: int) -> list[str]:
    """Write the properties in the stub of `Request`; None and times: as given."""
    return [
        line
        for field in fields
        for line in (
            "    @property",
            f"    def {field.name}(self) -> "
            + ("Any" if field.kind != "number" or field.name == "volume" else "float")
            + ": ...",
        )
    ]


def positions(fields: list[Field], limits: int) -> list[str]:
    """Write the positions of the fields for Cython modules."""
    names = [field.name.upper() for field in fields]
    names[limits:limits] = ["LIMITS"]
    lines = [f"    {name} = {i}" for i, name in enumerate(["NODES", *names])]
    lines[limits + 1] += "  # from limits_of; 0: none"
    return [*lines, f"    REQUEST_FIELDS = {len(lines)}"]


def numba_arguments(fields: list[Field], limits: int) -> list[str]:
    """Write the arguments of `slotkern.numba.request`."""
    defaults = [re.sub(r"\binf", "np.inf", field.default) for field in fields]
    lines = [
        f"    {field.name}: float = {default},"
        for field, default in zip(fields, defaults, strict=True)
    ]
    lines[0] = "    volume: float,"
    lines[limits:limits] = ["    limits: int = 0,"]
    return lines


def numba_values(fields: list[Field], limits: int) -> list[str]:
    """Write the array that `slotkern.numba.request` makes."""
    names = [field.name for field in fields]
    names[limits:limits] = ["limits"]
    return [f"            {name}," for name in names]


def c_members(fields: list[Field], limits: int) -> list[str]:
    """Write the members of slotkern_request."""
    named = {field.name: field for field in fields}
    order = (*C_ORDER, *(name for name in named if name not in C_ORDER))
    return [f"  double {name}; /* {named[name].summary}. */" for name in order]


def json_rows(fields: list[Field], limits: int) -> list[str]:
    """Write the rows of docs/json.md; an infinite number is null."""
    return [
        f"| `{field.name}` | number{' or null' * field.is_infinite} | {field.summary}"
        f"{'; null: no limit' * field.is_infinite} |"
        for field in fields
    ]


def page_rows(fields: list[Field], limits: int) -> list[str]:
    """Write the rows of docs/requests.md."""
    return [
        f"| `{field.name}` | {field.unit} | {field.default} | {field.summary} |"
        for field in fields[1:]
    ]


REGIONS = (
    Region("src/slotkern/_kernels/request.pyx", "cdef class Request:", "--", signature),
    Region(
        "src/slotkern/_kernels/request.pyx",
        "        Number of different nodes that start together, from 1 to 2^31 - 1.",
        "    where : str or array of bool, optional",
        parameters,
    ),
    Region(
        "src/slotkern/_kernels/request.pyx",
        "    def __init__(self, nodes, volume=None, *,"
        "  # the fields are written by ci/fields.py",
        "                 where=None, limits=(), walltime=None, reference=1.0,"
        " name=None, **special):",
        arguments,
    ),
    Region(
        "src/slotkern/_kernels/request.pyx",
        "        # The fields in the order of the table, written by ci/fields.py.",
        "        cdef Py_ssize_t i",
        pointers,
    ),
    Region(
        "src/slotkern/_kernels/request.pyi",
        "        *,",
        "        where: str | ArrayLike | None = None,",
        stub_arguments,
    ),
    Region(
        "src/slotkern/_kernels/request.pyi",
        "    def nodes(self) -> int: ...",
        "    @property  # the properties above are written by ci/fields.py",
        stub_properties,
    ),
    Region(
        "src/slotkern/embed.pxd",
        "cdef enum:  # written by ci/fields.py",
        "",
        positions,
    ),
    Region(
        "src/slotkern/numba.py",
        "    nodes: int,  # the arguments are written by ci/fields.py",
        ") -> NDArray[np.float64]:",
        numba_arguments,
    ),
    Region("src/slotkern/numba.py", "            nodes,", "        ]", numba_values),
    Region(
        "src/_native/slotkern/slotkern.h",
        "  int64_t nodes; /* the fields are written by ci/fields.py */",
        "} slotkern_request;",
        c_members,
    ),
    Region(
        "docs/json.md",
        "| `nodes` | integer | number of simultaneous nodes |",
        "| `where` | string or null | the filter expression |",
        json_rows,
    ),
    Region("docs/requests.md", "|---|---|---|---|", "", page_rows),
)


def updated(path: str) -> str:
    """Return the text of a file with its regions up to date."""
    lines = (ROOT / path).read_text(encoding="utf-8").split("\n")
    fields, limits = read()
    for region in REGIONS:
        if region.path == path:
            first = lines.index(region.before) + 1
            last = lines.index(region.after, first)
            lines[first:last] = region.write(fields, limits)
    return "\n".join(lines)


def paths() -> list[str]:
    """Return the files that have regions."""
    return sorted({region.path for region in REGIONS})


if __name__ == "__main__":
    for each in paths():
        (ROOT / each).write_text(updated(each), encoding="utf-8")
