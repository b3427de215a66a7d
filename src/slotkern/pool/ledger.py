"""Owners of booked windows, reservations, utilization, and tables of windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.windows import Window, WindowTable
from slotkern.foundation.checks import number, quote
from slotkern.foundation.context import SlotContext
from slotkern.foundation.hostlists import quoted
from slotkern.machine.clock import Clock, is_number

if TYPE_CHECKING:
    from slotkern._kernels.pool import SlotPool
    from slotkern.typing import Time

__all__ = [
    "check_owner",
    "ids_of",
    "job_rows",
    "owners_of",
    "parts_of_jobs",
    "raise_unfit",
    "reservation",
    "spans_of",
    "time_of",
    "utilization",
    "window_rows",
]

#: The most dates of a rule that an error lists.
_MOST_DATES = 10


def check_owner(owner: Any) -> None:
    """Raise TypeError for a value that cannot own a booking or a closure."""
    if not isinstance(owner, str) or not owner or "\0" in owner:
        raise TypeError(
            f"owner must be text, not empty and without null bytes, got {quote(owner)}"
        )


def owners_of(owner_of: Mapping[Window, str], spans: NDArray[Any]) -> NDArray[np.str_]:
    """Return the owner of each booked span; empty text if it has none."""
    owner_of = dict(owner_of)  # snapshot: other threads may book and release
    if not owner_of:
        return np.zeros(len(spans), "U1")
    parts = np.concatenate([window.slots for window in owner_of])
    sizes = [len(window) for window in owner_of]
    owners = np.repeat([*owner_of.values()], sizes)
    # A span is found by its row and start; one cut at the current time, by row and end.
    found = np.zeros(len(spans), owners.dtype)
    for edge in ("start", "end"):
        key = np.array([*zip(parts["row"], parts[edge], strict=True)], "i8,f8")
        order = np.argsort(key)
        wanted = np.array([*zip(spans["row"], spans[edge], strict=True)], "i8,f8")
        at = np.searchsorted(key[order], wanted).clip(max=len(key) - 1)
        same = key[order[at]] == wanted
        found[same] = owners[order[at[same]]]
    return found


def reservation(
    pool: SlotPool,
    nodes: Any,
    start: Any,
    end: Any,
    partly: bool,
    rule: str | None = None,
) -> tuple[list[Window], NDArray[np.void]]:
    """Return windows that reserve nodes for a span of time, and the rest of it.

    There is one window for each distinct start. The second value contains the time that
    is not free (node, start, end); it is empty unless `partly`. With a rule of
    iCalendar this is done for each span that it repeats.
    """
    spans = spans_of(pool.clock, start, end, rule)
    ids = ids_of(pool, nodes)
    free = pool._state()["free"]  # by (node, start)
    free = free[np.isin(free["node"], ids)]
    windows, gaps, wrong = [], [], []
    for (first, last), pieces in zip(spans, _overlapping(free, spans), strict=True):
        found, rest, reason = _reserved_span(pool, ids, pieces, first, last, partly)
        windows += found
        gaps.append(rest)
        wrong += [] if reason is None else [(first, reason)]
    raise_unfit(pool.clock, wrong, len(spans), rule)
    return windows, np.concatenate(gaps)


def spans_of(
    clock: Clock | None, start: Any, end: Any, rule: str | None
) -> list[tuple[float, float]]:
    """Return the span [start, end) as numbers, and those that a rule repeats."""
    first, last = (time_of(clock, t, n) for t, n in ((start, "start"), (end, "end")))
    if not first < last:
        raise ValueError(f"end {end} does not lie after start {start}")
    if rule is None:
        return [(first, last)]
    from slotkern.calendars.rules import repeated_spans

    return repeated_spans(clock, first, last, rule)


def raise_unfit(
    clock: Clock | None,
    wrong: Sequence[tuple[float, str]],
    count: int,
    rule: str | None,
) -> None:
    """Raise ValueError for spans that do not fit: their first starts, and a reason."""
    if not wrong:
        return
    if rule is None:
        raise ValueError(wrong[0][1])
    shown = wrong[:_MOST_DATES]
    dates = [str(t if clock is None else clock.datetime(t)) for t, _ in shown]
    if len(wrong) > len(shown):
        dates.append(f"and {len(wrong) - len(shown)} more")
    raise ValueError(
        f"{len(wrong)} of {count} dates of the rule do not fit, and nothing is "
        f"reserved: {', '.join(dates)}; at the first of them, {wrong[0][1]}"
    )


def _overlapping(
    free: NDArray[np.void], spans: list[tuple[float, float]]
) -> Iterator[NDArray[np.void]]:
    """Yield the free slots that overlap each span, in the order of `free`.

    The spans are disjoint and in time order, so a slot that ended before one of them
    overlaps no later one, and each slot is added once.
    """
    starts, ends = free["start"], free["end"]
    by_start = np.argsort(starts, kind="stable")
    added = np.searchsorted(starts[by_start], [last for _, last in spans]).tolist()
    rows, before = by_start[:0], 0
    for (first, _), until in zip(spans, added, strict=True):
        rows = np.concatenate([rows, by_start[before:until]])
        rows, before = rows[ends[rows] > first], until
        yield free[np.sort(rows)]


def _reserved_span(
    pool: SlotPool,
    ids: NDArray[np.int32],
    free: NDArray[np.void],
    first: float,
    last: float,
    partly: bool,
) -> tuple[list[Window], NDArray[np.void], str | None]:
    """Return the windows of one span, the rest of it, and why it does not fit.

    `free` are the free slots that overlap the span.
    """
    begin, until = free["start"].clip(min=first), free["end"].clip(max=last)
    lengths = until - begin
    while (over := begin + lengths > until).any():  # rounding: shorten by an ulp
        lengths[over] = np.nextafter(lengths[over], 0)
    gaps = _gaps(ids, free["node"], begin, until, first, last)
    if not partly:
        reason = _not_free(pool, ids, free["node"], begin, until, first, last)
        if reason is not None:
            return [], gaps, reason
    costs = _amounts(pool, free["row"], begin, lengths)
    windows = []
    for moment in np.unique(begin):
        rows = np.flatnonzero(begin == moment)
        windows.append(_reserved(free[rows], float(moment), lengths[rows], costs[rows]))
        windows[-1].context = pool.context
    return windows, gaps, None


def _gaps(
    ids: NDArray[np.int32],
    node: NDArray[np.int32],
    begin: NDArray[np.float64],
    until: NDArray[np.float64],
    first: float,
    last: float,
) -> NDArray[np.void]:
    """Return the parts of [first, last) on each node that no piece covers."""
    nodes = np.append(ids, node)
    starts = np.append(np.full(len(ids), first), until)
    ends = np.append(np.full(len(ids), last), begin)
    by_start, by_end = np.lexsort((starts, nodes)), np.lexsort((ends, nodes))
    gaps = np.empty(len(nodes), [("node", "i4"), ("start", "f8"), ("end", "f8")])
    gaps["node"] = nodes[by_start]
    gaps["start"], gaps["end"] = starts[by_start], ends[by_end]
    return gaps[gaps["start"] < gaps["end"]]


def ids_of(pool: SlotPool, nodes: Any) -> NDArray[np.int32]:
    """Convert names or ids of nodes to ids, and check that the pool has them."""
    given: NDArray[Any] = np.atleast_1d(np.asarray(nodes))
    if given.ndim != 1 or not given.size:
        raise ValueError("nodes must be one node or more")
    known = (str, int, np.integer)
    if given.dtype == object and not all(isinstance(each, known) for each in given):
        raise TypeError(f"nodes must be names or ids, got {quote(nodes)}")
    if given.dtype.kind == "U" and pool.machine is None:
        raise ValueError(
            f"{quote(nodes)} is a name, but this pool has no machine with names; give "
            "ids, or SlotPool(slots, machine=)"
        )
    one = given if np.ndim(nodes) else given[0]  # an error names the row of several
    ids = given if pool.machine is None else pool.machine.ids(one)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"nodes must be names or ids, got {quote(nodes)}")
    unknown = ~np.isin(ids, pool.nodes)
    if pool.machine is not None:  # nodes that are always busy have no slot
        unknown &= np.isin(ids, pool._state()["gone"])
    if unknown.any():
        name = ids[unknown.argmax()].item()
        if pool.machine is not None and given.dtype.kind not in "iu":
            name = pool.machine.names[name].item()
        raise ValueError(f"node {quote(name)} is not in the pool")
    if len(np.unique(ids)) < len(ids):
        raise ValueError("nodes: a node occurs twice")
    return ids.astype(np.int32)


def _not_free(
    pool: SlotPool,
    ids: NDArray[np.int32],
    node: NDArray[np.int32],
    begin: NDArray[np.float64],
    until: NDArray[np.float64],
    first: float,
    last: float,
) -> str | None:
    """Return why the nodes are not free during the whole span; None if they are."""
    if first < pool.now:
        now = pool.now if pool.clock is None else pool.clock.datetime(pool.now)
        date = f"{first:g}" if pool.clock is None else pool.clock.datetime(first)
        return f"start {date} is past: the pool's now is {now}"
    for each in ids.tolist():
        mine = node == each
        # Without a hole each piece begins at the end of the previous one.
        begins = np.append(begin[mine], last)
        ends = np.append(first, until[mine])
        hole = ends < begins
        if hole.any():
            k = int(hole.argmax())
            name = each if pool.machine is None else pool.machine.names[each]
            span = [
                str(t if pool.clock is None else pool.clock.datetime(t))
                for t in (float(ends[k]), float(begins[k]))
            ]
            return (
                f"node {name} is not free from {span[0]} to {span[1]}; partly=True "
                "takes the rest"
            )
    return None


def _amounts(
    pool: SlotPool,
    rows: NDArray[np.int64],
    start: NDArray[np.float64],
    lengths: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the amounts of reserved spans of the slots `rows`."""
    slots, tariffs = pool.origin[rows], (pool.context or SlotContext()).tariffs
    price: NDArray[np.float64] = slots["price"]
    if tariffs is not None and "tariff" in (slots.dtype.names or ()):
        found: NDArray[np.float64] = tariffs.cost(
            slots["tariff"], price, start, lengths
        )
        return found
    with np.errstate(over="ignore"):  # a cost beyond float64 is infinite
        return lengths * price


