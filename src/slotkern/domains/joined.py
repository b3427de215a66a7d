"""The joined pool: the free time of all domains in one `SlotPool`.

Input: the pool of each domain. Output: one pool with the free time of all, and the map
between its nodes and rows and those of the domains.

Node ids of the joined pool ascend by domain, then by node, so searches break ties in
this order. `JoinedSlots` holds what changes with slots and nodes only; it is built
again if a domain gets slots. `JoinedSlots.pool` builds the pool of the current free
time, and `JoinedSlots.update` replaces the free time of the nodes that have changed.
The spans of each row are those of the domain bit for bit, so the windows are exactly
those of one pool with all slots. Cost: O(m log m) for m slots, and O(log m) for each
span of a node that has changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool, restore_pool
from slotkern._kernels.slots import SLOT, SPAN
from slotkern._kernels.windows import Window
from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.machine.nodes import Machine, quoted_names
from slotkern.slots import row_order
from slotkern.tariffs.mapping import Tariffs

__all__ = ["LEVEL", "JoinedSlots"]

#: The column of slots and nodes that contains the name of the domain.
LEVEL = "domain"
#: A column of nodes whose values are names of one domain, besides its levels.
_HOST = "host"


class JoinedSlots:
    """The slots of all domains as one table.

    Attributes
    ----------
    context : SlotContext
        The clock and the tariffs of the domains, and a machine of all nodes: node
        ``n001`` of the domain ``cern`` is ``cern/n001``.
    origin : structured array
        The slots of all domains by (start, node), with the column ``domain``.

    Raises
    ------
    ValueError
        For domains whose clocks, columns or tariffs differ; the message contains the
        two domains.
    """

    def __init__(self, pools: Mapping[str, SlotPool]) -> None:
        self._given = {name: pool.origin for name, pool in pools.items()}
        _check_same("clock", {name: pool.clock for name, pool in pools.items()})
        local = {name: _local_columns(pool) for name, pool in pools.items()}
        sizes = [len(table) for table in self._given.values()]
        joined = np.zeros(sum(sizes), _common_type(self._given, local))
        self._members: dict[str, _Members] = {}
        nodes = at = 0
        for name, table in self._given.items():
            ids, part = _node_ids(pools[name]), joined[at : at + len(table)]
            for field in table.dtype.names or ():
                column = table[field]
                part[field] = _named(name, column) if field in local[name] else column
            part["node"] = nodes + np.searchsorted(ids, table["node"])
            part[LEVEL] = name
            used = np.unique(table["node"])
            self._members[name] = _Members(nodes, ids, at, used)
            nodes, at = nodes + len(ids), at + len(table)
        self._order = row_order(joined["node"], joined["start"])
        self._place = np.empty(len(joined), np.int64)
        self._place[self._order] = np.arange(len(joined))
        self.origin = joined.take(self._order)
        self.origin.flags.writeable = False
        self._by_node = row_order(self.origin["start"], self.origin["node"])
        self._nodes = self.origin["node"][self._by_node]
        self._starts = self.origin["start"][self._by_node]
        self.context = SlotContext(
            next(iter(pools.values())).clock,
            _machine(pools, local, self._members),
            _tariffs(pools),
        )

    def is_of(self, pools: Mapping[str, SlotPool]) -> bool:
        """Return whether these are the slots of the pools as they are now."""
        return [*self._given] == [*pools] and all(
            self._given[name] is pool.origin for name, pool in pools.items()
        )

    def free(self, name: str, spans: NDArray[np.void]) -> NDArray[np.void]:
        """Return free spans of a domain with joined rows and node ids, in place."""
        member = self._members[name]
        spans["row"] = self._place[member.row + spans["row"]]
        spans["node"] = member.node + np.searchsorted(member.ids, spans["node"])
        return spans

    def update(
        self,
        pool: SlotPool,
        name: str,
        nodes: NDArray[np.int32] | None,
        spans: NDArray[np.void],
    ) -> None:
        """Replace the free time of nodes of a domain in the joined pool; None: all."""
        member = self._members[name]
        at = np.searchsorted(member.ids, member.used if nodes is None else nodes)
        joined = (member.node + at).astype(np.int32)
        pool._replace_free(joined, self.free(name, spans))

    def pool(self, free: Sequence[NDArray[np.void]]) -> SlotPool:
        """Return the joined pool with the free spans of each domain, in order."""
        none = np.empty(0, SPAN)
        state = {
            "free": np.concatenate(free),
            "booked": none,
            "gone": np.empty(0, np.int32),
            "held": none,
        }
        return restore_pool(self.origin, state, -np.inf, self.context)

    def split(self, window: Window, nodes: NDArray[np.int32]) -> dict[str, Window]:
        """Return the part of a window in each of its domains, with their rows and ids.

        `nodes` are the joined ids of its parts. The window may have been found in any
        table of these nodes: the row of a part is that of the slot that contains its
        start. O(n log m) for n parts.
        """
        data, order = window.to_dict(), np.argsort(nodes)
        given = [data["slots"][k] for k in order.tolist()]
        nodes = nodes[order]
        places = self._order[self._rows_at(nodes, window.start)]
        firsts = [each.node for each in self._members.values()]
        edges = [*np.searchsorted(nodes, firsts).tolist(), len(nodes)]
        found = {}
        for k, (name, member) in enumerate(self._members.items()):
            mine = slice(edges[k], edges[k + 1])
            if mine.start == mine.stop:
                continue
            rows = (places[mine] - member.row).tolist()
            ids = member.ids[nodes[mine] - member.node].tolist()
            parts = [
                part | {"row": row, "node": node}
                for part, row, node in zip(given[mine], rows, ids, strict=True)
            ]
            found[name] = Window.from_dict(data | _totals(window.start, parts))
        return found

    def join(self, windows: Mapping[str, Window]) -> Window:
        """Return the window whose parts in each domain are these: `split` undone."""
        parts = []
        for name, member in self._members.items():
            if name not in windows:
                continue
            for part in windows[name].to_dict()["slots"]:
                row = int(self._place[member.row + part["row"]])
                node = member.node + int(np.searchsorted(member.ids, part["node"]))
                parts.append(part | {"row": row, "node": node})
        first = next(iter(windows.values()))
        window = Window.from_dict(first.to_dict() | _totals(first.start, parts))
        window.context = self.context
        return window

    def _rows_at(self, nodes: NDArray[np.int32], start: float) -> NDArray[np.int64]:
        """Return the row of each node that contains `start`, or the last before it."""
        first = np.searchsorted(self._nodes, nodes, side="left")
        last = np.searchsorted(self._nodes, nodes, side="right")
        for k, (low, high) in enumerate(
            zip(first.tolist(), last.tolist(), strict=True)
        ):
            before = np.searchsorted(self._starts[low:high], start, side="right")
            first[k] += max(before - 1, 0)
        return self._by_node[first]


class _Members(NamedTuple):
    """The nodes and rows of one domain.

    Its node ``ids[k]`` has the joined id ``node + k``, and its slots are the rows from
    `row` on of the concatenated tables. `used` are the ids that have slots.
    """

    node: int
    ids: NDArray[np.int32]
    row: int
    used: NDArray[np.int32]


def _totals(start: float, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the parts of a window and their totals, for `Window.from_dict`."""
    lengths = [part["length"] for part in parts]
    return {
        "slots": parts,
        "runtime": max(lengths),
        "finish": start + max(lengths),
        "cost": math.fsum(part["cost"] for part in parts),
        "processor_time": math.fsum(lengths),
    }


