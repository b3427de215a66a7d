"""Tables of windows for people, as rich prints them, and the formats of their cells.

Numbers of a column have equal decimals (310.40), dates are ``2026-12-01 01:16``,
processor time is in node hours (192 node hours). Long windows and long lists are
shortened in the middle; a caption counts what is hidden. All text of cells is literal.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from slotkern.commands.terminal import escaped_text
from slotkern.foundation.extras import extra
from slotkern.foundation.hostlists import abridge, expand

with extra():
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

if TYPE_CHECKING:
    from slotkern.plotting.layout import WindowLike

__all__ = [
    "TOTALS",
    "abbreviate_nodes",
    "alternatives_table",
    "comparison_table",
    "forecast_table",
    "format_times",
    "free_table",
    "front_table",
    "holes_table",
    "listing_table",
    "metrics_table",
    "starts_table",
    "totals",
    "window_table",
]

#: The totals of a window: attribute and heading.
TOTALS = {
    "start": "start",
    "finish": "finish",
    "runtime": "runtime",
    "cost": "cost",
    "processor_time": "processor time",
}

#: Totals that are lengths of time; all totals that a clock formats as text.
SPANS = ("runtime", "processor_time")
DATED = ("start", "finish", *SPANS)

#: Matches the fraction of a second in the text of a date.
_FRACTION = re.compile(r"\.[0-9]+(?=[+-])")
Key = TypeVar("Key")
#: Matches a date: day, hour and minute, seconds, offset from UTC.
_DATE = re.compile(r"([0-9-]+)T([0-9]+:[0-9]+)(:[0-9.]+)([+-][0-9:]+|)")
#: Clock units whose dates are printed without fractions of seconds.
LONG_UNITS = ("s", "min", "h", "d")
#: Further columns of the slots are shown only if there are at most this many.
MAX_EXTRA_COLUMNS = 4
#: Rows shown at each end of a table that has more than twice as many.
SHOWN_ENDS = 100
#: Maximum number of decimals in a column.
MAX_DECIMALS = 9
#: Node ids shown per row of a table.
SHOWN_IDS = 12


def abbreviate_nodes(names: Sequence[Any], between: str = " ") -> str:
    """Format names as a hostlist, or the first ids and the number of the others.

    Examples
    --------
    >>> abbreviate_nodes(["n01", "n02", "n03"]), abbreviate_nodes(range(50))
    ('n[01-03]', '0 1 2 3 4 5 6 7 8 9 10 11 ... +38')
    """
    if not all(isinstance(name, int) or name.isdecimal() for name in names):
        return abridge(names)
    text = between.join(map(str, names[:SHOWN_IDS]))
    return text if len(names) <= SHOWN_IDS else f"{text} ... +{len(names) - SHOWN_IDS}"


def format_column(values: Any, digits: int = 2) -> list[str]:
    """Format numbers with equal decimals, so that their decimal points line up.

    No decimals if all are integers, else two, or as many as show `digits` digits of
    the smallest magnitude below 0.01, or below 1 if `digits` is more than two. NaN
    becomes an empty cell.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        return [str(value) for value in array.tolist()]
    finite = array[np.isfinite(array)]
    decimals = 0 if bool((finite == np.rint(finite)).all()) else 2
    least = np.abs(finite[finite != 0]).min(initial=1)
    if least < (0.01 if digits == 2 else 1):
        decimals = min(digits - 1 - math.floor(math.log10(least)), MAX_DECIMALS)
    return [
        "" if value != value else f"{value:,.{decimals}f}" for value in array.tolist()
    ]


