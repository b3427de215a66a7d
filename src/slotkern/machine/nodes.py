"""Machines: tables of nodes with names, performances, prices and further columns."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.expressions.groups import check_nesting, is_empty_cell
from slotkern.files.atomic import AnyPath
from slotkern.foundation.checks import (
    Source,
    column_label,
    hint_keywords,
    integer,
    meant,
    number,
    quote,
    row_label,
    visible,
)
from slotkern.foundation.hostlists import count, expand, is_hostlist, quoted
from slotkern.foundation.logger import log
from slotkern.foundation.special_fields import level_name

from .calendar import Moments
from .capacity import Capacity, capacity_of
from .clock import is_number
from .frames import columns_of, source_name

__all__ = ["Machine", "numbers_of", "tariff_names"]

#: The most nodes of a machine. Node ids are int32; larger tables are rather mistakes.
MAX_NODES = 2**24


class Machine(HasTable):
    """Machine(table, *, name="name", processors=None, capacity=None, prices=None, \
grain=None, levels=())

    A table of nodes; the node of row i has the id i in slots, windows and pools.

    Parameters
    ----------
    table : DataFrame, Arrow table, mapping, structured array or sequence of mappings
        A table of pandas, polars, pyarrow, or any object with an Arrow stream. Its
        columns: the name, any text that no other node has, or a hostlist such as
        ``n[001-016]`` for several equal nodes; ``performance``, work per time unit,
        by default 1; ``price``, money per time unit, by default 0; ``tariff``, the name
        of the tariff that multiplies the price (see `free_slots`), empty for none; any
        others, which are copied to the slots, so that filters can use them.
    name : str
        The column of names.
    processors : str or int, optional
        For nodes with several processors: the column of their numbers, or one number
        for all nodes. Each processor becomes a row, named ``node/0``, ``node/1``, and
        its column ``host`` contains the name of the node.
    capacity : str or sequence of str, optional
        Columns of whole numbers: what several jobs can share of a node, such as
        ``["cores", "gpus", "memory"]``. See `HostPool`.
    prices : mapping, optional
        Price of one unit of a resource for one time unit: a number, or the name of a
        column, as ``{"cores": 0.01, "gpus": "gpu_price"}``; resources without one are
        free. By default a share pays the node's price times its largest part of any
        resource: 16 of 64 cores and one of four GPUs pay a quarter.
    grain : mapping of str to int, optional
        Units to which shares are rounded up, as ``{"memory": 4096}``. Searches take
        less time and memory if requests have few different shares.
    levels : sequence of str
        Columns whose values are groups of nodes, from the finest to the coarsest, such
        as ``["rack", "site"]``. No cell may be empty, and all nodes of a group belong
        to one group of each coarser level. Group rules of a request accept any column;
        the columns named here are checked once, with the machine.

    Attributes
    ----------
    names : ndarray of str, shape (N,)
    performance, price : ndarray of float64, shape (N,)
    columns : dict of ndarray
        The further columns.
    capacity : Capacity or None
        What the nodes share: ``names`` and ``amounts`` (N rows), ``prices``, ``grain``.
    levels : tuple of str

    Raises
    ------
    ValueError, TypeError
        For invalid values and duplicate names; the message contains the row (both
        rows), the column and the value.

    Notes
    -----
    A processor is a node of its own: a request for 8 nodes may get processors of
    several hosts, unless it has ``within="host"``.

    A row whose name is a hostlist (``n[001-004,007]``, ``rack[1-2]n[01-16]``,
    ``n1,n[3-5]``) becomes a row for each of its names, with the same further columns. A
    name that contains a bracket or a comma itself is written in double quotes.

    Examples
    --------
    >>> import slotkern as sk
    >>> machine = sk.Machine({"name": ["anna", "bert"], "performance": [1, 2],
    ...                       "memory": [64, 128]})
    >>> machine
    Machine(2 nodes: performance, price, memory)
    >>> machine.ids(["bert"])
    array([1], dtype=int32)
    >>> sk.Machine({"name": ["anna"], "cores": [2]}, processors="cores").names.tolist()
    ['anna/0', 'anna/1']
    >>> sk.Machine({"name": ["n[08-10]"], "memory": [64]}).names.tolist()
    ['n08', 'n09', 'n10']
    """

    __slots__ = (
        "_index",
        "capacity",
        "columns",
        "levels",
        "names",
        "performance",
        "price",
    )

    names: NDArray[np.str_]
    performance: NDArray[np.float64]
    price: NDArray[np.float64]
    columns: dict[str, NDArray[Any]]
    capacity: Capacity | None
    levels: tuple[str, ...]

    @hint_keywords
    def __init__(
        self,
        table: Any,
        *,
        name: str = "name",
        processors: str | int | None = None,
        capacity: str | Sequence[str] | None = None,
        prices: Mapping[str, str | float] | None = None,
        grain: Mapping[str, int] | None = None,
        levels: str | Sequence[str] = (),
    ) -> None:
        what = source_name(table, "machine")
        given = columns_of(table, what)
        if name not in given:
            raise ValueError(
                f"{what} has no column {name!r}; it has {', '.join(given) or 'none'}"
                f"{meant(name, given)}"
            )
        names, rows = _names(given.pop(name), what)
        columns: dict[str, NDArray[Any]] = {}
        for key, values in given.items():
            if key in ("node", "start", "end"):
                raise ValueError(f"{what}: the column {key!r} is one of the slots")
            if isinstance(values, Moments):
                values = values.values
            values = np.broadcast_to(
                values, len(names) if rows is None else rows[-1] + 1
            )
            columns[key] = values.copy() if rows is None else values[rows]
        if "tariff" in columns:
            columns["tariff"] = tariff_names(columns["tariff"], what)
        if rows is not None:
            what = _repeated(what, rows)
        if processors is not None:
            names, columns, of = _one_each(names, columns, processors, what)
            what = _repeated(what, of)
        given_columns = tuple(columns)
        for key, value in (("performance", 1.0), ("price", 0.0)):
            if key not in columns:
                reason = "%s has no column %r: it is %g of each node%s"
                log.info(reason, what, key, value, _meant(key, given_columns))
                columns[key] = np.full(len(names), value)
        self.names = names
        self.performance = numbers_of(columns.pop("performance"), what, "performance")
        self.price = numbers_of(columns.pop("price"), what, "price")
        _check(self.performance > 0, self.performance, what, "performance", "positive")
        _check(self.price >= 0, self.price, what, "price", "at least 0")
        self.columns = columns
        self.levels = _levels(levels, columns, what)
        self.capacity = capacity_of(capacity, columns, prices, grain, what)
        if self.capacity is not None:
            columns |= self.capacity.columns()
        self._index: dict[str, int] = {}
        for row, each in enumerate(names.tolist()):
            if self._index.setdefault(each, row) != row:
                first, second = row_label(what, self._index[each]), row_label(what, row)
                raise ValueError(
                    f"{what}, {second}: {each!r} is the name of {first}"
                    if first != second
                    else f"{what}, {second}: the hostlist has {each!r} twice"
                )
        for column in (names, self.performance, self.price, *columns.values()):
            column.flags.writeable = False

    @classmethod
    def homogeneous(
        cls,
        nodes: int,
        *,
        performance: float = 1.0,
        price: float = 0.0,
        prefix: str = "n",
        capacity: str | Sequence[str] | None = None,
        prices: Mapping[str, str | float] | None = None,
        grain: Mapping[str, int] | None = None,
        levels: str | Sequence[str] = (),
        **columns: Any,
    ) -> Machine:
        """Create a machine of identical nodes.

        Parameters
        ----------
        nodes : int
        performance, price : float
            Of each node.
        prefix : str
            Names consist of the prefix and a number from 0, all of equal width.
        capacity, prices, grain, levels : optional
            As for `Machine`.
        **columns : array_like
            Further columns, or one value for all nodes.

        Examples
        --------
        >>> import slotkern as sk
        >>> sk.Machine.homogeneous(12, price=0.5).names[[0, -1]].tolist()
        ['n00', 'n11']
        """
        nodes = integer("nodes", nodes, least=1, most=MAX_NODES)
        width = len(str(nodes - 1))
        names = [f"{prefix}{k:0{width}}" for k in range(nodes)]
        fixed = {
            "name": np.array(names),
            "performance": np.full(nodes, number("performance", performance, above=0)),
            "price": np.full(nodes, number("price", price, least=0)),
        }
        table = fixed | {key: np.asarray(v) for key, v in columns.items()}
        more = {"capacity": capacity, "prices": prices, "grain": grain}
        return cls(table, levels=levels, **more)  # type: ignore[arg-type]

    @classmethod
    def read(
        cls,
        path: AnyPath,
        *,
        name: str = "name",
        processors: str | int | None = None,
        **options: Any,
    ) -> Machine:
        """Read a machine from a file: ``.csv``, ``.json`` or ``.parquet``.

        Further arguments are those of `Machine`, such as ``capacity=``.

        Raises
        ------
        ValueError
            For another suffix, an invalid file or an invalid machine; the message names
            the file.
        OSError
            If the file cannot be read.
        """
        from .files import read_columns

        columns = read_columns(path, texts=(name, "tariff"))
        return cls(columns, name=name, processors=processors, **options)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        known = ", ".join(["performance", "price", *self.columns])
        nodes = "1 node" if len(self) == 1 else f"{len(self):,} nodes"
        return visible(f"Machine({nodes}: {known})")

    def _as_table(self) -> Table:
        """Return a table with one row per node."""
        return Table(repr(self), self.to_dict(), len(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machine):
            return NotImplemented
        mine, theirs = self.to_dict(), other.to_dict()
        return (
            mine.keys() == theirs.keys()
            and all(np.array_equal(mine[key], theirs[key]) for key in mine)
            and self._options() == other._options()
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return _restored, (self.to_dict(), self._options())

    def _options(self) -> dict[str, Any]:
        """Return the arguments of `Machine` for levels and what nodes share."""
        if self.capacity is None:
            return {"levels": self.levels}
        names, _, prices, grain = self.capacity
        shared = {"capacity": names, "prices": prices, "grain": grain or None}
        return {"levels": self.levels, **shared}

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return all columns as `Machine` accepts them, with special names quoted."""
        fixed: dict[str, NDArray[Any]] = {
            "name": quoted_names(self.names),
            "performance": self.performance,
            "price": self.price,
        }
        return fixed | self.columns

    def ids(self, nodes: Any, what: str = "nodes") -> NDArray[np.int32]:
        """Convert names, hostlists or ids of nodes to ids.

        Parameters
        ----------
        nodes : str, sequence of str or of int
            A text that is not the name of a node is parsed as a hostlist, such as
            ``n[001-004]``.
        what : str
            The name of the nodes in errors.

        Raises
        ------
        ValueError, TypeError
            If the machine lacks a node, or a text is not a valid hostlist; the message
            contains the first such row and node.
        """
        return self._ids_and_rows(nodes, what)[0]

    def _ids_and_rows(
        self, nodes: Any, what: str
    ) -> tuple[NDArray[np.int32], NDArray[np.int64] | None]:
        """Return ids, and the row of each if a hostlist gave several for one row."""
        given: NDArray[Any] = np.atleast_1d(nodes)
        rows = None
        if given.dtype.kind in "UO" and given.ndim == 1:
            given, rows = self._expanded(given, what)
        if given.dtype.kind in "iu":
            found = given.astype(np.int64)
            found[given >= len(self)] = -1
            self._check_ids(given, found, what)
        elif given.dtype.kind in "UO" or not given.size:
            each = map(self._index.get, given.tolist(), repeat(-1))
            found = np.fromiter(each, np.int64, len(given))
        else:
            raise TypeError(f"{what} must be names or ids of nodes, got {given.dtype}")
        if (found < 0).any():
            row = int((found < 0).argmax())
            value = quote(given[row : row + 1].tolist()[0])
            at = f", {row_label(what, row if rows is None else int(rows[row]))}"
            raise ValueError(
                f"{what}{at if np.ndim(nodes) else ''}: {value} is no node of the "
                f"machine{self._alike(given[row : row + 1].tolist()[0])}"
            )
        return found.astype(np.int32), rows

    def _alike(self, value: Any) -> str:
        """Propose the node that differs in leading zeros, or the most similar one."""
        if not isinstance(value, str):
            return ""
        bare = _without_zeros(value)
        for name in self._index:
            if _without_zeros(name) == bare:
                return f"; did you mean {name!r}?"
        return meant(value, self._index) if len(self) <= 1000 else ""

    def _expanded(
        self, given: NDArray[Any], what: str
    ) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Expand hostlists: return names and the row of each; None if no row is one."""

        def is_list(text: Any) -> bool:
            return isinstance(text, str) and is_hostlist(text)

        texts = given.tolist()
        lists = {
            text for text in set(filter(is_list, texts)) if text not in self._index
        }
        return _unfolded(given, texts, lists, what) if lists else (given, None)

    def _check_ids(
        self, given: NDArray[Any], found: NDArray[np.int64], what: str
    ) -> None:
        """Refuse a number that is the id of one node and the name of another."""
        short = np.strings.str_len(self.names) <= 18  # the digits of an int64
        named = np.flatnonzero(np.strings.isdecimal(self.names) & short)
        if not len(named):
            return
        numbers = self.names[named].astype(np.int64)
        order = np.argsort(numbers)
        numbers, named = numbers[order], named[order]
        at = np.searchsorted(numbers, given).clip(max=len(numbers) - 1)
        wrong = (numbers[at] == given) & (named[at] != found)
        if wrong.any():
            row = int(wrong.argmax())
            place, node = row_label(what, row), int(named[at[row]])
            raise ValueError(
                f"{what}, {place}: {given[row]} is a number, which means a row of the "
                f"machine, but node {str(self.names[node])!r} is row {node}; write "
                "names as text"
            )


def _restored(columns: dict[str, NDArray[Any]], options: dict[str, Any]) -> Machine:
    """Return an unpickled machine."""
    return Machine(columns, **options)


def _levels(
    levels: Any, columns: dict[str, NDArray[Any]], what: str
) -> tuple[str, ...]:
    """Check the names of levels, that no cell is empty, and that the levels nest."""
    if not isinstance(levels, Iterable):
        raise TypeError(f"{what}: levels must be names of columns, got {quote(levels)}")
    found = (levels,) if isinstance(levels, str) else tuple(levels)
    for level in found:
        level_name(level, "a level")
        if level not in columns:
            there = ", ".join(columns) or "no further columns"
            raise ValueError(
                f"{what} has no column {level!r} for a level; it has {there}"
                f"{meant(level, columns)}"
            )
        if found.count(level) > 1:
            raise ValueError(f"{what}: levels has {level!r} twice")
        empty = np.flatnonzero(is_empty_cell(columns[level]))
        if empty.size:
            place = row_label(what, int(empty[0]))
            raise ValueError(
                f"{what}, {place}: the level {level!r} is empty: each node needs one"
            )
    check_nesting(found, columns, what, ordered=True)
    return found


def _without_zeros(name: str) -> str:
    """Return a name whose numbers have no leading zeros."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name)