def _reserved(
    spans: NDArray[Any],
    start: float,
    lengths: NDArray[np.float64],
    costs: NDArray[np.float64],
) -> Window:
    parts = [
        {"row": row, "node": node, "length": length, "cost": cost}
        for row, node, length, cost in zip(
            spans["row"].tolist(),
            spans["node"].tolist(),
            lengths.tolist(),
            costs.tolist(),
            strict=True,
        )
    ]
    runtime = float(lengths.max())
    return Window.from_dict(
        {
            "start": start,
            "finish": start + runtime,
            "runtime": runtime,
            "cost": math.fsum(part["cost"] for part in parts),
            "processor_time": float(lengths.sum()),
            "value": start,
            "bound": start,
            "proven": True,
            "criterion": "reserved",
            "shape": "ragged" if (lengths < runtime).any() else "square",
            "slots": parts,
        }
    )


def time_of(clock: Clock | None, value: Any, name: str) -> float:
    """Convert a time to a number of the clock, and check that it is finite."""
    if clock is None and not is_number(value):
        raise ValueError(
            f"{name} is the date {quote(value)}, but this pool has no clock; create it "
            "by SlotPool(slots, clock=Clock(origin, zone=...))"
        )
    time = number(name, value) if clock is None else clock.time(value, name)
    return number(name, time)