def window_table(slots: npt.NDArray[Any], window: Any) -> Table:
    """Return a table with one row per part: node, times, cost, columns of its slot.

    Under tariffs, the mean price of each part replaces the base price of its slot.
    Only the first and the last 100 parts of a window with more than 200 are shown.

    Parameters
    ----------
    slots : structured array
        The slots to which the parts' row numbers refer.
    window : Window
        The window.
    """
    parts = window.slots
    chosen = slots[parts["row"]]
    columns = {
        "node": parts["node"],
        "start": parts["start"],
        "end": parts["end"],
        "length": parts["end"] - parts["start"],
        "cost": parts["cost"],
    }
    if getattr(window, "counts", None) is not None:
        columns["parts"] = parts["count"]
    if window.machine is not None:
        columns["node"] = np.array(window.names)
    caption = ""
    if window.clock is not None:
        dates = {
            n: format_dates(parts[n], window.clock).tolist() for n in ("start", "end")
        }
        short, offset = shorten_dates(dates)
        columns |= {name: np.array(texts) for name, texts in short.items()}
        caption = zone_caption(offset, window.clock) if offset else ""
        spans = format_times("runtime", columns["length"], window.clock)
        columns["length"] = np.array(spans)
    own = ("node", "start", "end")
    further = [name for name in chosen.dtype.names or () if name not in own]
    if len(further) <= MAX_EXTRA_COLUMNS + len(("performance", "price")):
        columns |= {name: chosen[name] for name in further}
        if "tariff" in columns and getattr(window.context, "tariffs", None) is not None:
            # A tariff multiplies the base price, which alone would mislead.
            lengths = parts["end"] - parts["start"]
            mean = parts["cost"] / lengths
            columns["mean price"] = np.array(format_column(mean, digits=3))
            del columns["price"]
    table = Table(box=SIMPLE_HEAD, caption=caption or None)
    for name in columns:
        table.add_column(escaped_text(name), justify="right")
    ids = [str(node) for node in columns.pop("node").tolist()]
    rows = list(zip(ids, *map(format_column, columns.values()), strict=True))
    hidden = rows[SHOWN_ENDS:-SHOWN_ENDS]
    for row in rows[:SHOWN_ENDS] if hidden else rows:
        table.add_row(
            *map(escaped_text, row)
        )  # Text, because names from files may look like markup
    if hidden:
        table.add_row(*["..."] * len(rows[0]))
        for row in rows[-SHOWN_ENDS:]:
            table.add_row(*map(escaped_text, row))
        omitted = f"{len(hidden):,} of {len(rows):,} parts not shown"
        table.caption = "; ".join(filter(None, (caption, omitted)))
    return table


def totals(window: Any) -> str:
    """Return the totals of a window in one line."""
    texts = {name: format_column([getattr(window, name)])[0] for name in TOTALS}
    if window.clock is not None:
        texts |= {
            name: format_times(name, [getattr(window, name)], window.clock)[0]
            for name in DATED
        }
        texts |= {n: texts[n].replace("T", " ") for n in ("start", "finish")}
    return "   ".join(f"{TOTALS[name]} {value}" for name, value in texts.items())


def format_times(name: str, values: Any, clock: Any) -> list[str]:
    """Format values of a total, e.g. "cost"; times of a clock as dates or durations."""
    if clock is None or name not in DATED:
        return format_column(values)
    lengths = np.asarray(values, float).tolist()
    if name == "processor_time":
        return [format_node_hours(t, clock) for t in lengths]
    if name in SPANS:
        return [format_duration(t, clock) for t in lengths]
    dates: list[str] = format_dates(values, clock).tolist()
    return dates


def format_dates(values: Any, clock: Any) -> npt.NDArray[np.str_]:
    """Format times of a clock as dates, in whole seconds unless its unit is shorter."""
    times = np.asarray(values, float)
    if clock.unit in LONG_UNITS:
        second = clock.duration("1s")
        times = np.rint(times / second) * second
    return clock.text(times)  # type: ignore[no-any-return]


