"""Collection of slotkern's objects as the background and the items of a page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.search import Alternatives
from slotkern._kernels.windows import Window, WindowTable
from slotkern.batch.cycles import Cycles
from slotkern.batch.execution import Execution
from slotkern.batch.schedule import Schedule
from slotkern.compound.plan import Plan
from slotkern.environment.generate import Environment
from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.machine.spans import FreeSlots, why_busy
from slotkern.plotting.heights import part_heights, partly_free
from slotkern.plotting.layout import (
    disabled_spans,
    name_windows,
    require_span_fields,
    unique_names,
)
from slotkern.plotting.times import first_context
from slotkern.pool.host_pool import HostPool
from slotkern.pool.share_windows import text_of
from slotkern.replays.result import Replay
from slotkern.traces.free_slots import TraceSlots
from slotkern.viewer.scene import (
    PART,
    Background,
    Field,
    Groups,
    Items,
    empty_spans,
    to_parts,
    to_spans,
)

__all__ = ["collect_items", "collect_own_items", "make_background"]

#: The measures of windows that are shown, and their kinds.
_MEASURES: dict[str, Literal["span", "number"]] = {
    "runtime": "span",
    "cost": "number",
    "processor_time": "span",
    "value": "number",
}
_TIMES = ("start", "finish")


def make_background(thing: Any, tasks: NDArray[Any] | None = None) -> Background:
    """Return the background of an object: its nodes, free and busy time.

    Raises
    ------
    TypeError
        If the object has no free slots.
    """
    match thing:
        case Replay():
            return _replay_background(thing)
        case Cycles() if thing.schedules:
            return make_background(thing.schedules[0]._jobs.prepared, tasks)
        case Cycles() | Window() | WindowTable() | Plan() if not isinstance(
            thing, Alternatives
        ):
            return _make_background(empty_spans(), tasks, "blank", thing)
        case Schedule():
            return make_background(thing._jobs.prepared, tasks)
        case Execution():
            return make_background(thing.schedule._jobs.prepared, tasks)
        case Alternatives():
            return _make_background(thing.searched[0], tasks, "busy", thing)
        case Environment():
            return _make_background(
                thing.slots,
                thing.tasks if tasks is None else tasks,
                "blank",
                thing,
                last=thing.horizon,
            )
        case TraceSlots():
            return _make_background(
                thing.slots,
                tasks,
                "busy",
                thing,
                nodes=np.arange(thing.processors),
                last=thing.end,
                seconds=1.0,
                noun="processor",
            )
    disabled, booked = disabled_spans(thing)
    return _make_background(
        partly_free(thing),
        tasks,
        "busy",
        thing,
        nodes=booked["node"],
        disabled=disabled,
        booked=booked,
    )


def _make_background(
    slots: Any,
    tasks: NDArray[Any] | None,
    rest: Any,
    thing: Any,
    *,
    nodes: Any = (),
    **more: Any,
) -> Background:
    """Return the background of free slots and tasks.

    With tasks, the state of all other time is unknown.
    """
    free = require_span_fields("slots", getattr(slots, "slots", slots))
    busy = (
        empty_spans()
        if tasks is None
        else to_spans(require_span_fields("tasks", tasks))
    )
    clock, machine, tariffs = first_context(thing, slots)
    known = [free["node"], busy["node"], np.asarray(nodes, np.int64)]
    if machine is not None and rest == "busy":  # include nodes without free time
        known.append(np.arange(len(machine)))
    ids = np.unique(np.concatenate(known)).astype(np.int64)
    speed = np.full(len(ids), np.nan, np.float32)
    if "performance" in (free.dtype.names or ()):
        speed[np.searchsorted(ids, free["node"])] = free["performance"]
    if machine is not None:
        mine = ids < len(machine)
        speed[mine] = machine.performance[ids[mine]]
    spans = to_spans(free)
    if tariffs is not None and "tariff" in (free.dtype.names or ()):
        spans["price"] = _mean_prices(free, tariffs)
        more["priced"] = free, tariffs
    return Background(
        spans,
        busy,
        rest if tasks is None else "blank",
        ids,
        speed,
        clock,
        machine,
        **more,
    )


def _mean_prices(free: NDArray[Any], tariffs: Any) -> NDArray[np.float64]:
    """Return the mean price of each free slot; NaN under a tariff without an end."""
    lengths = free["end"] - free["start"]
    found: NDArray[np.float64] = np.where(free["tariff"] == "", free["price"], np.nan)
    finite = np.isfinite(lengths)
    some = free[finite]
    amounts = tariffs.cost(
        some["tariff"], some["price"], some["start"], lengths[finite]
    )
    found[finite] = amounts / lengths[finite]
    return found


def _replay_background(done: Replay) -> Background:
    """Return all processors, those of several sites numbered consecutively."""
    cluster = done.cluster
    first = np.cumsum(cluster.processors) - cluster.processors
    blocked = []
    for span in cluster.blocked:
        site = np.flatnonzero(cluster.site == span["site"])[:1]
        if span["site"] == -1:
            site = np.zeros(1, np.int64)
        # The blocked processors are known only if all processors of a site are.
        for at in site[span["processors"] >= cluster.processors[site]]:
            rows = np.zeros(cluster.processors[at], empty_spans().dtype)
            rows["node"] = first[at] + np.arange(len(rows))
            rows["start"], rows["end"], rows["price"] = span["start"], span["end"], 0
            blocked.append(rows)
    ids = np.arange(int(cluster.processors.sum()))
    return Background(
        empty_spans(),
        np.concatenate(blocked) if blocked else empty_spans(),
        "free",
        ids,
        np.repeat(cluster.performance, cluster.processors).astype(np.float32),
        done.trace.clock,
        seconds=1.0,
        noun="processor",
    )


def collect_items(thing: Any) -> Items:
    """Return the windows or jobs of an object, or the bookings of a pool's owners.

    Raises
    ------
    TypeError
        If one of the windows is not a window.
    """
    match thing:
        case None:
            return Items.empty()
        case Replay():
            return _replay_items(thing)
        case Cycles():
            return _cycles_items(thing)
        case Schedule():
            return _schedule_items(thing)
        case Execution():
            return _window_items(thing.runs())
        case WindowTable():
            return _table_items(thing)
        case SlotPool() | HostPool():
            return _pool_items(thing)
    return _window_items(name_windows(thing))


def collect_own_items(thing: Any) -> Items:
    """Return the windows that an object itself contains, possibly none."""
    kinds = (Replay, Cycles, Schedule, Execution, WindowTable, Window, Plan)
    has = (*kinds, SlotPool, HostPool)
    if isinstance(thing, FreeSlots):
        return _busy_items(thing)
    return collect_items(thing) if isinstance(thing, has) else Items.empty()


def _busy_items(free: FreeSlots) -> Items:
    """Return the busy spans with a known reason or owner, grouped by reason."""
    spans, reasons, owners = why_busy(free)
    if not len(spans):
        return Items.empty()
    names, of = np.unique(reasons, return_inverse=True)
    return Items(
        "busy span",
        [
            f"{reason}, {owner}" if owner not in ("", reason) else reason
            for reason, owner in zip(reasons, owners, strict=True)
        ],
        spans["start"],
        spans["end"],
        to_parts(spans, np.arange(len(spans))),
        np.ones(len(spans), np.bool_),
        groups=Groups("reason", names.tolist(), of),
        clock=free.clock,
        machine=free.machine,
    )


def _window_items(named: dict[str, Any]) -> Items:
    """Return windows of any kind, given by name."""
    windows = list(named.values())
    for window in windows:
        if not hasattr(window, "start"):
            raise TypeError(f"windows must be windows, got {quote(window)}")
    pieces = [to_parts(window.slots, i) for i, window in enumerate(windows)]
    parts = np.concatenate(pieces) if pieces else np.empty(0, PART)
    parts["height"] = part_heights(windows)

    def figure(name: str) -> NDArray[np.float64]:
        values = (getattr(window, name, None) for window in windows)
        return np.array([np.nan if v is None else v for v in values], np.float64)

    fields = _measure_fields({name: figure(name) for name in (*_TIMES, *_MEASURES)})
    clock, machine, _ = first_context(*windows)
    return Items(
        "window",
        list(named),
        figure("start"),
        figure("finish"),
        parts,
        np.ones(len(windows), np.bool_),
        fields=fields,
        clock=clock,
        machine=machine,
    )


def _measure_fields(columns: dict[str, NDArray[np.float64]]) -> list[Field]:
    """Return the measures of windows; `value` only if it differs from the others."""
    value = columns["value"]
    others = [each for name, each in columns.items() if name != "value"]
    is_redundant = bool(np.any([value == each for each in others], axis=0).all())
    return [
        Field(name, kind, columns[name])
        for name, kind in _MEASURES.items()
        if not np.isnan(columns[name]).all() and not (name == "value" and is_redundant)
    ]


def _table_items(windows: WindowTable) -> Items:
    """Return the windows of a table, without the rows that have no window."""
    there = np.flatnonzero(np.isfinite(windows.start))
    first = np.asarray(windows.first)
    item = np.cumsum(np.isfinite(windows.start)) - 1
    parts = to_parts(windows.parts.ravel(), np.repeat(item, np.diff(first)))
    names: Any = there + 1
    if windows.names is not None:
        given = [windows.names[row] for row in there.tolist()]
        if any(given):
            names = list(unique_names([(name, None) for name in given]))
    context = windows.context or SlotContext()
    figures = (*_TIMES, *_MEASURES)
    fields = _measure_fields(
        {name: np.asarray(getattr(windows, name))[there] for name in figures}
    )
    return Items(
        "window",
        names,
        np.asarray(windows.start)[there],
        np.asarray(windows.finish)[there],
        parts,
        np.ones(len(there), np.bool_),
        fields=fields,
        clock=context.clock,
        machine=context.machine,
    )


def _pool_items(pool: SlotPool | HostPool) -> Items:
    """Return the bookings of a pool, grouped by owner.

    A reservation without a name has the name of its owner. Names of windows of shares
    include the share.
    """
    pairs: list[tuple[Any, str]] = [*pool._owned_windows()]
    named = unique_names(
        [(f"{window.name or owner}{_share(window)}", window) for window, owner in pairs]
    )
    items = _window_items(named)
    owners, of = np.unique([owner for _, owner in pairs], return_inverse=True)
    groups = Groups("owner", owners.tolist(), of) if len(pairs) else None
    return replace(items, groups=groups)


def _share(window: Any) -> str:
    """Return what each part of a window takes, in parentheses; empty for nodes."""
    share = getattr(window, "share", None)
    return f" ({text_of(share)})" if share else ""


def _schedule_items(schedule: Schedule) -> Items:
    """Return all alternatives of a batch, grouped by job; mark the chosen."""
    items = _table_items(schedule.alternatives)
    jobs = list(schedule.batch.names)
    owner = np.asarray(schedule.owner)
    order = np.argsort(owner, kind="stable")
    rank = np.empty(len(owner), np.int64)  # within each job
    rank[order] = np.arange(len(owner)) - np.searchsorted(owner[order], owner[order])
    names = [
        f"{jobs[job]} ({place})"
        for job, place in zip(owner.tolist(), (rank + 1).tolist(), strict=True)
    ]
    chosen = np.zeros(len(owner), np.bool_)
    chosen[schedule.chosen[schedule.scheduled]] = True
    return replace(items, names=names, chosen=chosen, groups=Groups("job", jobs, owner))


def _cycles_items(flow: Cycles) -> Items:
    """Return the windows of all cycles, grouped by cycle; mark each cycle."""
    tables = [_table_items(schedule.windows) for schedule in flow.schedules]
    sizes = [len(table) for table in tables]
    if not sum(sizes):
        return Items.empty()
    before = np.cumsum(sizes) - sizes
    parts = [table.parts.copy() for table in tables]
    for mine, shift in zip(parts, before.tolist(), strict=True):
        mine["item"] += shift
    names: list[str] = []
    for table in tables:
        names += [str(name) for name in table.names]
    cycles = [f"cycle {c + 1}" for c in range(len(tables))]
    fields = [
        Field(
            each.name,
            each.kind,
            np.concatenate([table.fields[k].values for table in tables]),
        )
        for k, each in enumerate(tables[0].fields)
    ]
    return Items(
        "job",
        names,
        np.concatenate([table.start for table in tables]),
        np.concatenate([table.finish for table in tables]),
        np.concatenate(parts),
        np.ones(sum(sizes), np.bool_),
        Groups("cycle", cycles, np.repeat(np.arange(len(tables)), sizes)),
        fields,
        [(at, word) for at, word in zip(flow.times.tolist(), cycles, strict=True)],
        tables[0].clock,
        tables[0].machine,
    )


def _replay_items(done: Replay) -> Items:
    """Return the jobs of a replay, grouped by user.

    Raises
    ------
    ValueError
        If the jobs have no processors.
    """
    if not done.has_nodes:
        raise ValueError("this replay did not place jobs; repeat it with nodes=True")
    jobs = done.jobs
    row, low, count = done.parts(np.arange(len(jobs)))
    parts = np.empty(len(row), PART)
    parts["node"], parts["count"], parts["item"] = low, count, row
    parts["start"], parts["end"] = jobs["start"][row], jobs["end"][row]
    parts["cost"], parts["height"] = np.nan, 1
    users, of = np.unique(jobs["user"], return_inverse=True)
    figures: list[tuple[str, Any]] = [
        ("submit", "time"),
        ("wait", "span"),
        ("run", "span"),
        ("estimate", "span"),
        ("bounded_slowdown", "number"),
    ]
    if len(done.cluster.site) > 1:
        figures.append(("site", "number"))
    return Items(
        "job",
        jobs["job"],
        jobs["start"].astype(np.float64),
        jobs["end"].astype(np.float64),
        parts,
        np.ones(len(jobs), np.bool_),
        Groups("user", [f"user {each}" for each in users.tolist()], of),
        [Field(*each, jobs[each[0]]) for each in figures],
        clock=done.trace.clock,
    )