def _named(domain: str, values: NDArray[Any]) -> NDArray[np.str_]:
    """Return values as names of a domain: ``cern/n001``."""
    text: NDArray[np.str_] = np.strings.add(f"{domain}/", values.astype(np.str_))
    return text


def _node_ids(pool: SlotPool) -> NDArray[np.int32]:
    """Return the ids of all nodes of a domain, ascending."""
    if pool.machine is not None:
        return np.arange(len(pool.machine), dtype=np.int32)
    return np.unique(pool.origin["node"])


def _local_columns(pool: SlotPool) -> set[str]:
    """Return the columns whose equal values in two domains are different groups."""
    levels = set() if pool.machine is None else {*pool.machine.levels}
    return levels | ({_HOST} & {*(pool.origin.dtype.names or ())})


def _check_same(what: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError unless all domains have the same; it names the first two."""
    (first, given), *others = values.items()
    for name, value in others:
        if value != given:
            raise ValueError(
                f"the domains {first!r} and {name!r} must have the same {what}, got "
                f"{quote(given)} and {quote(value)}"
            )


def _common_type(
    tables: Mapping[str, NDArray[np.void]], local: Mapping[str, set[str]]
) -> np.dtype[np.void]:
    """Return the type of joined slots: that of `SLOT`, further columns, the domain."""
    extra = {
        name: sorted({*(table.dtype.names or ())} - {*(SLOT.names or ())})
        for name, table in tables.items()
    }
    _check_same("columns of slots", extra)
    _check_same("levels", {name: sorted(each) for name, each in local.items()})
    first = next(iter(tables))
    if LEVEL in extra[first]:
        raise ValueError(
            f"the slots of the domain {first!r} have a column {LEVEL!r}; rename it: it "
            "will contain the names of the domains"
        )
    fields: list[tuple[str, Any]] = [(n, SLOT[n]) for n in SLOT.names or ()]
    for field in extra[first]:
        kinds = [
            _named(name, table[field][:0]).dtype
            if field in local[name]
            else table.dtype[field]
            for name, table in tables.items()
        ]
        fields.append((field, np.result_type(*kinds)))
    width = max(map(len, tables))
    return np.dtype([*fields, (LEVEL, f"U{width}")], align=True)


def _machine(
    pools: Mapping[str, SlotPool],
    local: Mapping[str, set[str]],
    members: Mapping[str, _Members],
) -> Machine:
    """Return the machine of all nodes, with the columns that all domains have.

    A domain without a machine has the ids of its nodes as names, and performances and
    prices of their first slots.
    """
    tables: list[dict[str, NDArray[Any]]] = []
    for name, pool in pools.items():
        ids, machine = members[name].ids, pool.machine
        if machine is not None:
            table = machine.to_dict() | {"name": machine.names}
        else:
            rows = np.unique(pool.origin["node"], return_index=True)[1]
            named = ("performance", "price")
            table = {"name": ids} | {n: pool.origin[n][rows] for n in named}
        for column in {"name", *local[name]} & table.keys():
            table[column] = _named(name, table[column])
        tables.append(table | {LEVEL: np.full(len(ids), name)})
    common = [key for key in tables[0] if all(key in each for each in tables)]
    columns = {key: np.concatenate([each[key] for each in tables]) for key in common}
    levels = next(iter(pools.values())).machine
    fine = () if levels is None else levels.levels
    return Machine(
        columns | {"name": quoted_names(columns["name"])},
        levels=[*(each for each in fine if each in columns), LEVEL],
    )


def _tariffs(pools: Mapping[str, SlotPool]) -> Tariffs | None:
    """Return the tariffs of all domains; equal names must mean equal tariffs."""
    given = [pool.tariffs for pool in pools.values()]
    found: dict[str, Any] = {}
    for name, tariffs in zip(pools, given, strict=True):
        for key, tariff in (tariffs or {}).items():
            if found.setdefault(key, tariff) != tariff:
                raise ValueError(
                    f"domain {name!r}: another domain has a different tariff {key!r}; "
                    "rename one of them"
                )
    return None if all(each is None for each in given) else Tariffs(found)
