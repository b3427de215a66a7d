"""The content of a page as columns: nodes, free and busy time, windows or jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Background",
    "Field",
    "Groups",
    "Items",
    "empty_spans",
    "to_parts",
    "to_spans",
]

SPAN = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8"), ("price", "f4")])

#: A part of an item, on nodes `node` to ``node + count - 1``; `item` is its index. Its
#: height is the share of its row that it takes: 1 for whole nodes.
PART = np.dtype(
    [
        ("node", "i4"),
        ("count", "i4"),
        ("start", "f8"),
        ("end", "f8"),
        ("cost", "f4"),
        ("item", "i4"),
        ("height", "f4"),
    ]
)


@dataclass(frozen=True)
class Background:
    """The nodes and their free and busy time, on which items are drawn.

    Attributes
    ----------
    free, busy : structured array
        Spans of nodes.
    rest : {"busy", "free", "blank"}
        The state of a node outside of `free` and `busy`.
    nodes : ndarray of int64
        The node ids, ascending; nodes of items are added to them.
    performance : ndarray of float32
        The performance of `nodes`; NaN if unknown.
    clock, machine : Clock or None, Machine or None
    last : float or None
        The right edge; None: the latest time.
    seconds : float or None
        The length of a time unit if there is no clock; None: unknown.
    noun : str
        The word for a node: "node" or "processor".
    disabled : structured array or None
        Spans in which nodes are disabled: fields node, start, end and owner (the
        reason), sorted by (node, start), without overlaps.
    booked : structured array or None
        Further spans whose times the picture includes.
    priced : pair of structured array and Tariffs, or None
        The slots whose prices change with time, and their tariffs.
    """

    free: NDArray[Any]
    busy: NDArray[Any]
    rest: Literal["busy", "free", "blank"]
    nodes: NDArray[np.int64]
    performance: NDArray[np.float32]
    clock: Any = None
    machine: Any = None
    last: float | None = None
    seconds: float | None = None
    noun: str = "node"
    disabled: NDArray[Any] | None = None
    booked: NDArray[Any] | None = None
    priced: tuple[NDArray[Any], Any] | None = None


@dataclass(frozen=True)
class Groups:
    """Groups of items, with a colour each.

    `noun` is the word for a group, `names` are the names of the groups, and `of` is the
    group of each item.
    """

    noun: str
    names: Sequence[str]
    of: NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """A column of items to display: a time, a duration (span) or a number."""

    name: str
    kind: Literal["time", "span", "number"]
    values: NDArray[Any]


@dataclass(frozen=True)
class Items:
    """Windows or jobs to show.

    Attributes
    ----------
    noun : str
        The word for an item: "window" or "job".
    names : sequence of str, or ndarray of int64
        Their names, or their numbers.
    start, finish : ndarray of float64
    parts : structured array
        The parts of all items, in any order; `item` is the index of the item.
    chosen : ndarray of bool
        False: an alternative that was not chosen.
    groups : Groups or None
        None: each item has its own colour.
    fields : sequence of Field
    marks : sequence of (float, str)
        Times, with a text, that are marked across all nodes.
    clock, machine : Clock or None, Machine or None
    """

    noun: str
    names: Sequence[str] | NDArray[np.int64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    parts: NDArray[Any]
    chosen: NDArray[np.bool_]
    groups: Groups | None = None
    fields: Sequence[Field] = ()
    marks: Sequence[tuple[float, str]] = ()
    clock: Any = None
    machine: Any = None

    def __len__(self) -> int:
        return len(self.start)

    @staticmethod
    def empty() -> Items:
        """Return no items."""
        empty = np.empty(0)
        nothing = np.empty(0, PART)
        return Items("window", (), empty, empty, nothing, np.empty(0, np.bool_))


def empty_spans() -> NDArray[Any]:
    """Return an array without spans."""
    return np.empty(0, SPAN)


def to_spans(rows: NDArray[Any]) -> NDArray[Any]:
    """Return free slots or tasks as spans; a missing price is NaN."""
    found = np.empty(len(rows), SPAN)
    for name in ("node", "start", "end"):
        found[name] = rows[name]
    known = rows.dtype.names or ()
    found["price"] = rows["price"] if "price" in known else np.nan
    return found


def to_parts(rows: NDArray[Any], item: NDArray[Any] | int) -> NDArray[Any]:
    """Return the parts of windows, each on one whole node; a missing cost is NaN."""
    found = np.empty(len(rows), PART)
    for name in ("node", "start", "end"):
        found[name] = rows[name]
    known = rows.dtype.names or ()
    found["cost"] = rows["cost"] if "cost" in known else np.nan
    found["count"], found["item"], found["height"] = 1, item, 1
    return found
