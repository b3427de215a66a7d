"""Result files of all commands: .csv, .json and .parquet tables, .html pages.

Outputs are checked before a search starts and written atomically after it. Missing
values (None, NaN) become empty cells or null; times of a clock get a further column
with dates (`DateColumn`).
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.files.arrow import pyarrow
from slotkern.files.atomic import open_atomic
from slotkern.foundation.extras import extra
from slotkern.foundation.hostlists import quoted
from slotkern.machine.clock import Clock
from slotkern.viewer.pages import SUFFIXES, view

with extra():
    import typer

__all__ = [
    "ENDINGS",
    "PICTURES",
    "DateColumn",
    "Html",
    "Output",
    "check_folder",
    "check_not_input",
    "check_output",
    "check_page",
    "date_columns",
    "hostlist",
    "listing_columns",
    "part_columns",
    "window_record",
    "write_page",
    "write_table",
]

#: Suffixes of tables and of pictures.
ENDINGS = (".csv", ".json", ".parquet")
PICTURES = (".png", ".svg", ".pdf")

Output = Annotated[
    Path | None,
    typer.Option(help="File of the result: .csv, .json or .parquet."),
]


Html = Annotated[
    Path | None,
    typer.Option(
        "--html", help="Write an interactive page, one self-contained file: .html."
    ),
]


class DateColumn(NamedTuple):
    """A column of times: dates as text in csv and json, timestamps in parquet.

    `times` are numbers of `clock`; NaN is a missing value.
    """

    clock: Clock
    times: NDArray[np.float64]


Columns = Mapping[str, DateColumn | NDArray[Any] | Sequence[Any]]


def check_output(
    path: Path | None, reads: Iterable[Path | None], more: Sequence[str] = ()
) -> None:
    """Raise an error for an output that cannot be written, before the search starts.

    Parameters
    ----------
    path : Path or None
        The output; None passes.
    reads : iterable of Path or None
        Input files of the command, which must not be overwritten.
    more : sequence of str
        Suffixes allowed in addition to those of tables.

    Raises
    ------
    ValueError
        For an unknown suffix, a missing folder, or an input file.
    ModuleNotFoundError
        For .parquet without pyarrow.
    """
    if path is None:
        return
    allowed = (*ENDINGS, *more)
    if path.suffix.lower() not in allowed:
        raise ValueError(f"--output: {path} does not end in {', '.join(allowed)}")
    if not path.parent.is_dir():
        raise ValueError(f"--output: folder {path.parent} does not exist; create it")
    check_not_input(path, reads)
    if path.suffix.lower() == ".parquet":
        pyarrow("parquet")


def check_not_input(path: Path, reads: Iterable[Path | None]) -> None:
    """Raise ValueError if an output is one of the files that the command reads."""
    for read in reads:
        if read and path.exists() and read.exists() and path.samefile(read):
            raise ValueError(
                f"--output: {path} is an input of this command; choose another name"
            )


def check_folder(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Raise ValueError for a name with a suffix of files where a folder is expected."""
    if path is not None and path.suffix.lower() in endings and not path.is_dir():
        raise ValueError(
            f"{option}: {path} must be a folder, but its name ends in {path.suffix}"
        )


