"""What a page shows: nodes, free and busy time, and windows or jobs, as columns."""

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

#: A part of an item: on `count` nodes from `node` on.
PART = np.dtype(
    [
        ("node", "i4"),
        ("count", "i4"),
        ("start", "f8"),
        ("end", "f8"),
        ("cost", "f4"),
        ("item", "i4"),
    ]
)


@dataclass(frozen=True)
class Background:
    """What items lie on.

    Attributes
    ----------
    free, busy : structured array
        Spans of nodes.
    rest : {"busy", "free", "blank"}
        What a node is where neither says anything.
    nodes : ndarray of int64
        Which nodes there are, ascending; those of the items come to them.
    performance : ndarray of float32
        Of these, NaN where it is not known.
    clock, machine : Clock or None, Machine or None
    last : float or None
        The right edge, where it is not the latest time.
    seconds : float or None
        How long a time unit is, where there is no clock but that is known.
    noun : str
        What a node is called: "node" or "processor".
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


@dataclass(frozen=True)
class Groups:
    """Items of one colour: what a group is, their names, and the group of each."""

    noun: str
    names: Sequence[str]
    of: NDArray[np.int64]


@dataclass(frozen=True)
class Field:
    """A column that is told of items: a time, a span of time, or a number."""

    name: str
    kind: Literal["time", "span", "number"]
    values: NDArray[Any]


@dataclass(frozen=True)
class Items:
    """Windows, or jobs.

    Attributes
    ----------
    noun : str
        What one is called: "window" or "job".
    names : sequence of str, or ndarray of int64
        Their names, or their numbers.
    start, finish : ndarray of float64
    parts : structured array
        In any order; `item` is the row.
    chosen : ndarray of bool
        False: an alternative that was not taken.
    groups : Groups or None
        None: each has a colour of its own.
    fields : sequence of Field
    marks : sequence of (float, str)
        Times that are marked across all nodes.
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
        """No windows."""
        empty = np.empty(0)
        nothing = np.empty(0, PART)
        return Items("window", (), empty, empty, nothing, np.empty(0, np.bool_))


def empty_spans() -> NDArray[Any]:
    """No spans."""
    return np.empty(0, SPAN)


def to_spans(rows: NDArray[Any]) -> NDArray[Any]:
    """The columns that are shown of free slots or tasks."""
    found = np.empty(len(rows), SPAN)
    for name in ("node", "start", "end"):
        found[name] = rows[name]
    known = rows.dtype.names or ()
    found["price"] = rows["price"] if "price" in known else np.nan
    return found


def to_parts(rows: NDArray[Any], item: NDArray[Any] | int) -> NDArray[Any]:
    """The columns that are shown of parts of windows, each on one node."""
    found = np.empty(len(rows), PART)
    for name in ("node", "start", "end"):
        found[name] = rows[name]
    known = rows.dtype.names or ()
    found["cost"] = rows["cost"] if "cost" in known else np.nan
    found["count"], found["item"] = 1, item
    return found
