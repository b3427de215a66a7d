"""The table that a result displays or exports, and the meaning of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from slotkern.foundation.context import SlotContext

    #: A column, or a function that computes the cells of the given rows on demand.
    Column = NDArray[Any] | Callable[[NDArray[np.int64]], Any]

__all__ = ["Table", "join_nodes"]


class Table(NamedTuple):
    """A table with a heading, and the clock and machine that interpret its numbers.

    Attributes
    ----------
    heading : str
        The title of the table.
    columns : mapping of str to Column
    rows : int
    context : SlotContext or None
        The clock of the times, and the machine with the names of the nodes.
    times, spans : tuple of str
        The columns that hold times, and those that hold durations, in clock units.
    facts : mapping
        Values that describe the whole table, by name.
    notes : sequence of str
        Sentences that describe the whole table.
    """

    heading: str
    columns: Mapping[str, Column]
    rows: int
    context: SlotContext | None = None
    times: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    facts: Mapping[str, Any] = {}
    notes: Sequence[str] = ()

    @staticmethod
    def from_array(heading: str, array: NDArray[np.void], **more: Any) -> Table:
        """Return the table of a structured array, one column per field."""
        columns = {name: array[name] for name in array.dtype.names or ()}
        return Table(heading, columns, len(array), **more)

    @property
    def clock(self) -> Any:
        """The clock of the times, or None."""
        return None if self.context is None else self.context.clock

    def node_names(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        """Return the node names of the given rows; None without a machine."""
        machine = None if self.context is None else self.context.machine
        nodes = self.columns.get("node")
        if machine is None or nodes is None:
            return None
        names: NDArray[Any] = np.asarray(machine.names)
        mine: NDArray[Any] = names[self.column_at("node", rows)]
        return mine

    def column_at(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the cells of a column in the given rows."""
        column = self.columns[name]
        return np.asarray(column(rows) if callable(column) else column[rows])

    def all_columns(self) -> dict[str, NDArray[Any]]:
        """Return all columns as arrays, and the names of the nodes as ``node_name``."""
        rows = np.arange(self.rows)
        found = {
            name: self.column_at(name, rows) if callable(column) else np.asarray(column)
            for name, column in self.columns.items()
        }
        names = self.node_names(rows)
        return found if names is None else found | {"node_name": names}

    def dates(self) -> dict[str, NDArray[np.datetime64]]:
        """Return each time column as dates of UTC, named with the suffix ``_time``."""
        clock, rows = self.clock, np.arange(self.rows)
        if clock is None:
            return {}
        return {
            f"{name}_time": clock.utc(self.column_at(name, rows)) for name in self.times
        }


def join_nodes(
    nodes: NDArray[Any], first: NDArray[np.int64], context: Any
) -> Callable[[NDArray[np.int64]], list[str]]:
    """Return a function that lists the nodes of windows as text.

    Window i has the nodes ``nodes[first[i]:first[i + 1]]``, written as names if
    `context` has a machine.
    """
    machine = None if context is None else context.machine

    def node_lists(rows: NDArray[np.int64]) -> list[str]:
        found = []
        for row in rows.tolist():
            each = nodes[first[row] : first[row + 1]]
            called = each if machine is None else machine.names[each]
            found.append(", ".join(map(str, called.tolist())))
        return found

    return node_lists