def check_page(path: Path | None, option: str = "--html") -> None:
    """Raise ValueError for a page that cannot be written, before the search starts."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{option}: {path} does not end in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: folder {path.parent} does not exist; create it")


def write_page(
    path: Path | None, slots: Any, windows: Any = None, title: str | None = None
) -> None:
    """Write the page of `slotkern.view` to a path; None writes nothing."""
    if path is not None:
        view(slots, windows, title=title).save(path)


def write_table(path: Path, columns: Columns) -> None:
    """Write a table atomically, in the format of its suffix.

    Parameters
    ----------
    path : Path
        .csv, .json (an array of objects) or .parquet.
    columns : mapping of name to column
        Arrays, lists or `DateColumn`, all of one length. None and NaN are missing
        values: empty cells, or null.
    """
    encode = {".csv": _csv, ".json": _json, ".parquet": _parquet}[path.suffix.lower()]
    data = encode(columns)
    with open_atomic(path) as file:
        file.write(data)


def part_columns(
    free: Any, slots: NDArray[Any], windows: Sequence[Any]
) -> dict[str, Any]:
    """Return the columns of a file with one row per part of the windows.

    Parameters
    ----------
    free : structured array or SlotPool
        The slots that were searched; its machine and clock, if any, add the columns
        name, start_time and end_time.
    slots : structured array
        The slots to which the parts' row numbers refer; its other columns are added.
    windows : sequence of Window
    """
    none = np.empty(0, [("row", "i8"), ("node", "i4"), *_SPAN])
    parts = np.concatenate([window.slots for window in windows]) if windows else none
    sizes = [len(window) for window in windows]
    columns: dict[str, Any] = {
        "window": np.repeat(np.arange(1, len(windows) + 1), sizes),
        "node": parts["node"],
    }
    machine, clock = getattr(free, "machine", None), getattr(free, "clock", None)
    if machine is not None:
        columns["name"] = machine.names[parts["node"]]
    columns |= {name: parts[name] for name, _ in _SPAN}
    if clock is not None:
        columns |= date_columns(clock, {name: parts[name] for name in ("start", "end")})
    columns |= {"length": parts["end"] - parts["start"], "row": parts["row"]}
    if "count" in (parts.dtype.names or ()):  # parts that take shares of nodes
        columns |= {"count": parts["count"]} | _share_columns(windows)
    chosen = slots[parts["row"]]
    more = {name: chosen[name] for name in slots.dtype.names or ()}
    return columns | {name: c for name, c in more.items() if name not in columns}


def _share_columns(windows: Sequence[Any]) -> dict[str, Any]:
    """Return what each part takes of its node, one column for each resource."""
    names = dict.fromkeys(name for window in windows for name in window.share or ())
    return {
        f"share.{name}": np.concatenate(
            [np.full(len(w), (w.share or {}).get(name, 0)) for w in windows]
        )
        for name in names
    }


def window_record(free: Any, slots: NDArray[Any], window: Any) -> dict[str, Any]:
    """Return a window for JSON: its totals and one object per part.

    The parts have the columns of `part_columns` except the number of the window.
    """
    columns = part_columns(free, slots, [window])
    first = [name for name in _FIRST if name in columns]
    order = [*first, *(name for name in columns if name not in (*first, "window"))]
    rows = zip(*(_cells(columns[name]) for name in order), strict=True)
    names = ("start", "finish", "runtime", "cost", "processor_time")
    whole = {name: getattr(window, name) for name in (*names, *_PROOF)}
    used = {"uses": window.uses, "account": window.account}
    whole |= {name: value for name, value in used.items() if value is not None}
    if window.clock is not None:
        for name in ("start", "finish"):
            dates_of = window.clock.text([getattr(window, name)])
            whole[f"{name}_time"] = dates_of[0].item()
    if getattr(window, "share", None):
        whole["share"] = dict(window.share)
    return whole | {"slots": [dict(zip(order, row, strict=True)) for row in rows]}


_PROOF = ("value", "proven", "bound")
_FIRST = (
    *("row", "node", "name", "start", "end", "start_time", "end_time"),
    *("length", "cost"),
)


_SPAN = (("start", "f8"), ("end", "f8"), ("cost", "f8"))


def date_columns(clock: Clock, columns: Columns) -> dict[str, DateColumn]:
    """Return a column of dates ``NAME_time`` for each column of times."""
    return {
        f"{name}_time": DateColumn(clock, np.asarray(values, np.float64))
        for name, values in columns.items()
    }


def hostlist(names: Iterable[str]) -> str:
    """Return the names of nodes as one cell of a file, as in a listing of bookings."""
    return ",".join(map(quoted, names))


def listing_columns(table: NDArray[Any], clock: Clock | None) -> dict[str, Any]:
    """Return the columns of a listing of windows, with columns of dates."""
    columns: dict[str, Any] = {name: table[name] for name in table.dtype.names or ()}
    if clock is not None:
        columns |= date_columns(
            clock, {name: table[name] for name in ("start", "finish")}
        )
    return columns


def _cells(column: Any) -> list[Any]:
    """Return a column as Python values; None for missing values."""
    if isinstance(column, DateColumn):
        column = column.clock.text(column.times)
        return [text or None for text in column.tolist()]
    cells = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [None if cell != cell else cell for cell in cells]


def _csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    return text.getvalue().encode()


def _json(columns: Columns) -> bytes:
    rows = zip(*map(_cells, columns.values()), strict=True)
    objects = [
        json.dumps(dict(zip(columns, map(_to_json, row), strict=True))) for row in rows
    ]
    return ("[\n" + ",\n".join(objects) + "\n]\n").encode()


def _to_json(cell: Any) -> Any:
    """Return a cell as a JSON value; infinities as text, as in files of slots."""
    if isinstance(cell, float) and math.isinf(cell):
        return "Infinity" if cell > 0 else "-Infinity"
    return (
        cell if isinstance(cell, (int, float, str, bool)) or cell is None else str(cell)
    )


def _parquet(columns: Columns) -> bytes:
    pa, pq = pyarrow(), pyarrow("parquet")
    arrays = {}
    for name, column in columns.items():
        if isinstance(column, DateColumn):
            utc = column.clock.utc(column.times)
            zone = column.clock.zone or "UTC"
            kind = pa.timestamp(np.datetime_data(utc.dtype)[0], zone)
            arrays[name] = pa.array(utc).cast(kind)
        elif isinstance(column, np.ndarray) and column.dtype.kind != "f":
            arrays[name] = pa.array(column)
        else:
            arrays[name] = pa.array(_cells(column))
            if isinstance(column, np.ndarray):  # even if all values are missing
                arrays[name] = arrays[name].cast(pa.float64())
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()
