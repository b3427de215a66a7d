"""`HostPool.schedule` against a plain loop that finds and books each request."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_host_pool_model import new_pool, request_of, searches

import slotkern as sk

#: Filters and limits, searched in the binding or, from the fourth on, in views.
MORE = (
    {},
    {"where": "cores >= 8"},
    {"limits": "sum(cores) >= 8"},
    {"where": "start < 5"},
    {"limits": "sum(cores * length) <= 40 "},
    {"within": "cores"},
    {"min_performance": 2},
    {"max_price": 3},
    {"max_runtime": 2},
    {"latest": 4},
)


def reason_in_view(pool: sk.HostPool, job: sk.Request, **how: Any) -> str:
    """Return the reason of a pool with the spans of the share, or "" if it has none.

    Such a pool refuses filters that bookings change, and has several nodes for a node
    with a stack.
    """
    resolved, _, demand = pool._asked(job)
    if not pool._rows.can_hold(demand):
        return "share"
    view = pool._rows.view(demand, job.stack)
    if (view.stack > 1 and job.where) or "start" in str(job.where):
        return ""
    plain = resolved.replace(share=None, stack=1)
    return view.pool.copy().schedule([plain], **how).reasons[0]


def plain_loop(
    pool: sk.HostPool, jobs: list[sk.Request], owner: str | None, **how: Any
) -> tuple[list[sk.ShareWindow | None], list[str]]:
    """Find and book each request; the reasons are those of `reason_in_view`."""
    windows, reasons = [], []
    for job in jobs:
        window = pool.find(job, **how)
        reason = "booked"
        if window is None:
            reason = reason_in_view(pool, job, **how)
        else:
            pool.book(window, owner)
        windows.append(window)
        reasons.append(reason)
    return windows, reasons


@given(
    st.lists(st.tuples(searches(), st.sampled_from(MORE)), min_size=1, max_size=12),
    st.sampled_from(["start", "finish", "runtime", "cost", "first"]),
    st.sampled_from(["square", "ragged"]),
    st.sampled_from([None, "ann"]),
    st.booleans(),
)
@settings(max_examples=settings.default.max_examples // 4)
def test_a_queue_is_booked_as_by_a_plain_loop(
    drawn: list[Any], criterion: Any, shape: Any, owner: str | None, closed: bool
) -> None:
    jobs = [
        request_of(search).replace(name=f"j{i}", **more)
        for i, (search, more) in enumerate(drawn)
    ]
    pool, other = new_pool(), new_pool()
    for each in (pool, other):
        if closed:
            each.disable("b", 0, 6)
            each.advance(1)
    done = pool.schedule(jobs, criterion, shape=shape, owner=owner)
    windows, reasons = plain_loop(other, jobs, owner, criterion=criterion, shape=shape)
    assert list(done) == windows
    for reason, expected in zip(done.reasons, reasons, strict=True):
        assert reason == expected or expected == "" != reason != "booked"
    assert done.names == [job.name for job in jobs]
    assert done.booked.tolist() == [window is not None for window in windows]
    for name in ("start", "finish", "cost"):
        known = [np.nan if w is None else getattr(w, name) for w in windows]
        np.testing.assert_array_equal(getattr(done, name), known)
    assert [w.name for w in done if w] == [w.name for w in windows if w]
    assert pool == other
    assert pool.windows() == other.windows()
    assert [w.name for w in pool.windows()] == [w.name for w in other.windows()]
    assert pool.bookings().tolist() == other.bookings().tolist()


def test_a_slice_and_its_windows_are_those_of_the_queue() -> None:
    done = new_pool().schedule([sk.Request(1, 2, share={"cores": 4})] * 4)
    some = done[1:3]
    assert [*some] == [done[1], done[2]]
    assert done[1] is done[1]
    assert some.start.tolist() == done.start[1:3].tolist()
    assert some.reasons == done.reasons[1:3]


def test_errors_of_a_queue_name_the_request_before_anything_is_booked() -> None:
    pool = new_pool()
    good = sk.Request(1, 2, share={"cores": 1})
    for bad, message in (
        (good.replace(where="coers >= 2"), "coers"),
        (good.replace(share={"gpu": 1}), "gpus"),
        (good.replace(earliest="2026-10-25"), "clock"),
        (good.replace(uses={"x": 1}), "capacity 'x'"),
        # Searches of views are checked before the first booking, too.
        (good.replace(within="core"), "core"),
        (good.replace(where="coers >= 2", within="cores"), "coers"),
        (good.replace(limits="sum(coers * length) <= 4"), "coers"),
        (good.replace(limits="sum(cores) <= 4", within="cores"), "together"),
    ):
        with pytest.raises(ValueError, match=rf"requests\[1\]: .*{message}") as found:
            pool.schedule([good, bad])
        assert not hasattr(found.value, "bookings")
    with pytest.raises(TypeError, match=r"requests must be a table, .* got int"):
        pool.schedule(7)
    with pytest.raises(TypeError, match=r"requests\[0\] must be a Request, got int"):
        pool.schedule([7])
    assert pool == new_pool()


def test_an_interrupt_keeps_what_is_booked_with_its_owner() -> None:
    machine = sk.Machine(
        {"name": [f"n{i}" for i in range(200)], "cores": 64}, capacity="cores"
    )
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=np.inf))
    jobs = [sk.Request(8, 1, share={"cores": k}) for k in range(1, 65)] * 1000
    before = pool._rows.core.version

    def interrupt() -> None:
        """Interrupt the main thread once something is booked."""
        while pool._rows.core.version == before:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    # A process in the background ignores SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt) as found:
            pool.schedule(jobs, owner="ann")
        thread.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    done = getattr(found.value, "bookings", ())
    assert 0 < len(done) < len(jobs)
    assert pool.windows("ann") == [window for window in done if window]
    assert len(pool.booked) == sum(len(window) for window in done if window)


@pytest.mark.parametrize("how", [{"within": "cores"}, {"tree": {"cores": 1}}])
def test_an_interrupt_after_any_line_keeps_what_is_booked(how: Any) -> None:
    """Views are booked by Python, trees by the binding: interrupt after each line."""
    machine = sk.Machine({"name": list("ab"), "cores": 8}, capacity="cores")
    jobs = [sk.Request(2, 1, share={"cores": 2}, **how)] * 3
    files, stops = ("host_bookings.py", "share_bookings.py"), 0
    for line in count():
        pool = sk.HostPool(sk.free_slots(machine, start=0, end=99))
        pool.schedule(jobs[:1])  # caches are filled
        seen = [0]

        def trace(frame: Any, event: str, _: Any, line: int = line, seen: Any = seen):
            if not frame.f_code.co_filename.endswith(files):
                return None
            if event == "line" and frame.f_code.co_name in _BOOKING:
                seen[0] += 1
                if seen[0] == line + 1:
                    raise KeyboardInterrupt
            return trace

        found: Any = None
        sys.settrace(trace)
        try:
            done = pool.schedule(jobs, owner="ann")
        except KeyboardInterrupt as error:
            found, done = error, getattr(error, "bookings", ())
        finally:
            sys.settrace(None)
        windows = [window for window in done if window]
        assert pool.windows("ann") == windows
        assert len(pool.booked) == 2 + sum(len(window) for window in windows)
        if found is None:
            break
        stops += 1
    assert stops > 20


#: Functions in which a line may follow a booking.
_BOOKING = (
    *("schedule_shares", "schedule", "find_and_book", "_find_and_book", "_add"),
)


def test_threads_that_schedule_at_one_time_book_no_amount_twice() -> None:
    machine = sk.Machine({"name": list("abcd"), "cores": 8}, capacity="cores")
    pool = sk.HostPool(sk.free_slots(machine, start=0, end=10_000))
    results: dict[str, sk.ShareBookings] = {}
    start = threading.Barrier(2)

    def schedule(owner: str, cores: int) -> None:
        jobs = [sk.Request(2, 1, share={"cores": cores})] * 300
        start.wait()
        results[owner] = pool.schedule(jobs, owner=owner)

    threads = [
        threading.Thread(target=schedule, args=each) for each in (("x", 3), ("y", 5))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = np.zeros((4, 10_000), int)
    for owner, cores in (("x", 3), ("y", 5)):
        assert results[owner].booked.all()
        assert pool.windows(owner) == [*results[owner]]
        for window in results[owner]:
            taken[[*window.nodes], int(window.start)] += cores
    assert taken.max() <= 8
    assert taken.sum() == 600 * (3 + 5)
