"""Result files of all commands: .csv, .json and .parquet tables, .html pages.

Outputs are checked before a search starts and written atomically after it. Missing
values (None, NaN) become empty cells or null. The columns are those of
`slotkern.search.records`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from numpy.typing import NDArray

from slotkern.calendars import to_ics
from slotkern.files import in_words
from slotkern.files.arrow import pyarrow
from slotkern.files.atomic import open_atomic
from slotkern.foundation.extras import extra
from slotkern.machine.clock import Clock
from slotkern.search.records import Columns, arrow_table, cells, listing_columns
from slotkern.viewer.pages import SUFFIXES, view

with extra():
    import typer

__all__ = [
    "CALENDARS",
    "ENDINGS",
    "PICTURES",
    "RESULTS",
    "Html",
    "Listing",
    "Output",
    "check_folder",
    "check_not_input",
    "check_output",
    "check_page",
    "write_listing",
    "write_page",
    "write_table",
]

#: Suffixes of pictures, and of calendars; those of tables are the keys of `_ENCODERS`.
PICTURES = (".png", ".svg", ".pdf")
CALENDARS = (".ics",)


def _csv(columns: Columns) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(cells, columns.values()), strict=True))
    return text.getvalue().encode()


def _json(columns: Columns) -> bytes:
    rows = zip(*map(cells, columns.values()), strict=True)
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
    sink = io.BytesIO()
    pyarrow("parquet").write_table(arrow_table(columns), sink)
    return sink.getvalue()


#: The writer of each format.
_ENCODERS = {".csv": _csv, ".json": _json, ".parquet": _parquet}
ENDINGS = tuple(_ENCODERS)
#: The suffixes of tables in words, for help.
RESULTS = in_words(ENDINGS)

Output = Annotated[
    Path | None,
    typer.Option(help=f"File of the result: {RESULTS}."),
]

Listing = Annotated[
    Path | None,
    typer.Option(
        "--output",
        help=f"File of the bookings: {RESULTS}; or a calendar, .ics.",
    ),
]

Html = Annotated[
    Path | None,
    typer.Option(
        "--html", help="Write an interactive page, one self-contained file: .html."
    ),
]


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
        For .parquet without pyarrow, and .ics without icalendar.
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
    if path.suffix.lower() in CALENDARS:
        with extra():
            import icalendar  # noqa: F401


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
    data = _ENCODERS[path.suffix.lower()](columns)
    with open_atomic(path) as file:
        file.write(data)


def write_listing(path: Path, table: NDArray[Any], clock: Clock | None) -> None:
    """Write a listing of bookings atomically: a calendar, .ics, or a table."""
    if path.suffix.lower() not in CALENDARS:
        write_table(path, listing_columns(table, clock))
        return
    data = to_ics(table, clock=clock).encode()
    with open_atomic(path) as file:
        file.write(data)
