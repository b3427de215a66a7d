"""Tables as HTML for notebooks: abridged, escaped, with a time bar in each row.

The HTML class is that of pandas and polars tables, for which notebooks have styles. All
colours are those of the page, except that of the bars, whose contrast is 3:1 on white
and on black, so that tables fit light and dark themes.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display.table import Table
from slotkern.foundation.hostlists import abridge

__all__ = ["html_of"]

#: The most rows and columns of a table, and characters of a cell. Longer tables keep
#: their first and last rows, wider ones their first columns.
ROWS, COLUMNS, LETTERS = 10, 16, 60
BAR, WIDTH, HEIGHT = "#3b8fc4", 160, 12


def html_of(table: Table) -> str:
    """Return a table as HTML."""
    rows = np.arange(table.rows)
    if table.rows > ROWS:
        rows = np.concatenate([rows[: ROWS // 2], rows[-ROWS // 2 :]])
    facts = {name: value for name, value in table.facts.items() if value is not None}
    details = " · ".join(
        f"{escape(name)} {_words(value)}" for name, value in facts.items()
    )
    clock = "" if table.clock is None else str(table.clock)
    notes = [] if clock in table.heading else [clock]
    lines = "".join(f"<div>{escape(note)}</div>" for note in (*notes, *table.notes))
    # The two last classes prevent that a dollar sign in a name begins a formula.
    return (
        '<div class="slotkern tex2jax_ignore mathjax_ignore">'
        f"<div><b>{escape(table.heading)}</b>{' · ' if details else ''}{details}</div>"
        f"{lines}{_body(table, rows)}</div>"
    )


def _body(table: Table, rows: NDArray[np.int64]) -> str:
    if not table.columns:
        return ""
    cells = {name: _column(table, name, rows) for name in [*table.columns][:COLUMNS]}
    if bars := _bars(table, rows):
        cells[""] = (bars, "left")
    if len(table.columns) > COLUMNS:
        more = f"… {len(table.columns)} columns"
        cells[more] = ([""] * len(rows), "left")
    head = "".join(
        f'<th style="text-align:{align}">{escape(name)}</th>'
        for name, (_, align) in cells.items()
    )
    lines = [
        "".join(
            f'<td style="text-align:{align};white-space:nowrap">{values[row]}</td>'
            for values, align in cells.values()
        )
        for row in range(len(rows))
    ]
    if table.rows > len(rows):
        lines.insert(
            ROWS // 2, f'<td colspan="{len(cells)}">… {table.rows:,} rows</td>'
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table border="1" class="dataframe"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _column(table: Table, name: str, rows: NDArray[np.int64]) -> tuple[list[str], str]:
    """Return the formatted cells of a column, escaped, and their alignment."""
    values, clock = table.column_at(name, rows), table.clock
    called = table.node_names(rows) if name == "node" else None
    if called is not None:
        return [_words(each) for each in called.tolist()], "left"
    if clock is not None and name in table.times:
        text = np.strings.replace(clock.text(values), "T", " ")
        return text.tolist(), "left"
    if clock is not None and name in table.spans:
        found = [clock.timedelta(each) for each in values.tolist()]
        return ["" if each is None else str(each) for each in found], "right"
    named = table.context is not None and table.context.machine is not None
    if named and name == "nodes" and values.dtype.kind in "UO":
        lists = [
            abridge(each.split(", "), LETTERS - 10, ", ") if each else ""
            for each in values.tolist()
        ]
        return [*map(_words, lists)], "left"
    align = "right" if values.dtype.kind in "iufm" else "left"
    return [_words(each) for each in values.tolist()], align


def _words(value: Any) -> str:
    """Format and escape a cell; non-integers have six digits."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        if value.is_integer() and abs(value) < 1e15:
            text = str(int(value))
        else:
            text = f"{value:.6g}" if not 1e6 <= abs(value) < 1e15 else f"{value:.2f}"
    else:
        text = str(value)
    return escape(text if len(text) <= LETTERS else text[: LETTERS - 1] + "…")


def _bars(table: Table, rows: NDArray[np.int64]) -> list[str]:
    """Draw the time span of each row as a bar; no bars if all spans are equal."""
    ends = [name for name in ("end", "finish") if name in table.columns]
    if "start" not in table.columns or not ends or not len(rows):
        return []
    left = table.column_at("start", rows).astype(np.float64)
    right = table.column_at(ends[0], rows).astype(np.float64)
    known = np.isfinite(left)
    edges = np.concatenate([left[known], right[np.isfinite(right)]])
    low, high = edges.min(initial=math.inf), edges.max(initial=-math.inf)
    if not low < high or (len(rows) > 1 and len({*zip(left, right, strict=True)}) == 1):
        return []
    scale = WIDTH / (high - low)
    bars = []
    for begin, end, there in zip(left, right.clip(max=high), known, strict=True):
        box = ""
        if there and end >= begin:
            x, wide = (begin - low) * scale, max(1.0, (end - begin) * scale)
            x = min(x, WIDTH - wide)
            box = (
                f'<rect x="{x:.1f}" width="{wide:.1f}" height="{HEIGHT}" fill="{BAR}"/>'
            )
        bars.append(
            f'<svg width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="currentColor" '
            f'opacity="0.08"/>{box}</svg>'
        )
    return bars
