"""The rows of a `HostPool`: the binding, with prices, closures and reservations.

Nodes are rows of the machine. A search by a built-in criterion runs in the binding; all
others run on the slots of a view: the spans in which a node holds the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import Caps, has_only_numbers
from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA, find_by_spans, find_window
from slotkern._kernels.shares import ShareCore, TreeSearch
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window, window_from_state
from slotkern.expressions.filters import columns_of_filter, evaluate
from slotkern.expressions.limits import columns_of_term
from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.machine.capacity import Capacity
from slotkern.machine.nodes import Machine
from slotkern.machine.shared_time import row_type
from slotkern.pool.share_spans import closed_type, spans_of, within
from slotkern.pool.share_windows import ShareWindow
from slotkern.slots import make_slots

__all__ = ["ShareReservation", "ShareRows"]

_Window = TypeVar("_Window", bound=Window)


class ShareReservation(NamedTuple):
    """Amounts withheld of nodes, also if they are not free."""

    owner: str
    spans: NDArray[np.void]
    amounts: NDArray[np.int64]


class ShareView(NamedTuple):
    """The slots in which nodes hold parts of one demand.

    Node ``k * stack + j`` stands for part j of node k: its slots are the spans in which
    node k holds j + 1 parts.
    """

    slots: NDArray[np.void]
    pool: SlotPool
    stack: int


class SharePart(NamedTuple):
    """A part for the binding: its amounts, its price on each node, and its stack."""

    amounts: NDArray[np.int64]
    prices: NDArray[np.float64]
    stack: int


Demand = NDArray[np.int64] | None
"""The amounts of each part; None for whole nodes."""


class ShareRows:
    """Free amounts by node and time; see `HostPool` for the meaning of its methods."""

    def __init__(self, machine: Machine, hosts: PreparedSlots, core: ShareCore) -> None:
        self.machine, self._hosts, self.core = machine, hosts, core
        self.capacity = cast(Capacity, machine.capacity)
        self.reservations: list[ShareReservation] = []
        self.closures: list[tuple[int, float, float, str]] = []
        self._prices: dict[Any, NDArray[np.float64]] = {}
        self._views: dict[Any, ShareView] = {}
        self.trees: dict[tuple[str, ...], int] = {}  # by levels, for share_trees
        self.searches: dict[Any, TreeSearch] = {}
        self.levels: dict[str, Any] = {}  # the groups of nodes, for share_trees
        self._version = core.version
        self._fastest = float(machine.performance.max(initial=0)) or 1.0
        kinds, self._kind = np.unique(
            self.capacity.amounts, axis=0, return_inverse=True
        )
        self._kinds: NDArray[np.int64] = kinds  # the different capacities of nodes

    @classmethod
    def of(cls, machine: Machine, clock: Any, amounts: NDArray[np.void]) -> ShareRows:
        """Return the rows of free amounts by time."""
        capacity = cast(Capacity, machine.capacity)
        spans, free = spans_of(amounts, capacity)
        hosts = _hosts(machine, clock, spans)
        return cls(machine, hosts, ShareCore(hosts, capacity.amounts, spans, free))

    @classmethod
    def restored(cls, machine: Machine, clock: Any, state: dict[str, Any]) -> ShareRows:
        """Return the rows of a state of the binding."""
        capacity = cast(Capacity, machine.capacity)
        hosts = _hosts(machine, clock, state["free"])
        core = ShareCore.restore(hosts, capacity.amounts, state)
        return cls(machine, hosts, core)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without caches: a restored binding has other versions."""
        return {**self.__dict__, "_views": {}, "trees": {}, "searches": {}}

    # --- reading

    @property
    def hosts(self) -> NDArray[np.void]:
        """One slot for each node, over all time."""
        return self._hosts.slots

    @property
    def now(self) -> float:
        """The current time."""
        return float(self.core.now)

    @property
    def limits(self) -> tuple[float, float]:
        """The first and last time of all nodes that is not past."""
        spans = self.core.state()["free"]
        if not len(spans):
            return 0.0, 0.0
        return float(spans["start"].min()), float(spans["end"].max())

    def amounts(self) -> NDArray[np.void]:
        """Return the free amounts by (node, start); 0 in closed time."""
        pieces = []
        for row in range(len(self.machine)):
            spans, free, there = self.core.profile(row)
            pieces.append((spans, np.where(there[:, None], free.clip(min=0), 0)))
        known = self.core.state()["free"]
        spans = np.concatenate([spans for spans, _ in pieces])
        free = np.concatenate([free for _, free in pieces])
        inside = within(spans, known)
        spans, free = spans[inside], free[inside]
        new = np.ones(len(spans), bool)
        new[1:] = (spans["row"][1:] != spans["row"][:-1]) | (
            spans["start"][1:] != spans["end"][:-1]
        )
        new[1:] |= (free[1:] != free[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(spans)) - 1
        found = np.empty(len(first), row_type(self.capacity.names))
        found["node"], found["start"] = spans["row"][first], spans["start"][first]
        found["end"] = spans["end"][last] if len(first) else 0
        for k, name in enumerate(self.capacity.names):
            found[name] = free[first, k]
        return found

    def prices(self, demand: Demand) -> NDArray[np.float64]:
        """Return the price of a part on each node for one unit of time."""
        key = None if demand is None else demand.tobytes()
        found = self._prices.get(key)
        if found is None:
            if len(self._prices) >= 256:
                self._prices.clear()
            self._prices[key] = found = np.ascontiguousarray(self._price(demand))
        return found

    def _price(self, demand: Demand) -> NDArray[np.float64]:
        machine, capacity = self.machine, self.capacity
        taken = capacity.amounts if demand is None else demand[None, :]
        if capacity.prices is None:
            if demand is None:
                return machine.price
            size = np.maximum(capacity.amounts, 1)
            part: NDArray[np.float64] = machine.price * (taken / size).max(axis=1)
            return part
        total = np.zeros(len(machine))
        with np.errstate(over="ignore"):
            for name, price in capacity.prices.items():
                unit = machine.columns[price] if isinstance(price, str) else price
                total += taken[:, capacity.names.index(name)] * unit
        endless = np.isinf(total)
        holders = endless & (capacity.amounts >= taken).all(axis=1)
        if holders.any():
            name = quote(machine.names[holders.argmax()].item())
            raise ValueError(
                f"the price of a part on node {name} is above the largest number: "
                "use a larger unit of money in the prices of the machine"
            )
        total[endless] = np.finfo(float).max  # no part fits there
        return total

    # --- views

    def view(
        self, demand: Demand, stack: int, capacities: Caps | None = None
    ) -> ShareView:
        """Return the view of a demand, whose pool has these capacities and quotas.

        It is cached until the next change.
        """
        version = self.core.version
        if self._version != version:
            self._version = version
            self._views.clear()
        # With the version: another thread may change the rows while a view is made.
        key = version, None if demand is None else demand.tobytes(), stack
        found = self._views.get(key)
        if found is None:
            slots, parts = self.slots(demand, stack)
            machine = self.machine if parts == 1 else None
            found = ShareView(slots, SlotPool(slots, machine=machine), parts)
            self._views[key] = found
        if found.pool._capacities is not capacities:
            found.pool._capacities = capacities
        return found

    def slots(self, demand: Demand, stack: int) -> tuple[NDArray[np.void], int]:
        """Return the slots of a view, sorted by (start, node), and its parts a node."""
        stack = self.most_parts(demand, stack)
        pieces = [
            (spans["row"], spans["start"], spans["end"], np.full(len(spans), part))
            for part in range(stack)
            for spans in self._spans(demand, part + 1)
        ]
        row, start, end, part = (
            np.concatenate([p[k] for p in pieces]) for k in range(4)
        )
        order = np.lexsort((row * stack + part, start))
        row, start, end, part = row[order], start[order], end[order], part[order]
        slots = make_slots(
            node=(row * stack + part).astype(np.int32),
            start=start,
            end=end,
            performance=self.machine.performance[row],
            price=self.prices(demand)[row],
            **{name: column[row] for name, column in _columns(self.machine).items()},
        )
        return slots, stack

    def most_parts(self, demand: Demand, stack: int) -> int:
        """Return the most parts that any node can hold, from 1 to `stack`."""
        if demand is None or stack == 1:
            return 1
        every = self._kinds // np.maximum(demand, 1)
        most = int(np.where(demand > 0, every, stack).min(axis=1).max())
        return max(1, min(stack, most))

    def _spans(self, demand: Demand, parts: int) -> list[NDArray[np.void]]:
        """Return the spans in which nodes hold this number of parts."""
        if demand is not None:
            return [self.core.free_spans(demand * parts)]
        found = []
        for k, whole in enumerate(self._kinds):  # nodes of equal capacity at a time
            spans = self.core.free_spans(whole)
            found.append(spans[self._kind[spans["row"]] == k])
        return found

    def resolved(self, request: Request, view: ShareView) -> Request:
        """Return a request for the slots of a view, with its filter by node names."""
        if view.stack == 1 or not isinstance(request.where, str):
            return request
        table = view.slots.copy()
        table["node"] //= view.stack
        return request.replace(where=evaluate(request.where, table, self.machine))

    # --- searching

    def can_hold(self, demand: Demand) -> bool:
        """Return whether the capacity of any node holds a demand."""
        return demand is None or bool((self._kinds >= demand).all(axis=1).any())

    def part(self, demand: Demand, stack: int) -> SharePart | None:
        """Return a part for searches of the binding; None if nodes differ in it."""
        if demand is None and len(self._kinds) > 1:
            return None
        amounts = self._kinds[0] if demand is None else demand
        # A view of the binding has `stack` nodes for each host.
        return SharePart(amounts, self.prices(demand), self.most_parts(demand, stack))

    def find(
        self,
        request: Request,
        demand: Demand,
        stack: int,
        capacities: Caps | None,
        criterion: Any,
        shape: str,
        options: Mapping[str, Any],
    ) -> tuple[Window | None, int | None]:
        """Return the best window, and the number of its nodes that stand for one node.

        The number is None if the nodes and rows are those of the machine.
        """
        if not self.can_hold(demand):
            return None, None
        swept = type(criterion) is str and criterion in CRITERIA and not options
        part = self.part(demand, stack) if swept else None
        if part is not None and can_search(part, request):
            find_parts = partial(
                self.core.find,
                demand=part.amounts,
                prices=part.prices,
                stack=part.stack,
                criterion=criterion,
                shape=cast(Any, shape),
            )
            return self.find_under(find_parts, request, criterion, capacities), None
        view = self.view(demand, stack, capacities)
        search: Any = find_window
        asked = self.resolved(_plain(request), view)
        return search(view.pool, asked, criterion, shape=shape, **options), view.stack

    def find_under(
        self,
        search: Callable[[Request], _Window | None],
        request: Request,
        criterion: Any,
        capacities: Caps | None,
    ) -> _Window | None:
        """Return the best window of a search that keeps these capacities and quotas."""
        found = find_by_spans(search, request, criterion, capacities, self._fastest)
        return cast("_Window | None", found)

    def reason(self, request: Request, demand: Demand, shape: Any) -> str:
        """Return why a request has no window; see `ShareBookings`."""
        if not self.can_hold(demand):
            return "share"
        view = self.view(demand, request.stack)
        # The pool of a view has no capacities: a window does not fail on them here.
        asked = self.resolved(_plain(request), view).replace(uses=None, account=None)
        fast = view.slots["performance"] >= asked.min_performance
        if len(np.unique(view.slots["node"][fast])) < asked.nodes:
            return "nodes"
        for reason, is_given, without in (
            ("groups", bool(asked.rules), {"limits": (), "within": None}),
            ("limits", bool(asked.limits), {"limits": ()}),
            ("budget", asked.budget < np.inf, {"budget": np.inf}),
        ):
            if is_given:
                asked = asked.replace(**without)
                if find_window(view.pool, asked, "start", shape=shape) is not None:
                    return reason
        return "time"

    # --- writing

    def pieces(
        self, windows: Iterable[ShareWindow]
    ) -> tuple[list[Window], list[NDArray[np.int64]]]:
        """Return windows with one part a row, and the amounts of the parts of each."""
        found = [piece for window in windows for piece in self._pieces(window)]
        return [piece for piece, _ in found], [amounts for _, amounts in found]

    def _pieces(self, window: ShareWindow) -> list[tuple[Window, NDArray[np.int64]]]:
        """Return the pieces of a window; of whole nodes, one for each capacity."""
        state = list(Window._state(window))
        parts = [(node, node, *rest) for _, node, *rest in state[10]]
        if window.counts is not None:
            counts = zip(parts, window.counts, strict=True)
            parts = [part for part, count in counts for _ in range(count)]
        more = (window.name, SlotContext(None, self.machine), window.proven_over)
        groups: dict[int, list[Any]] = {}
        if window.share is None:
            for part in parts:
                groups.setdefault(int(self._kind[part[1]]), []).append(part)
        else:
            groups[-1] = parts
        found = []
        for kind, mine in groups.items():
            state[10] = tuple(mine)
            amounts = self._kinds[kind]
            if window.share is not None:
                amounts = self.vector(window.share)
            found.append((window_from_state(Window, (*state, *more)), amounts))
        return found

    def vector(self, share: Mapping[str, int] | None) -> NDArray[np.int64]:
        """Return the amounts of a share, all 0 for None."""
        known = {} if share is None else share
        return np.array([known.get(name, 0) for name in self.capacity.names], np.int64)

    def check_free(
        self, spans: NDArray[np.void], amounts: NDArray[np.int64], clock: Any
    ) -> None:
        """Raise ValueError for the first node that lacks amounts in its span."""
        for span, wanted in zip(spans, amounts, strict=True):
            rows, free, there = self.core.profile(int(span["row"]))
            first, last = float(span["start"]), float(span["end"])
            mine = (rows["start"] < last) & (rows["end"] > first)
            lengths = rows["end"].clip(max=last) - rows["start"].clip(min=first)
            name = self.machine.names[span["row"]].item()
            times = [_text(clock, time) for time in (first, last)]
            if not there[mine].all() or lengths[mine].sum() < last - first:
                raise ValueError(f"node {name} is not free from {' to '.join(times)}")
            least = free[mine].min(axis=0)
            for k in np.flatnonzero(least < wanted).tolist():
                raise ValueError(
                    f"node {name} has only {max(0, int(least[k])):,} of "
                    f"{int(wanted[k]):,} {self.capacity.names[k]} free from "
                    f"{' to '.join(times)}; partly=True withholds them anyway"
                )

    def reserve(
        self, spans: NDArray[np.void], amounts: NDArray[np.int64], owner: str
    ) -> None:
        """Withhold amounts of nodes, also if they are not free."""
        done = 0
        try:
            for done in range(len(spans)):
                self.core.reserve(spans[done : done + 1], amounts[done : done + 1])
        except BaseException:
            self.core.unreserve(spans[:done], amounts[:done])
            raise
        self.reservations.append(ShareReservation(owner, spans, amounts))

    def has_reservations(self, owner: str) -> bool:
        """Return whether an owner has reservations that are not past."""
        mine = (each for each in self.reservations if each.owner == owner)
        return any((each.spans["end"] > self.now).any() for each in mine)

    def end_reservations(self, owner: str) -> None:
        """Give back what an owner has reserved."""
        for each in self.reservations:
            if each.owner == owner:
                self.core.unreserve(each.spans, each.amounts)
        self.reservations = [r for r in self.reservations if r.owner != owner]

    def disable(self, spans: NDArray[np.void], owner: str) -> None:
        """Close nodes in these spans."""
        self.core.disable(spans)
        self.closures += [(*span, owner) for span in spans.tolist()]

    def enable(self, rows: NDArray[np.int64]) -> None:
        """Open nodes again."""
        self.core.enable(rows.tolist())
        opened = set(rows.tolist())
        self.closures = [each for each in self.closures if each[0] not in opened]

    @property
    def closed(self) -> NDArray[np.void]:
        """Closed time that is not past: node, start, end, owner, disabled."""
        kept = [(*each, True) for each in self.closures if each[2] > self.now]
        widest = max((len(each[3]) for each in kept), default=1)
        return np.array(kept, closed_type(widest))

    def reserving(self) -> list[str]:
        """Return the owners of reservations that are not past."""
        return [each.owner for each in self.reservations]

    def booked(self, owned: Sequence[tuple[ShareWindow, str]]) -> NDArray[np.void]:
        """Return the booked parts that are not past, with their owners."""
        owners: dict[Any, list[str]] = {}
        for window, owner in owned:
            for piece, amounts in self._pieces(window):
                for node, start, end in piece.slots[["node", "start", "end"]].tolist():
                    key = node, start, end, tuple(amounts.tolist())
                    owners.setdefault(key, []).append(owner)
        state = self.core.state()
        spans, taken = state["booked"], state["booked_amounts"]
        names, rows = self.capacity.names, []
        for (row, start, end), vector in zip(
            spans[["row", "start", "end"]].tolist(), taken.tolist(), strict=True
        ):
            known = owners.get((row, start, end, tuple(vector)))
            rows.append((row, start, end, known.pop() if known else "", *vector))
        width = max((len(row[3]) for row in rows), default=1)
        fields: list[Any] = [("node", "i4"), ("start", "f8"), ("end", "f8")]
        fields += [("owner", f"U{max(width, 1)}"), *((name, "i8") for name in names)]
        return np.array(rows, fields)

    def advance(self, now: float) -> None:
        """Set the current time."""
        self.core.advance(now)
        self.closures = [each for each in self.closures if each[2] > now]
        self.reservations = [
            each for each in self.reservations if (each.spans["end"] > now).any()
        ]

    def add(self, amounts: NDArray[np.void]) -> None:
        """Add free amounts in new time; raise ValueError for time that is there."""
        self.core.add(*spans_of(amounts, self.capacity))

    def copy(self) -> ShareRows:
        """Return independent rows."""
        other = ShareRows(self.machine, self._hosts, self.core.copy())
        other.reservations = list(self.reservations)
        other.closures = list(self.closures)
        return other

    # --- figures

    def integral(self, first: float, last: float) -> NDArray[np.float64]:
        """Return the free amount of each resource multiplied by its time."""
        free = self.amounts()
        lengths = free["end"].clip(max=last) - free["start"].clip(min=first)
        lengths = lengths.clip(min=0)
        return np.array([(free[name] * lengths).sum() for name in self.capacity.names])

    def free_of(
        self, resource: str, groups: NDArray[Any], values: NDArray[Any], by: str | None
    ) -> NDArray[np.void]:
        """Return the sums of a resource over groups of nodes by time."""
        free = self.amounts()
        group, amount = groups[free["node"]], free[resource]
        of = np.concatenate((group, group))
        when = np.concatenate((free["start"], free["end"]))
        change = np.concatenate((amount, -amount))
        order = np.lexsort((when, of))
        of, when, total = of[order], when[order], np.cumsum(change[order])
        last = np.ones(len(of), bool)  # of the changes of a group at one time
        last[:-1] = (of[1:] != of[:-1]) | (when[1:] != when[:-1])
        of, when, total = of[last], when[last], total[last]
        new = np.ones(len(of), bool)
        new[1:] = (of[1:] != of[:-1]) | (total[1:] != total[:-1])
        new[-1:] = True  # the end of the last span
        of, when, total = of[new], when[new], total[new]
        inner = np.flatnonzero(of[1:] == of[:-1])
        fields: list[Any] = [("start", "f8"), ("end", "f8"), ("free", "i8")]
        if by is not None:
            fields.insert(0, (by, values.dtype))
        found = np.empty(len(inner), fields)
        found["start"], found["end"] = when[inner], when[inner + 1]
        found["free"] = total[inner]
        if by is not None:
            found[by] = values[of[inner]]
        return found


def can_search(part: SharePart, request: Request) -> bool:
    """Return whether the binding can search for a request with this part."""
    plain = not request.rules and (not request.limits or part.stack == 1)
    plain = plain and has_only_numbers(request)  # sums are limits, in a view
    return plain and is_free_of_times(request)


def is_free_of_times(request: Request) -> bool:
    """Return whether filter and limits do not read the start and end of slots."""
    columns: set[str] = set()
    if request.where is not None:
        columns |= columns_of_filter(cast(str, request.where))
    for limit in request.limits:
        if not isinstance(limit.of, str):
            return False
        columns |= columns_of_term(limit.of)
    return columns.isdisjoint(("start", "end"))


def _plain(request: Request) -> Request:
    """Return a request as for whole nodes."""
    return request if request.special is None else request.replace(share=None, stack=1)


def _text(clock: Any, time: float) -> str:
    return f"{time:g}" if clock is None else str(clock.datetime(time))


def _hosts(machine: Machine, clock: Any, spans: NDArray[np.void]) -> PreparedSlots:
    """Return one slot for each node, over the time of all spans."""
    size = len(machine)
    slots = make_slots(
        node=np.arange(size, dtype=np.int32),
        start=np.full(size, spans["start"].min(initial=0)),
        end=np.full(size, spans["end"].max(initial=1)),
        performance=machine.performance,
        price=machine.price,
        **_columns(machine),
    )
    return PreparedSlots(slots, clock=clock, machine=machine)


def _columns(machine: Machine) -> dict[str, NDArray[Any]]:
    return {name: c for name, c in machine.columns.items() if name != "tariff"}