def utilization(
    self: SlotPool, start: Time | None = None, end: Time | None = None
) -> float:
    """Return the booked time as a share of all booked and free time.

    Parameters
    ----------
    start, end : float, date or str, optional
        The span to evaluate; by default from `now`, or from the first slot, to the last
        end.

    Returns
    -------
    float
        From 0 to 1; 0 if there is neither booked nor free time.

    Raises
    ------
    ValueError
        Without `end`, if a slot has an infinite end.
    """
    state = self._state()
    booked = np.concatenate([state["booked"], state["held"]])
    spans = np.concatenate([state["free"], booked])
    if not len(spans):
        return 0.0
    low = max(self.now, spans["start"].min())
    first = low if start is None else time_of(self.clock, start, "start")
    last = spans["end"].max() if end is None else time_of(self.clock, end, "end")
    if not np.isfinite(last):
        raise ValueError("a slot has no end: set the end of the span, end=")
    if last < first:
        raise ValueError(f"end {end} lies before start {start}")

    def within(table: NDArray[Any]) -> float:
        lengths = table["end"].clip(max=last) - table["start"].clip(min=first)
        return float(lengths.clip(min=0).sum())

    whole = within(spans)
    return within(booked) / whole if whole else 0.0


# --- tables


def window_rows(
    windows: Sequence[Window | None],
    context: SlotContext | None,
    **columns: Sequence[Any],
) -> NDArray[np.void]:
    """Return a table of windows: name, nodes, start, finish and cost of each."""
    clock, machine, _ = context or SlotContext()
    if "name" not in columns:
        columns["name"] = [None if w is None else w.name for w in windows]
    fields: dict[str, NDArray[Any]] = {
        name: np.array(["" if v is None else v for v in values], np.str_)
        for name, values in columns.items()
    }
    if any(w is not None and (w.uses or w.account) for w in windows):
        fields["account"] = np.array(
            ["" if w is None else w.account or "" for w in windows]
        )
        fields["uses"] = np.array(
            ["" if w is None else _uses_text(w.uses) for w in windows]
        )
    found = WindowTable.of(windows)
    fields["nodes"] = _node_texts(found, machine)
    for name in ("start", "finish", "cost"):
        fields[name] = getattr(found, name)
    if clock is not None:
        fields["start_time"] = clock.text(fields["start"])
        fields["finish_time"] = clock.text(fields["finish"])
    table = np.empty(len(windows), [(name, c.dtype) for name, c in fields.items()])
    for name, column in fields.items():
        table[name] = column
    return table


