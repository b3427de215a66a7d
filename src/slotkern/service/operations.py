"""The operations of a service: their bodies, roles and results.

`OPERATIONS` is the one list of them: routes, checks, the OpenAPI document and the tools
of the Model Context Protocol are made from it. An operation gets an `Exchange` and
returns the object of its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import slotkern as sk
from slotkern._kernels.request import Request
from slotkern.ledger.errors import TokenUsed
from slotkern.replays.forecast import forecast_policies
from slotkern.search.records import (
    arrow_table,
    cells,
    listing_columns,
    part_columns,
    request_record,
    window_record,
)
from slotkern.service.backend import Backend
from slotkern.service.inputs import (
    DURATION,
    INTEGER,
    NODES,
    QUEUE,
    REQUEST,
    SHAPE,
    TEXT,
    TIME,
    Fields,
    build_request,
    described,
    object_schema,
    queue_of,
    version_of,
)
from slotkern.service.problems import Problem
from slotkern.service.users import User

__all__ = ["OPERATIONS", "Exchange", "Operation"]


@dataclass
class Exchange:
    """A request to an operation.

    Attributes
    ----------
    body : dict
        The checked fields of the body.
    booking : int
        The id in the path.
    query : mapping of str to str
    version : int
        That of the pool when the request came: the answer has all entries up to it, so
        that a client can read the events after it without a gap.
    status : int
        The status of the response.
    """

    app: Backend
    user: User
    body: dict[str, Any]
    booking: int = 0
    query: Mapping[str, str] = field(default_factory=dict)
    version: int = field(init=False)
    status: int = 200

    def __post_init__(self) -> None:
        self.version = self.app.pool.version

    @property
    def request(self) -> Request:
        """The request of the body, with the name of the job."""
        return build_request(self.body["request"], self.body.get("name"))

    def work(self) -> int:
        """Return the work that a search may do: less than the limit if asked for."""
        limit = self.app.limits.work
        return min(int(self.body.get("max_work", limit)), limit)

    def windows(self) -> int:
        """Return the number of windows that a search may return."""
        limit = self.app.limits.windows
        return min(int(self.body.get("most", limit)), limit)

    def heading(self, criterion: str, request: Request) -> dict[str, Any]:
        """Return the first members of an answer, as the command line prints them."""
        shape = self.body.get("shape", "square")
        heading: dict[str, Any] = {"slotkern": sk.__version__}
        heading |= {"version": self.version, "criterion": criterion}
        return heading | {"shape": shape, "request": request_record(request)}

    async def explanation(self, request: Request) -> dict[str, Any]:
        """Return why a request has no window."""
        pool, shape = self.app.pool, self.body.get("shape", "square")
        how: Any = {"shape": shape, "max_work": self.work()}
        why = await self.app.search(lambda: sk.explain(pool, request, **how))
        return why.to_dict() | {"text": str(why)}  # type: ignore[no-any-return]

    def window(self, window: Any) -> dict[str, Any]:
        """Return a window as the command line prints it."""
        return window_record(self.app.pool, self.app.pool.origin, window)


class Operation(NamedTuple):
    """An operation: its name, method, path, role, function, body and query."""

    name: str
    method: str
    path: str
    role: str
    summary: str
    run: Callable[[Exchange], Awaitable[dict[str, Any]]]
    fields: Fields = MappingProxyType({})
    required: tuple[str, ...] = ()
    query: Mapping[str, str] = MappingProxyType({})  # the meaning of each name
    table: Callable[[Exchange], Awaitable[Any]] | None = None  # of pyarrow
    created: str = ""  # the meaning of 201, if it is a status of success


# --- reading


async def _state(call: Exchange) -> dict[str, Any]:
    pool = call.app.pool
    clock = None if pool.clock is None else pool.clock.to_dict()
    found = {"slotkern": sk.__version__, "version": pool.version, "now": pool.now}
    found |= {"clock": clock, "user": call.user.name, "role": call.user.role}
    return found


async def _find(call: Exchange) -> dict[str, Any]:
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


async def _find_many(call: Exchange) -> dict[str, Any]:
    """Find a window for each of several requests; all share the limit of work."""

    def search() -> list[dict[str, Any]]:
        found = []
        for reason, window in _searched(call):
            record = None if window is None else call.window(window)
            found.append({"reason": reason, "window": record})
        return found

    windows = await call.app.search(search)
    return {"slotkern": sk.__version__, "version": call.version, "windows": windows}


async def _find_many_table(call: Exchange) -> Any:
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
    pool, jobs = call.app.pool.copy(), _jobs_of(call)
    how: Any = {"shape": body.get("shape", "square")}
    how["max_work"] = max(1, call.work() // max(1, len(jobs)))
    found: list[tuple[str, Any]] = []
    for job in jobs:
        try:
            window = pool.find(job, body.get("criterion", "finish"), **how)
            found.append(("none" if window is None else "found", window))
        except sk.UndecidedError:
            found.append(("undecided", None))
    return found


def _jobs_of(call: Exchange) -> list[Request]:
    """Return the requests of the jobs of a body, with their names."""
    jobs = call.body["jobs"]
    most = call.app.limits.jobs
    if len(jobs) > most:
        raise Problem(413, f"the body has {len(jobs)} jobs; at most {most} are allowed")
    found = []
    for i, job in enumerate(jobs):
        try:
            fields = {name: value for name, value in job.items() if name != "name"}
            found.append(build_request(fields, job.get("name")))
        except (ValueError, TypeError) as error:
            raise Problem(400, f"jobs[{i}]: {error}") from None
    return found


def _parts_table(call: Exchange, windows: list[Any], jobs: Any) -> Any:
    """Return a row for each part of windows; the metadata has the version."""
    pool = call.app.pool
    parts = part_columns(pool, pool.origin, windows)
    index = parts.pop("window") - 1
    table = arrow_table({"job": jobs[index]} | parts)
    return table.replace_schema_metadata({"version": str(call.version)})


async def _front_table(call: Exchange) -> Any:
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


async def _front(call: Exchange) -> dict[str, Any]:
    request = call.request

    def search() -> tuple[Any, list[dict[str, Any]]]:
        found = _front_of(call)
        pairs = zip(found, found.values.tolist(), strict=True)
        return found, [call.window(each) | {"values": values} for each, values in pairs]

    found, points = await call.app.search(search)
    more = {"windows": points, "complete": found.complete}
    more["between"] = found.to_dict()["between"]
    why = None if found else await call.explanation(request)
    return call.heading(",".join(found.by), request) | more | {"explanation": why}


async def _alternatives(call: Exchange) -> dict[str, Any]:
    body, request, pool = call.body, call.request, call.app.pool
    criterion = body.get("criterion", "first")
    how: Any = {"shape": body.get("shape", "square"), "limit": call.windows()}
    how["max_work"] = call.work()

    def search() -> list[dict[str, Any]]:
        return [
            call.window(window)
            for window in sk.find_alternatives(pool, request, criterion, **how)
        ]

    windows = await call.app.search(search)
    why = None if windows else await call.explanation(request)
    return call.heading(criterion, request) | {"windows": windows, "explanation": why}


async def _explain(call: Exchange) -> dict[str, Any]:
    request = call.request
    found = {"explanation": await call.explanation(request)}
    return call.heading("first", request) | found


async def _forecast(call: Exchange) -> dict[str, Any]:
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


async def _bookings(call: Exchange) -> dict[str, Any]:
    pool, owner = call.app.pool, call.query.get("owner")
    records = await call.app.search(
        lambda: [_record(call, booking) for booking in pool.open_bookings(owner)]
    )
    return {"version": call.version, "bookings": records}


async def _bookings_table(call: Exchange) -> Any:
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


def _record(call: Exchange, booking: sk.Booking) -> dict[str, Any]:
    """Return a booking as an object with its id, owner, name, window and hold."""
    expires = booking.expires
    return {
        "id": booking.id,
        "owner": booking.owner,
        "name": booking.window.name,
        "expires": None if expires is None else expires.isoformat(),
        "repeated": booking.repeated,
        "window": call.window(booking.window),
    }


# --- booking


async def _book(call: Exchange) -> dict[str, Any]:
    body, request, user = call.body, call.request, call.user
    owner, token = body.get("owner", user.name), body.get("token")
    _may_book(user, owner, request)
    criterion = body.get("criterion", "start")
    shape: Any = body.get("shape", "square")
    how = {"shape": shape, "owner": owner, "hold": body.get("hold")}
    how["max_work"] = call.work()
    if token is not None:
        how["token"] = f"{user.name}/{token}"  # nobody gets the answers of others

    def change(pool: sk.SharedPool) -> sk.Booking | None:
        forms = [request]
        if request.account is None:  # it must not evade the quotas of its owner
            forms.append(request.replace(account=owner))
            if pool._capacities is not None:
                forms.reverse()
        try:
            return pool.place(forms[0], criterion, **how)
        except TokenUsed:  # before the first quota, or after the last one?
            return pool.place(forms[-1], criterion, **how)

    booking = await call.app.change(user, change)
    if booking is None:
        why = await call.explanation(request)
        raise Problem(409, why["text"])
    call.status = 200 if booking.repeated else 201
    return _record(call, booking)


#: Fields of requests whose searches may take long: the writer has no time for them.
_LONG = ("within", "tree", "whole")


async def _schedule(call: Exchange) -> dict[str, Any]:
    done, numbers = await _scheduled(call)
    jobs = [
        {
            "name": name,
            "reason": reason,
            "id": number,
            "window": None if window is None else call.window(window),
        }
        for name, reason, number, window in zip(
            done.names, done.reasons, numbers, done, strict=True
        )
    ]
    heading: dict[str, Any] = {"slotkern": sk.__version__, "version": call.version}
    return heading | {"booked": int(done.booked.sum()), "jobs": jobs}


async def _schedule_table(call: Exchange) -> Any:
    """Return a row for each job: its number, id, and the columns of `schedule`."""
    done, numbers = await _scheduled(call)
    columns: dict[str, Any] = {"job": np.arange(len(done)), "id": numbers}
    columns |= listing_columns(done.listing(), call.app.pool.clock)
    table = arrow_table(columns)
    return table.replace_schema_metadata({"version": str(call.version)})


async def _scheduled(call: Exchange) -> tuple[Any, list[int | None]]:
    """Book a window for each job as one call; return the result, and the ids."""
    body, user, jobs = call.body, call.user, _jobs_of(call)
    owner, token = body.get("owner", user.name), body.get("token")
    criterion, shape = body.get("criterion", "start"), body.get("shape", "square")
    for i, job in enumerate(jobs):
        _may_book(user, owner, job)
        sums = any(type(amount) is str for amount in (job.uses or {}).values())
        if job.limits or sums or any(getattr(job, name) for name in _LONG):
            raise Problem(
                400,
                f"jobs[{i}] has limits, whose search may take long: book it by "
                "/v1/bookings",
            )
    if token is not None:
        token = f"{user.name}/{token}"
    how: Any = (criterion, shape, owner, token)

    def change(pool: sk.SharedPool) -> tuple[Any, list[int | None]]:
        charged = [
            job if job.account is not None else job.replace(account=owner)
            for job in jobs
        ]  # jobs must not evade the quotas of their owner
        forms = [jobs, charged]
        if pool._capacities is not None:
            forms.reverse()
        try:
            done, numbers = pool._schedule_numbered(forms[0], *how)
        except TokenUsed:  # before the first quota, or after the last one?
            done, numbers = pool._schedule_numbered(forms[1], *how)
        ids = iter(numbers)
        return done, [next(ids) if booked else None for booked in done.booked]

    found: tuple[Any, list[int | None]] = await call.app.change(user, change)
    return found


def _may_book(user: User, owner: str, request: Request) -> None:
    """Raise 403 for an owner or an account for which the user may not book."""
    if user.has_role("administer"):
        return
    if owner != user.name:
        raise Problem(403, f"{user.name} may not book for {owner}")
    if request.account not in (None, owner):
        raise Problem(403, f"{user.name} may not book on the account {request.account}")


def _owner(call: Exchange) -> str | None:
    """Return the owner whose bookings the user may change; None for all."""
    return None if call.user.has_role("administer") else call.user.name


async def _confirm(call: Exchange) -> dict[str, Any]:
    number, owner = call.booking, _owner(call)
    booking = await call.app.change(
        call.user, lambda pool: pool.confirm(number, owner=owner)
    )
    return _record(call, booking)


async def _release(call: Exchange) -> dict[str, Any]:
    number, owner = call.booking, _owner(call)
    try:
        await call.app.change(call.user, lambda pool: pool.release(number, owner=owner))
    except LookupError as error:
        raise Problem(404, str(error)) from None
    return {"released": number}


# --- administration


async def _calls(call: Exchange) -> dict[str, Any]:
    pool, since = call.app.pool, version_of(call.query.get("since", "0"))
    most = call.app.limits.calls
    table = await call.app.search(lambda: pool.calls(since=since, most=most + 1))
    complete = len(table) <= most
    table = table[:most]
    columns = listing_columns(table, None)
    columns["time"] = [f"{time}Z" for time in table["time"].astype(str)]
    rows = zip(*map(cells, columns.values()), strict=True)
    calls = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"calls": calls, "complete": complete}


async def _advance(call: Exchange) -> dict[str, Any]:
    now = call.body["now"]
    await call.app.change(call.user, lambda pool: pool.advance(now))
    return {"now": call.app.pool.now}


async def _disable(call: Exchange) -> dict[str, Any]:
    how = {name: call.body.get(name) for name in ("start", "end")}
    nodes, owner = call.body["nodes"], call.body.get("owner", "down")

    def change(pool: sk.SharedPool) -> list[Any]:
        return pool.disable(nodes, owner=owner, **how)

    windows = await call.app.change(call.user, change)
    return {"windows": [call.window(window) for window in windows]}


async def _enable(call: Exchange) -> dict[str, Any]:
    nodes = call.body["nodes"]
    await call.app.change(call.user, lambda pool: pool.enable(nodes))
    return {"enabled": nodes}


_CRITERION = described(
    TEXT, f"Objective: {', '.join(sk.CRITERIA)}, a value or a numeric column."
)
_JOB: dict[str, Any] = {"request": REQUEST, "shape": SHAPE}
_LIMIT = {"max_work": described(INTEGER, "Maximum units of counted work.")}
_MOST = {"most": described(INTEGER | {"minimum": 2}, "Maximum number of windows.")}
_BY = {"type": "array", "items": TEXT, "maxItems": 2}
_BY = described(_BY, "The two measures to minimize; by default cost and finish.")
_TOKEN = described(TEXT, "A text by which a repeated call gets its first answer.")
_HOLD = described(DURATION, "Time after which it ends unless confirmed: 10min.")
_BOOK = _JOB | {"criterion": _CRITERION, "name": described(TEXT, "Name of the job.")}
_BOOK |= {"token": _TOKEN, "hold": _HOLD, "owner": TEXT}
_NAMED = object_schema(
    REQUEST["properties"] | {"name": described(TEXT, "Name of the job.")}, ("nodes",)
)
_JOBS = {"type": "array", "items": _NAMED}
_MANY = {"jobs": described(_JOBS, "The requests."), "shape": SHAPE}
_MANY |= {"criterion": _CRITERION}
_SPAN = {"nodes": NODES, "start": TIME, "end": TIME, "owner": TEXT}
_FORECAST: dict[str, Any] = {"request": REQUEST, "queue": QUEUE, "now": TIME}
_FORECAST |= {"policy": described(TEXT, f"One of {', '.join(forecast_policies())}.")}
_FORECAST |= {"seed": INTEGER, "runs": INTEGER | {"minimum": 1}}

OPERATIONS = (
    Operation(
        *("state", "GET", "/v1", "read", "The version, time and clock of the pool."),
        _state,
    ),
    Operation(
        *("find", "POST", "/v1/find", "read", "The best window of a job.", _find),
        _JOB | _LIMIT | {"criterion": _CRITERION},
        ("request",),
    ),
    Operation(
        *("front", "POST", "/v1/front", "read", "The Pareto front of a job.", _front),
        _JOB | _LIMIT | _MOST | {"by": _BY},
        ("request",),
        table=_front_table,
    ),
    Operation(
        *("find_many", "POST", "/v1/find/many", "read"),
        *("The best window of each of several jobs; nothing is booked.", _find_many),
        _MANY | _LIMIT,
        ("jobs",),
        table=_find_many_table,
    ),
    Operation(
        *("alternatives", "POST", "/v1/alternatives", "read"),
        *("Windows that share no slot time.", _alternatives),
        _JOB | _LIMIT | _MOST | {"criterion": _CRITERION},
        ("request",),
    ),
    Operation(
        *("explain", "POST", "/v1/explain", "read", "Why a job has no window."),
        _explain,
        _JOB | _LIMIT,
        ("request",),
    ),
    Operation(
        *("forecast", "POST", "/v1/forecast", "read"),
        *("When a job will start behind the jobs of a queue.", _forecast),
        _FORECAST,
        ("request", "queue"),
    ),
    Operation(
        *("bookings", "GET", "/v1/bookings", "read", "The bookings.", _bookings),
        table=_bookings_table,
        query={"owner": "Only the bookings of this owner."},
    ),
    Operation(
        *("book", "POST", "/v1/bookings", "book"),
        *("Find and book a window, or hold it.", _book),
        _BOOK | _LIMIT,
        ("request",),
        created="The booking is new; 200 if its token was known.",
    ),
    Operation(
        *("schedule", "POST", "/v1/schedule", "book"),
        *("Find and book a window for each job, in order, as one call.", _schedule),
        _MANY | {"token": _TOKEN, "owner": TEXT},
        ("jobs",),
        table=_schedule_table,
    ),
    Operation(
        *("confirm", "POST", "/v1/bookings/{id}/confirm", "book"),
        *("Confirm a hold.", _confirm),
    ),
    Operation(
        *("release", "DELETE", "/v1/bookings/{id}", "book", "Release a booking."),
        _release,
    ),
    Operation(
        *("calls", "GET", "/v1/calls", "administer"),
        *("The calls that changed the ledger.", _calls),
        query={"since": "Only the calls after this version."},
    ),
    Operation(
        *("advance", "POST", "/v1/advance", "administer"),
        *("Advance the time of the pool.", _advance),
        {"now": TIME},
        ("now",),
    ),
    Operation(
        *("disable", "POST", "/v1/disable", "administer", "Close nodes for a time."),
        _disable,
        _SPAN,
        ("nodes",),
    ),
    Operation(
        *("enable", "POST", "/v1/enable", "administer", "Reopen closed nodes."),
        _enable,
        {"nodes": NODES},
        ("nodes",),
    ),
)
