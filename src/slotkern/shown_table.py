"""A table of what things show of themselves, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: A column, or what makes some rows of it: only those that are looked at.
    Column = NDArray[Any] | Callable[[NDArray[np.int64]], Any]

__all__ = ["Table", "joined"]


class Table(NamedTuple):
    """A table, and what its numbers mean.

    Attributes
    ----------
    heading : str
        What it is a table of.
    columns : mapping of str to Column
    rows : int
    terms : (Clock or None, Machine or None), or None
        What times and nodes are called.
    times, spans : tuple of str
        The columns that are times, and durations, of the clock.
    facts : mapping
        What is to be said of the whole, by name.
    notes : sequence of str
        The same in sentences.
    """

    heading: str
    columns: Mapping[str, Column]
    rows: int
    terms: Any = None
    times: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    notes: Sequence[str] = ()

    @staticmethod
    def of(heading: str, array: NDArray[np.void], **more: Any) -> Table:
        """The table of a structured array."""
        columns = {name: array[name] for name in array.dtype.names or ()}
        return Table(heading, columns, len(array), **more)

    @property
    def clock(self) -> Any:
        """What the times mean, or None."""
        return None if self.terms is None else self.terms[0]

    def names(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        """The names of the nodes of some rows, or None."""
        machine = None if self.terms is None else self.terms[1]
        nodes = self.columns.get("node")
        if machine is None or nodes is None:
            return None
        names: NDArray[Any] = np.asarray(machine.names)
        mine: NDArray[Any] = names[self.some("node", rows)]
        return mine

    def some(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Some rows of a column."""
        column = self.columns[name]
        return np.asarray(column(rows) if callable(column) else column[rows])

    def whole(self) -> dict[str, NDArray[Any]]:
        """All columns as they are, and the names of the nodes as ``node_name``."""
        rows = np.arange(self.rows)
        found = {
            name: self.some(name, rows) if callable(column) else np.asarray(column)
            for name, column in self.columns.items()
        }
        names = self.names(rows)
        return found if names is None else found | {"node_name": names}

    def dates(self) -> dict[str, NDArray[np.datetime64]]:
        """Each time as a date of UTC, under its name and ``_time``."""
        clock, rows = self.clock, np.arange(self.rows)
        if clock is None:
            return {}
        return {f"{name}_time": clock.utc(self.some(name, rows)) for name in self.times}


def joined(
    nodes: NDArray[Any], first: NDArray[np.int64], terms: Any
) -> Callable[[NDArray[np.int64]], list[str]]:
    """Return what makes text of nodes, ``first[i]:first[i + 1]`` of each window."""
    machine = None if terms is None else terms[1]

    def some(rows: NDArray[np.int64]) -> list[str]:
        found = []
        for row in rows.tolist():
            each = nodes[first[row] : first[row + 1]]
            called = each if machine is None else machine.names[each]
            found.append(", ".join(map(str, called.tolist())))
        return found

    return some
