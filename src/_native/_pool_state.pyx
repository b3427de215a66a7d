"""Pools made of arrays: what a file or another process kept, and slots that are added."""

import numpy as np

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t
from libcpp.utility cimport move
from libcpp.vector cimport vector

from slotkern._base cimport Status, InterruptScope, ask, hears
from slotkern._changing cimport PoolState, check_status, extend_pool, open_pool, state_of
from slotkern._core cimport PreparedSlots
from slotkern._pool cimport SlotPool
from slotkern._spans cimport Span, fill_spans, prices_of

from slotkern._core import array_of, check_slots
from slotkern._pool import NO_CLOSURES
from slotkern._spans import SPAN
from slotkern.errors import SlotError
from slotkern.slots import in_order, row_order


NO_SPANS = np.empty(0, SPAN)


def restored(origin, state, now, terms=None, owned=(), generations=None, closures=None):
    """The pool of these arrays, with clock, machine, owned windows, generations of files."""
    if closures is None:
        closures = NO_CLOSURES
    cdef SlotPool pool = in_state(origin, state, now, closures)
    pool._closures = closures
    pool.terms = terms
    pool._generations.update(generations or {})
    for window, owner in owned:
        window.terms = terms
        pool.own([window], owner)
    return pool


cdef SlotPool in_state(origin, state, now, closures):
    if not len(closures) and now == -np.inf and in_order(origin, "start", "node") is origin and all_free(origin, state):
        return SlotPool(origin)  # nothing has changed yet
    pool = SlotPool(origin[:0])
    restore(pool, origin, state, now, closures)
    return pool


cdef int fill_closed(object closures, object ids, PoolState& state) except -1:
    """The closed time of these nodes."""
    rows = closures[np.isin(closures["node"], ids)]
    rows = rows[np.lexsort((rows["start"], rows["node"]))]
    table = np.zeros(len(rows), SPAN)
    for name in ("node", "start", "end"):
        table[name] = rows[name]
    state.closed.clear()
    state.closed_nodes.clear()
    return fill_spans(table, state.closed_nodes, state.closed)


cdef bint all_free(origin, state) except -1:
    """Whether every slot is free, none is cut, and no node is removed."""
    free = state["free"]
    if len(free) != len(origin) or len(state["booked"]) or len(state["gone"]):
        return False
    slots = origin.take(free["row"])
    return all([np.array_equal(slots[name], free[name]) for name in ("node", "start", "end")])


cdef int restore(SlotPool pool, object origin, object arrays, double now,
                 object closures) except -1:
    """Make a pool that nobody else has one of these slots, spans and removed nodes."""
    cdef PoolState state
    cdef vector[double] prices = prices_of(origin)
    cdef PreparedSlots fresh = PreparedSlots(in_order(origin, "start", "node"))
    origin = np.array(origin)
    origin.flags.writeable = False
    state.now, state.first_new_span = now, len(arrays["free"])
    fill_spans(arrays["free"], state.free_nodes, state.free)
    fill_spans(arrays["booked"], state.booked_nodes, state.booked)
    state.removed = arrays["gone"].tolist()
    fill_spans(arrays.get("held", NO_SPANS), state.withheld_nodes, state.withheld)
    fill_closed(closures, origin["node"], state)
    cdef Status status = Status.interrupted
    cdef InterruptScope watch
    watch.arm(hears())
    pool.prepared = move(fresh.prepared)
    while status == Status.interrupted:
        ask(watch)
        status = open_pool(pool.pool, pool.prepared, prices, &state)
    check_status(status)
    stand_on(pool, origin)
    return 0


cdef bint extend(SlotPool pool, size_t known, object origin, PreparedSlots fresh, size_t gone,
                 double now) except -1:
    """Free the rows of origin behind `known`; False if the pool has other rows, nodes or now."""
    cdef PoolState state, known_closed
    cdef vector[double] prices = prices_of(origin)
    cdef vector[int32_t] nodes
    cdef vector[Span] spans
    cdef Status status = Status.interrupted
    cdef bint same = False
    cdef InterruptScope watch
    watch.arm(hears())
    origin.flags.writeable = False
    added = np.empty(len(origin) - known, SPAN)
    added["row"] = np.arange(known, len(origin))
    for name in ("node", "start", "end"):
        added[name] = origin[name][known:]
    fill_spans(added, nodes, spans)
    closures = pool._closures
    fill_closed(closures, origin["node"], known_closed)  # before the pool is locked
    while status == Status.interrupted:
        ask(watch)
        pool.start_change()
        try:
            status = state_of(pool.pool, state)
            if status == Status.ok:
                same = (<size_t>len(pool.table) == known and state.removed.size() == gone
                        and state.now == now and pool._closures is closures)
            if same:
                state.first_new_span = state.free.size()
                state.free_nodes.insert(state.free_nodes.end(), nodes.begin(), nodes.end())
                state.free.insert(state.free.end(), spans.begin(), spans.end())
                state.closed_nodes = known_closed.closed_nodes
                state.closed = known_closed.closed
                status = extend_pool(pool.pool, fresh.prepared, prices, state)
                if status == Status.ok:
                    stand_on(pool, origin)
        finally:
            pool.mutex.unlock()
    check_status(status)
    return same


cdef int stand_on(SlotPool pool, object origin) except -1:
    """The array that a changed pool's slots come from."""
    pool.table = origin
    pool.masks.clear()
    pool.forget_limits()
    pool.changed = True
    return 0


def add_slots(SlotPool pool, slots):
    """See `SlotPool.add_slots`."""
    slots = array_of(slots)
    check_slots(slots)
    while not add(pool, slots):
        pass  # another thread added, removed or advanced meanwhile


cdef bint add(SlotPool pool, object slots) except -1:
    """Add the slots unless the pool is no more what they were checked against."""
    table, state, now = pool._whole()
    if slots.dtype.names != table.dtype.names:
        raise ValueError(
            f"slots must have the fields {', '.join(table.dtype.names)}, got "
            f"{', '.join(slots.dtype.names)}"
        )
    gone = np.isin(slots["node"], state["gone"])
    if gone.any():
        row = int(np.flatnonzero(gone)[0])
        node = slots["node"][row]
        raise SlotError(f"node {node} was removed from the pool", row, "node", row)
    early = slots["start"] < now
    if early.any():
        row = int(np.flatnonzero(early)[0])
        raise SlotError(f"start {slots['start'][row]} lies before the pool's now, "
                        f"{now}", row, "start", row)
    PyErr_CheckSignals()  # here nobody else does, and each step may take long
    origin = np.concatenate([table, slots.astype(table.dtype, copy=False)])
    PyErr_CheckSignals()
    order = row_order(origin["node"], origin["start"])
    in_time = origin.take(order)
    PyErr_CheckSignals()
    try:
        fresh = PreparedSlots(in_time)
    except SlotError as error:
        row, other = int(order[error.row]), int(order[error.other])
        old = len(table)
        text = f"{error.problem}; it clashes with row {min(row, other)} of the pool's origin"
        raise SlotError(text, max(row, other) - old, error.field,
                        max(row, other) - old) from None
    return extend(pool, len(table), origin, fresh, len(state["gone"]), now)
