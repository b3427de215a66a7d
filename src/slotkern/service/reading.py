"""Operations that read: searches, forecasts and the list of bookings.

A function gets an `Exchange`. Without a suffix it returns the object of the response;
with the suffix ``_table`` it returns the same answer as a table of pyarrow, whose
metadata has the version of the pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import slotkern as sk
from slotkern.search.records import (
    JsonText,
    arrow_table,
    list_text,
    object_text,
    part_columns,
    request_record,
    window_record,
)
from slotkern.service.exchange import Exchange
from slotkern.service.inputs import queue_of
from slotkern.service.problems import Problem

__all__ = [
    "alternatives",
    "bookings",
    "bookings_table",
    "explain",
    "find",
    "find_many",
    "find_many_table",
    "forecast",
    "front",
    "front_table",
    "state",
]


async def state(call: Exchange) -> dict[str, Any]:
    pool = call.app.pool
    clock = None if pool.clock is None else pool.clock.to_dict()
    found = {"slotkern": sk.__version__, "version": pool.version, "now": pool.now}
    found |= {"clock": clock, "user": call.user.name, "role": call.user.role}
    return found


async def find(call: Exchange) -> dict[str, Any]:
    body, request, pool = call.body, call.request, call.app.pool
    criterion = body.get("criterion", "finish")
    shape: Any = body.get("shape", "square")
    plain = request.where is None and not request.limits and not request.special
    if plain and criterion in sk.CRITERIA:  # takes microseconds, and counts no work
        window = pool.find(request, criterion, shape=shape)
    else:
        how: Any = {"shape": shape, "max_work": call.work()}
        window = await call.app.search(lambda: pool.find(request, criterion, **how))
    why = None if window is not None else await call.explanation(request)
    found = {"window": None if window is None else call.window(window)}
    return call.heading(criterion, request) | found | {"explanation": why}


async def find_many(call: Exchange) -> dict[str, Any]:
    """Find a window for each of several requests; all share the limit of work."""

    def search() -> JsonText:
        found = []
        for reason, window in _searched(call):
            record = None if window is None else call.window(window)
            found.append(object_text({"reason": reason, "window": record}))
        return list_text(found)

    windows = await call.app.search(search)
    return {"slotkern": sk.__version__, "version": call.version, "windows": windows}


async def find_many_table(call: Exchange) -> Any:
    """Return a row for each part; `job` is the number of its request, from 0."""

    def search() -> Any:
        found = [window for _, window in _searched(call)]
        jobs = [i for i, window in enumerate(found) if window is not None]
        return _parts_table(call, [found[i] for i in jobs], np.array(jobs, np.int64))

    return await call.app.search(search)


def _searched(call: Exchange) -> list[tuple[str, Any]]:
    """Return a reason and a window or None for each request of the body.

    All see one state of the pool, and each gets an equal part of the work.
    """
    body = call.body
    pool, jobs = call.app.pool.copy(), call.jobs()
    how: Any = {"shape": body.get("shape", "square")}
    how["max_work"] = max(1, call.work() // max(1, len(jobs)))
    found: list[tuple[str, Any]] = []
    for i, job in enumerate(jobs):
        try:
            window = pool.find(job, body.get("criterion", "finish"), **how)
            found.append(("none" if window is None else "found", window))
        except sk.UndecidedError:
            found.append(("undecided", None))
        except (ValueError, TypeError) as error:
            raise Problem(400, f"{call.place(i)}: {error}") from None
    return found


def _parts_table(call: Exchange, windows: list[Any], jobs: Any) -> Any:
    """Return a row for each part of windows; the metadata has the version."""
    pool = call.app.pool
    parts = part_columns(pool, pool.origin, windows)
    index = parts.pop("window") - 1
    table = arrow_table({"job": jobs[index]} | parts)
    return table.replace_schema_metadata({"version": str(call.version)})


async def front_table(call: Exchange) -> Any:
    """Return a row for each part of the windows of a front, numbered by `job`."""

    def search() -> Any:
        found = [*_front_of(call)]
        return _parts_table(call, found, np.arange(len(found)))

    return await call.app.search(search)


def _front_of(call: Exchange) -> Any:
    body, pool = call.body, call.app.pool
    by: Any = tuple(body.get("by", ("cost", "finish")))
    how: Any = {"shape": body.get("shape", "square"), "max_work": call.work()}
    return sk.pareto(pool, call.request, by, most=call.windows(), **how)


async def front(call: Exchange) -> dict[str, Any]:
    request = call.request

    def search() -> tuple[Any, list[dict[str, Any]]]:
        found, pool = _front_of(call), call.app.pool
        pairs = zip(found, found.values.tolist(), strict=True)
        return found, [
            window_record(pool, pool.origin, each) | {"values": values}
            for each, values in pairs
        ]

    found, points = await call.app.search(search)
    more = {"windows": points, "complete": found.complete}
    more["between"] = found.to_dict()["between"]
    why = None if found else await call.explanation(request)
    return call.heading(",".join(found.by), request) | more | {"explanation": why}


async def alternatives(call: Exchange) -> dict[str, Any]:
    body, request, pool = call.body, call.request, call.app.pool
    criterion = body.get("criterion", "first")
    how: Any = {"shape": body.get("shape", "square"), "limit": call.windows()}
    how["max_work"] = call.work()

    def search() -> tuple[bool, JsonText]:
        found = sk.find_alternatives(pool, request, criterion, **how)
        return len(found) > 0, call.windows_text(found)

    some, windows = await call.app.search(search)
    why = None if some else await call.explanation(request)
    return call.heading(criterion, request) | {"windows": windows, "explanation": why}


async def explain(call: Exchange) -> dict[str, Any]:
    request = call.request
    found = {"explanation": await call.explanation(request)}
    return call.heading("first", request) | found


async def forecast(call: Exchange) -> dict[str, Any]:
    body, request, pool = call.body, call.request, call.app.pool
    most = call.app.limits.runs
    how: Any = {name: body[name] for name in ("policy", "now", "seed") if name in body}
    how["runs"] = min(body.get("runs", most), most)
    found = await call.app.search(
        lambda: sk.forecast(pool, request, queue_of(body["queue"]), **how)
    )
    heading: dict[str, Any] = {"slotkern": sk.__version__, "version": call.version}
    heading["request"] = request_record(request)
    return heading | found.to_dict()  # type: ignore[no-any-return]


async def bookings(call: Exchange) -> dict[str, Any]:
    pool, owner = call.app.pool, call.query.get("owner")
    records = await call.app.search(
        lambda: list_text(
            object_text(call.record(booking)) for booking in pool.open_bookings(owner)
        )
    )
    return {"version": call.version, "bookings": records}


async def bookings_table(call: Exchange) -> Any:
    """Return a row for each part of the bookings; the metadata has the version."""
    pool, owner = call.app.pool, call.query.get("owner")

    def read() -> Any:
        found = pool.open_bookings(owner)
        parts = part_columns(pool, pool.origin, [each.window for each in found])
        index = parts.pop("window") - 1
        ends = np.array(
            [each.expires and each.expires.replace(tzinfo=None) for each in found],
            "M8[us]",
        )
        columns: dict[str, Any] = {
            "id": np.array([each.id for each in found], np.int64)[index],
            "owner": [found[i].owner for i in index.tolist()],
            "job": [found[i].window.name for i in index.tolist()],
            "expires": ends[index],
        }
        table = arrow_table(columns | parts)
        return table.replace_schema_metadata({"version": str(call.version)})

    return await call.app.search(read)