def job_rows(
    windows: Sequence[Any],
    context: SlotContext | None,
    names: Sequence[Any],
    reasons: Sequence[str],
    plans: Mapping[int, Any] | None,
) -> NDArray[np.void]:
    """Return a table of jobs: a row for each window, or for each one of a plan."""
    if not plans:
        return window_rows(windows, context, name=names, reason=reasons)
    flat: list[Window | None] = []
    columns: dict[str, list[Any]] = {"name": [], "reason": [], "role": [], "option": []}
    for i, (window, name, reason) in enumerate(
        zip(windows, names, reasons, strict=True)
    ):
        plan = plans.get(i)
        flat += [window] if plan is None else list(plan.windows)
        count = 1 if plan is None else len(plan)
        columns["name"] += [name] if plan is None else [w.name for w in plan]
        columns["reason"] += [reason] * count
        columns["role"] += [None] if plan is None else plan.roles
        columns["option"] += [None] if plan is None else plan.options
    return window_rows(flat, context, **columns)


def parts_of_jobs(
    parts: NDArray[np.void], first: NDArray[np.int64], plans: Mapping[int, Any]
) -> NDArray[np.void]:
    """Return the parts of jobs with option and role; some jobs have a plan.

    A part of a plan begins at the start of its own window.
    """
    names = list(parts.dtype.names or ())
    columns = {name: parts[name].copy() for name in names}
    option = np.full(len(parts), -1, np.int64)
    roles: list[str] = [""] * len(parts)
    for i, plan in plans.items():
        own = np.concatenate([window.slots for window in plan])
        here = slice(int(first[i]), int(first[i + 1]))
        for name in names:
            columns[name][here] = own[name]
        counts = [len(window) for window in plan]
        taken = [-1 if each is None else each for each in plan.options]
        option[here] = np.repeat(taken, counts)
        roles[here] = np.repeat(np.array(plan.roles, object), counts).tolist()
    columns |= {"option": option, "role": np.array(roles, np.str_)}
    table = np.empty(len(parts), [(name, c.dtype) for name, c in columns.items()])
    for name, column in columns.items():
        table[name] = column
    table.flags.writeable = False
    return table


def _uses_text(uses: Mapping[str, int] | None) -> str:
    return ",".join(f"{name}={amount}" for name, amount in (uses or {}).items())


def _node_texts(windows: WindowTable, machine: Any) -> NDArray[np.str_]:
    """Return the node names of each window as one text; empty for None."""
    ids, rows = np.unique(windows.parts["node"], return_inverse=True)
    named = map(str, ids.tolist())
    if machine is not None:
        named = map(quoted, machine.names[ids].tolist())
    names = np.array([*named], object)[rows].tolist() if len(ids) else []
    edges = windows.first.tolist()
    return np.array([",".join(names[a:b]) for a, b in pairwise(edges)], np.str_)