def add_times(
    table: Table, columns: dict[str, list[str]], times: Mapping[str, Any], clock: Any
) -> None:
    """Add columns of times to the columns of a table, in the shortest clear format.

    A date is written as ``2026-12-01 01:16``, with seconds only if some time has
    nonzero seconds. The offset from UTC is in the caption, or in each cell if it
    differs among the times.

    Parameters
    ----------
    table : Table
        Gets the caption.
    columns : dict of heading to cells
        Extended by one column for each entry of `times`.
    times : mapping of heading to array of float
    clock : Clock or None
        None formats the times as plain numbers.
    """
    if clock is None:
        columns |= {name: format_column(values) for name, values in times.items()}
        return
    dates = {
        name: format_dates(values, clock).tolist() for name, values in times.items()
    }
    dates, offset = shorten_dates(dates)
    columns |= dates
    if offset:
        table.caption = zone_caption(offset, clock)


def shorten_dates(
    columns: Mapping[Key, Sequence[str]],
) -> tuple[dict[Key, list[str]], str]:
    """Shorten columns of ISO 8601 dates, and return them with their common offset.

    Seconds are dropped if all are zero, and the UTC offset if it is common to all;
    otherwise the offset stays in each cell and the returned one is empty. Other texts
    are unchanged.
    """
    pairs = [_DATE.fullmatch(text) for texts in columns.values() for text in texts]
    found = [pair.groups() for pair in pairs if pair]
    offsets = {offset for _, _, _, offset in found}
    seconds = any(second != ":00" for _, _, second, _ in found)

    def short(text: str) -> str:
        match = _DATE.fullmatch(text)
        if match is None:
            return text
        day, minute, second, offset = match.groups()
        date = f"{day} {minute}" + (second if seconds else "")
        return date + (offset if len(offsets) > 1 else "")

    return (
        {name: list(map(short, texts)) for name, texts in columns.items()},
        offsets.pop() if len(offsets) == 1 else "",
    )


def zone_caption(offset: str, clock: Any = None) -> str:
    """Return the caption for times with a common offset from UTC."""
    zone = f"{clock.zone}, " if clock is not None and clock.zone else ""
    return f"times in {zone}UTC{offset}"


def format_duration(length: float, clock: Any) -> str:
    """Format a length of time; from one minute on, rounded to seconds."""
    span = clock.timedelta(length)
    if span is None:
        return ""
    if clock.unit in LONG_UNITS and span >= dt.timedelta(minutes=1):
        span = dt.timedelta(seconds=round(span.total_seconds()))
    return str(span)


def format_node_hours(length: float, clock: Any) -> str:
    """Format processor time as node hours; NaN becomes an empty cell.

    Examples
    --------
    >>> import slotkern as sk
    >>> format_node_hours(691200, sk.Clock("2026-10-24", zone="UTC"))
    '192 node hours'
    """
    if length != length:
        return ""
    hours = clock.timedelta(length).total_seconds() / 3600
    text = f"{hours:,.2f}".removesuffix(".00") if hours >= 0.01 else f"{hours:.3g}"
    return f"{text} node hour" + ("" if text == "1" else "s")


def front_table(front: Any) -> Table:
    """Return a table with one row per window of a front.

    The columns are the criteria other than totals, then those of `alternatives_table`.

    Parameters
    ----------
    front : Front
    """
    sums = {
        name: format_column(front.values[:, k])
        for k, name in enumerate(front.by)
        if name not in TOTALS
    }
    return alternatives_table(front.windows, sums)


