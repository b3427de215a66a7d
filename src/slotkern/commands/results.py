"""Results in files: tables as the file's ending says, the same for all commands."""

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

from slotkern.extras import extra
from slotkern.files.arrow import pyarrow
from slotkern.files.atomic import open_atomic
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
    "listing_columns",
    "part_columns",
    "window_record",
    "write_page",
    "write_table",
]

#: The endings of tables, and of pictures.
ENDINGS = (".csv", ".json", ".parquet")
PICTURES = (".png", ".svg", ".pdf")

Output = Annotated[
    Path | None, typer.Option(help="Write the result: .csv, .json or .parquet.")
]


Html = Annotated[
    Path | None,
    typer.Option("--html", help="Write a page to look at, all in one file: .html."),
]


class DateColumn(NamedTuple):
    """A column of times: text in csv and json, timestamps with a zone in parquet."""

    clock: Clock
    times: NDArray[np.float64]


Columns = Mapping[str, DateColumn | NDArray[Any] | Sequence[Any]]


def check_output(
    path: Path | None, reads: Iterable[Path | None], more: Sequence[str] = ()
) -> None:
    """Refuse a result that cannot be written or should not be, before there is one.

    Parameters
    ----------
    path : Path or None
    reads : iterable of Path or None
        What the command reads, and must not overwrite.
    more : sequence of str
        Endings beside those of tables.
    """
    if path is None:
        return
    known = (*ENDINGS, *more)
    if path.suffix.lower() not in known:
        raise ValueError(f"--output: {path} does not end in {', '.join(known)}")
    if not path.parent.is_dir():
        raise ValueError(f"--output: {path.parent} is no folder")
    check_not_input(path, reads)
    if path.suffix.lower() == ".parquet":
        pyarrow("parquet")


def check_not_input(path: Path, reads: Iterable[Path | None]) -> None:
    """Refuse a result in the place of a file that the command reads."""
    for read in reads:
        if read and path.exists() and read.exists() and path.samefile(read):
            raise ValueError(
                f"--output: {path} is read by this command, and would be overwritten"
            )


def check_folder(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Refuse the name of a file, by its ending, where a folder is meant."""
    if path is not None and path.suffix.lower() in endings and not path.is_dir():
        raise ValueError(f"{option}: {path} is no folder, but ends in {path.suffix}")


def check_page(path: Path | None, option: str = "--html") -> None:
    """Refuse a page that cannot be written, before there is anything to see."""
    if path is None:
        return
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{option}: {path} does not end in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: {path.parent} is no folder")


def write_page(
    path: Path | None, slots: Any, windows: Any = None, title: str | None = None
) -> None:
    """Write the page that `slotkern.view` makes, if there is a path."""
    if path is not None:
        view(slots, windows, title=title).save(path)


def write_table(path: Path, columns: Columns) -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    path : Path
        .csv, .json (an array of objects) or .parquet.
    columns : mapping of name to column
        Arrays, lists, or `Dates`. None and NaN are missing: an empty cell, or null.
    """
    encode = {".csv": _csv, ".json": _json, ".parquet": _parquet}[path.suffix.lower()]
    data = encode(columns)
    with open_atomic(path) as file:
        file.write(data)


def part_columns(
    free: Any, slots: NDArray[Any], windows: Sequence[Any]
) -> dict[str, Any]:
    """Return one row for each part of windows of one search.

    Parameters
    ----------
    free : structured array or SlotPool
        What was searched, with names and dates where it has them.
    slots : structured array
        In which the parts' rows count; its further columns are written, too.
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
    chosen = slots[parts["row"]]
    more = {name: chosen[name] for name in slots.dtype.names or ()}
    return columns | {name: c for name, c in more.items() if name not in columns}


def window_record(free: Any, slots: NDArray[Any], window: Any) -> dict[str, Any]:
    """Return a window for JSON: its totals, and for each part the fields of a table.

    The parts have the fields that `part_columns` gives files, but for the number of the
    window.
    """
    columns = part_columns(free, slots, [window])
    first = [name for name in _FIRST if name in columns]
    order = [*first, *(name for name in columns if name not in (*first, "window"))]
    rows = zip(*(_cells(columns[name]) for name in order), strict=True)
    names = ("start", "finish", "runtime", "cost", "processor_time")
    whole = {name: getattr(window, name) for name in (*names, *_PROOF)}
    if window.clock is not None:
        for name in ("start", "finish"):
            dates_of = window.clock.text([getattr(window, name)])
            whole[f"{name}_time"] = dates_of[0].item()
    return whole | {"slots": [dict(zip(order, row, strict=True)) for row in rows]}


_PROOF = ("value", "proven", "bound")
_FIRST = (
    *("row", "node", "name", "start", "end", "start_time", "end_time"),
    *("length", "cost"),
)


_SPAN = (("start", "f8"), ("end", "f8"), ("cost", "f8"))


def date_columns(clock: Clock, columns: Columns) -> dict[str, DateColumn]:
    """Return the columns that tell these times on the calendar."""
    return {
        f"{name}_time": DateColumn(clock, np.asarray(values, np.float64))
        for name, values in columns.items()
    }


def listing_columns(table: NDArray[Any], clock: Clock | None) -> dict[str, Any]:
    """A listing of windows as columns for a file, with dates that are such."""
    columns: dict[str, Any] = {name: table[name] for name in table.dtype.names or ()}
    if clock is not None:
        columns |= date_columns(
            clock, {name: table[name] for name in ("start", "finish")}
        )
    return columns


def _cells(column: Any) -> list[Any]:
    """The values as Python has them; None where one is missing."""
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
    """What strict JSON takes, as in files of slots."""
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
            if isinstance(column, np.ndarray):  # also where all are missing
                arrays[name] = arrays[name].cast(pa.float64())
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink)
    return sink.getvalue()