def _meant(name: str, columns: tuple[str, ...]) -> str:
    """Propose the column that a missing name may mean, or list all columns."""
    if question := meant(name, columns):
        return question
    return f"; it has {', '.join(columns)} beside the names" if columns else ""


def _unfolded(
    given: NDArray[Any], texts: list[Any], lists: set[str], what: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Replace hostlists by their names; return the names and the row of each."""
    sizes: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text in lists and text not in sizes:
            try:
                sizes[text] = count(text)
            except ValueError as error:
                raise ValueError(f"{what}, {row_label(what, row)}: {error}") from None
    repeats = np.array([sizes.get(text, 1) for text in texts])
    if (total := int(repeats.sum())) > MAX_NODES:
        raise ValueError(
            f"{what}: its hostlists have {total:,} nodes in all; at most {MAX_NODES:,} "
            "are allowed"
        )
    names = {text: expand(text) for text in lists}
    flat = [name for text in texts for name in names.get(text, (text,))]
    column = np.array(flat, np.str_ if given.dtype.kind == "U" else object)
    return column, np.repeat(np.arange(len(texts)), repeats)


def _repeated(what: str, rows: NDArray[np.int64]) -> Source:
    """Return the name of a table in errors that maps repeated rows to given rows."""
    return Source(str(what), lambda row: row_label(what, int(rows[row])))


def quoted_names(names: NDArray[np.str_]) -> NDArray[np.str_]:
    """Quote the names that `Machine` would otherwise read as hostlists."""
    return np.array([*map(quoted, names.tolist())])


def _names(
    column: NDArray[Any] | Moments, what: str
) -> tuple[NDArray[np.str_], NDArray[np.int64] | None]:
    """Return the names, and the row of each if a hostlist gave several for one row."""
    values = column.values if isinstance(column, Moments) else np.atleast_1d(column)
    if not 1 <= len(values) <= MAX_NODES:
        reason = f"a machine has 1 to {MAX_NODES:,} nodes, not {len(values):,}"
        raise ValueError(reason if what == "machine" else f"{what}: {reason}")
    if values.dtype.kind not in "UiuO":
        raise TypeError(f"{what}: names must be text, got dtype {values.dtype}")
    for row, each in enumerate(values.tolist()):
        if values.dtype == object and not isinstance(each, str):
            place = row_label(what, row)
            raise TypeError(f"{what}, {place}: the name {quote(each)} is no text")
        if not str(each).strip("\0").strip():
            raise ValueError(f"{what}, {row_label(what, row)}: the name is empty")
    names = values.astype(np.str_)
    texts = names.tolist()
    lists = {*filter(is_hostlist, texts)}
    return _unfolded(names, texts, lists, what) if lists else (names, None)


def tariff_names(column: NDArray[Any], what: str) -> NDArray[np.str_]:
    """Check the names of tariffs; missing ones become empty."""
    if column.dtype.kind == "O":
        missing = [each is None or each != each for each in column.tolist()]
        column = np.where(missing, "", column)
    for row, each in enumerate(column.tolist()):
        if not isinstance(each, str):
            raise TypeError(
                f"{what}, {row_label(what, row)}: the tariff {quote(each)} is no text"
            )
    return column.astype(np.str_)


def _one_each(
    names: NDArray[np.str_],
    columns: dict[str, NDArray[Any]],
    processors: str | int,
    what: str,
) -> tuple[NDArray[np.str_], dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Repeat each node for its processors; return names, columns and node rows."""
    if isinstance(processors, str):
        if processors not in columns:
            raise ValueError(f"{what} has no column {processors!r} of processors")
        counts = columns.pop(processors)
        if counts.dtype.kind not in "iu" or (counts < 1).any():
            row = int((counts < 1).argmax()) if counts.dtype.kind in "iu" else 0
            reason = f"{quote(counts[row].item())} is not an integer of at least 1"
            raise ValueError(f"{what}, {row_label(what, row)}: {processors} {reason}")
    else:
        counts = np.full(len(names), integer("processors", processors, least=1))
    if counts.sum() > MAX_NODES:
        raise ValueError(f"a machine has at most {MAX_NODES:,} processors")
    if "host" in columns:
        raise ValueError(f"{what} has a column 'host' already; processors make one")
    host = np.repeat(names, counts)
    within = np.arange(len(host)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = {key: np.repeat(values, counts) for key, values in columns.items()}
    columns["host"] = host
    rows = np.repeat(np.arange(len(names)), counts)
    names = np.strings.add(np.strings.add(host, "/"), within.astype(np.str_))
    return names, columns, rows


def numbers_of(values: NDArray[Any], table: str, name: str) -> NDArray[np.float64]:
    """Convert a column to finite numbers; errors contain the row and the value."""
    column = np.asarray(values)
    if column.dtype.kind not in "iuf":
        cells = column.tolist()
        if not cells:
            raise TypeError(
                f"{column_label(table, name)} must be numbers, got dtype {column.dtype}"
            )
        # In a csv file, one cell that is not a number makes all cells text.
        wrong = (i for i, cell in enumerate(cells) if not _reads_as_number(cell))
        row = next(wrong, -1)
        reason = "is not a number" if row >= 0 else "is text, not a number"
        if row >= 0 and cells[row] is None:  # also NaN and NA of a csv file
            at = row_label(table, row)
            raise TypeError(f"{table}, {at}: {name} is empty or NaN, not a number")
        at, value = row_label(table, max(row, 0)), quote(cells[max(row, 0)])
        raise TypeError(f"{table}, {at}: {name} {value} {reason}")
    found = column.astype(np.float64)
    if not np.isfinite(found).all():
        row = int((~np.isfinite(found)).argmax())
        at = row_label(table, row)
        raise ValueError(f"{table}, {at}: {name} {column[row]} is not finite")
    return found


def _reads_as_number(value: Any) -> bool:
    try:
        return is_number(value) or (
            isinstance(value, str) and math.isfinite(float(value))
        )
    except ValueError:
        return False


def _check(
    good: NDArray[np.bool_],
    values: NDArray[np.float64],
    table: str,
    name: str,
    what: str,
) -> None:
    if not good.all():
        row = int((~good).argmax())
        at = row_label(table, row)
        raise ValueError(f"{table}, {at}: {name} {values[row]} is not {what}")