def alternatives_table(
    found: Any, more: Mapping[str, list[str]] | None = None
) -> Table:
    """Return a table with one row per window; the best values are marked by ``*``.

    Only the first and the last 100 of more than 200 windows are shown. The nodes of a
    window are a hostlist, truncated after 60 characters.

    Parameters
    ----------
    found : WindowTable
    more : mapping of heading to cells, optional
        Columns placed before the others, without marks.
    """
    captions = ["* best of the column"]
    table = Table(box=SIMPLE_HEAD)
    table.add_column("", justify="right")
    columns = list((more or {}).values())
    for heading in more or {}:
        table.add_column(Text(heading), justify="right")
    clock = found[0].clock if len(found) else None
    texts_of = {n: format_times(n, getattr(found, n), clock) for n in TOTALS}
    dates, offset = shorten_dates({n: texts_of[n] for n in ("start", "finish")})
    texts_of |= dates
    if offset:
        captions.append(zone_caption(offset, clock))
    for name, heading in TOTALS.items():
        table.add_column(heading, justify="right")
        values = getattr(found, name)
        best = values == values.min() if len(values) else values
        marks = zip(texts_of[name], best, strict=True)
        columns.append([f"{text}*" if mark else f"{text} " for text, mark in marks])
    table.add_column("nodes", justify="left")
    rows = range(len(found))
    hidden = rows[SHOWN_ENDS:-SHOWN_ENDS]
    for k in [*rows[:SHOWN_ENDS], *rows[-SHOWN_ENDS:]] if hidden else rows:
        if hidden and k == rows[-SHOWN_ENDS]:
            table.add_row(*["..."] * (len(columns) + 2))
        nodes = abbreviate_nodes(found[k].names)
        table.add_row(
            str(k + 1), *map(escaped_text, (*(texts[k] for texts in columns), nodes))
        )
    if hidden:
        captions[0] = f"{len(hidden):,} of {len(rows):,} windows not shown"
    table.caption = "; ".join(captions)
    return table


def listing_table(listing: npt.NDArray[Any], clock: Any = None) -> Table:
    """Return a table with one row per window of a listing of bookings.

    Times are dates if the listing has them. The nodes of a window are a hostlist,
    truncated after 60 characters.

    Parameters
    ----------
    listing : structured array
        Returned by `SlotPool.bookings` or `Bookings.listing`.
    clock : Clock, optional
        The caption contains its zone.
    """
    fields = listing.dtype.names or ()
    names = [name for name in fields if f"{name}_time" not in fields]
    table = Table(box=SIMPLE_HEAD)
    for name in names:
        number = listing[name].dtype.kind == "f"
        table.add_column(escaped_text(name), justify="right" if number else "left")
    columns = {
        name: [_FRACTION.sub("", text) for text in listing[name].tolist()]
        if name.endswith("_time")
        else format_column(listing[name])
        for name in names
    }
    times = {name: texts for name, texts in columns.items() if name.endswith("_time")}
    dates, offset = shorten_dates(times)
    columns |= dates
    if offset:
        table.caption = zone_caption(offset, clock)
    if "nodes" in columns:
        columns["nodes"] = [
            abbreviate_nodes(expand(text), ",") if text else ""
            for text in columns["nodes"]
        ]
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escaped_text, row))
    return table


def _filled(table: Table, columns: dict[str, list[str]]) -> Table:
    """Return the table with these columns of cells, aligned to the right."""
    for name in columns:
        table.add_column(escaped_text(name), justify="right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(escaped_text, row))
    return table


def starts_table(starts: npt.NDArray[Any], clock: Any) -> Table:
    """Return a table with one row per interval of possible starts, and its length."""
    table = Table(box=SIMPLE_HEAD)
    columns: dict[str, list[str]] = {}
    times = {f"{name} start": starts[name] for name in ("first", "last")}
    add_times(table, columns, times, clock)
    columns["length"] = format_times("runtime", starts["last"] - starts["first"], clock)
    return _filled(table, columns)


def holes_table(frontier: npt.NDArray[Any], clock: Any) -> Table:
    """Return a table with one row per point of the frontier of nodes and lengths."""
    table = Table(box=SIMPLE_HEAD)
    columns = {"nodes": format_column(frontier["nodes"])}
    columns["length"] = format_times("runtime", frontier["length"], clock)
    add_times(table, columns, {"until": frontier["end"]}, clock)
    return _filled(table, columns)


def forecast_table(found: Any) -> Table:
    """Return a table with one row per quantile of the starts, and the promise."""
    table, rows = Table(box=SIMPLE_HEAD), found._as_table().columns
    columns = {"runs": rows["runs"].tolist()}
    add_times(table, columns, {"start": rows["start"]}, found.clock)
    columns["wait"] = format_times("runtime", rows["wait"], found.clock)
    return _filled(table, columns)


def free_table(free: Any) -> Table:
    """Return a table of free slots: one row per span, with all nodes free in it.

    Only the first and the last 100 rows of more than 200 are shown.
    """
    groups: dict[tuple[float, float], list[str]] = {}
    rows = zip(*(free.slots[name].tolist() for name in ("start", "end")), strict=True)
    for span, node in zip(rows, free.slots["node"].tolist(), strict=True):
        groups.setdefault(span, []).append(str(free.machine.names[node]))
    spans = sorted(groups)
    table = Table(box=SIMPLE_HEAD)
    columns: dict[str, list[str]] = {}
    ends = {
        name: [span[k] for span in spans] for k, name in enumerate(("start", "end"))
    }
    add_times(table, columns, ends, free.clock)
    columns["count"] = [str(len(groups[span])) for span in spans]
    columns["nodes"] = [abbreviate_nodes(groups[span]) for span in spans]
    for name in columns:
        table.add_column(name, justify="right" if name == "count" else "left")
    cells = [*zip(*columns.values(), strict=True)]
    if len(cells) > 2 * SHOWN_ENDS:
        middle = f"... {len(cells) - 2 * SHOWN_ENDS:,} more"
        cells[SHOWN_ENDS:-SHOWN_ENDS] = [(middle, "", "", "")]
    for row in cells:
        table.add_row(*map(escaped_text, row))
    return table


def metrics_table(
    what: str, names: Iterable[str], columns: Mapping[str, Sequence[str]]
) -> Table:
    """Return a table with one row per name.

    Parameters
    ----------
    what : str
        Heading of the column of names.
    names : iterable of str
    columns : mapping of heading to sequence of str
        Cells, in the order of the names.
    """
    table = Table(box=SIMPLE_HEAD)
    table.add_column(what)
    for heading in columns:
        table.add_column(escaped_text(heading), justify="right")
    for name, *cells in zip(names, *columns.values(), strict=True):
        table.add_row(escaped_text(name), *cells)
    return table


def comparison_table(
    groups: Mapping[str, Mapping[str, WindowLike | None]],
    names: Sequence[str] = tuple(TOTALS),
) -> Table:
    """Return a table with one row per window; the best value of each group is marked.

    Parameters
    ----------
    groups : mapping of shape to mapping of criterion to Window
        Windows of one shape are compared with each other; None means no window.
    names : sequence of str
        Totals to compare; smaller values are better.
    """
    table = Table(box=SIMPLE_HEAD, caption="* best of the column for its shape")
    table.add_column("shape", justify="left")
    table.add_column("best by", justify="left", no_wrap=True)
    for name in names:
        table.add_column(TOTALS[name], justify="right")
    texts: dict[tuple[str, str], list[str]] = {}
    values_of: dict[tuple[str, str], npt.NDArray[Any]] = {}
    clock = None
    for heading, windows in groups.items():
        found = [w for w in windows.values() if w is not None]
        clock = next((c for w in found if (c := getattr(w, "clock", None))), clock)
        for name in names:
            values = np.array([getattr(w, name) for w in found], float)
            values_of[heading, name] = values
            texts[heading, name] = format_times(name, values, clock)
    dates, offset = shorten_dates(
        {key: cells for key, cells in texts.items() if key[1] in ("start", "finish")}
    )
    texts |= dates
    if offset:
        table.caption = f"{table.caption}; {zone_caption(offset, clock)}"
    for heading, windows in groups.items():
        cells: dict[str, list[Text]] = {
            name: [] for name, w in windows.items() if w is not None
        }
        for name in names:
            values = values_of[heading, name]
            best = values == values.min() if values.size else values
            for row, text, mark in zip(cells, texts[heading, name], best, strict=True):
                best_of = Text.assemble((text, "bold green"), "*")
                cells[row].append(best_of if mark else escaped_text(f"{text} "))
        for name in windows:
            label = escaped_text(TOTALS.get(name, name))
            row_cells = cells.get(name, [escaped_text("no window")])
            table.add_row(escaped_text(heading), label, *row_cells)
            heading = ""
        table.add_section()
    return table
