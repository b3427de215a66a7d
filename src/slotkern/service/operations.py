"""The operations of a service: their paths, bodies and roles.

`OPERATIONS` is the one list of them: routes, checks, the OpenAPI document and the tools
of the Model Context Protocol are made from it. An operation gets an `Exchange` and
returns the object of its response.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import slotkern as sk
from slotkern.replays.forecast import forecast_policies
from slotkern.service import administration, booking, reading
from slotkern.service.exchange import Exchange
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
    described,
    object_schema,
)

__all__ = ["OPERATIONS", "Operation"]


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

    @property
    def takes_table(self) -> bool:
        """True if the jobs of the body may be a table, with other fields in the query.

        See `slotkern.service.tables`.
        """
        return "jobs" in self.fields

    @property
    def table_query(self) -> Fields:
        """The fields of the query of a request whose body is a table."""
        return {name: each for name, each in self.fields.items() if name != "jobs"}


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
        reading.state,
    ),
    Operation(
        *("find", "POST", "/v1/find", "read"),
        *("The best window of a job.", reading.find),
        _JOB | _LIMIT | {"criterion": _CRITERION},
        ("request",),
    ),
    Operation(
        *("front", "POST", "/v1/front", "read"),
        *("The Pareto front of a job.", reading.front),
        _JOB | _LIMIT | _MOST | {"by": _BY},
        ("request",),
        table=reading.front_table,
    ),
    Operation(
        *("find_many", "POST", "/v1/find/many", "read"),
        "The best window of each of several jobs; nothing is booked.",
        reading.find_many,
        _MANY | _LIMIT,
        ("jobs",),
        table=reading.find_many_table,
    ),
    Operation(
        *("alternatives", "POST", "/v1/alternatives", "read"),
        *("Windows that share no slot time.", reading.alternatives),
        _JOB | _LIMIT | _MOST | {"criterion": _CRITERION},
        ("request",),
    ),
    Operation(
        *("explain", "POST", "/v1/explain", "read", "Why a job has no window."),
        reading.explain,
        _JOB | _LIMIT,
        ("request",),
    ),
    Operation(
        *("forecast", "POST", "/v1/forecast", "read"),
        *("When a job will start behind the jobs of a queue.", reading.forecast),
        _FORECAST,
        ("request", "queue"),
    ),
    Operation(
        *("bookings", "GET", "/v1/bookings", "read", "The bookings.", reading.bookings),
        table=reading.bookings_table,
        query={"owner": "Only the bookings of this owner."},
    ),
    Operation(
        *("book", "POST", "/v1/bookings", "book"),
        *("Find and book a window, or hold it.", booking.book),
        _BOOK | _LIMIT,
        ("request",),
        created="The booking is new; 200 if its token was known.",
    ),
    Operation(
        *("schedule", "POST", "/v1/schedule", "book"),
        "Find and book a window for each job, in order, as one call.",
        booking.schedule,
        _MANY | {"token": _TOKEN, "owner": TEXT},
        ("jobs",),
        table=booking.schedule_table,
    ),
    Operation(
        *("confirm", "POST", "/v1/bookings/{id}/confirm", "book"),
        *("Confirm a hold.", booking.confirm),
    ),
    Operation(
        *("release", "DELETE", "/v1/bookings/{id}", "book", "Release a booking."),
        booking.release,
    ),
    Operation(
        *("calls", "GET", "/v1/calls", "administer"),
        *("The calls that changed the ledger.", administration.calls),
        query={"since": "Only the calls after this version."},
    ),
    Operation(
        *("advance", "POST", "/v1/advance", "administer"),
        *("Advance the time of the pool.", administration.advance),
        {"now": TIME},
        ("now",),
    ),
    Operation(
        *("disable", "POST", "/v1/disable", "administer", "Close nodes for a time."),
        administration.disable,
        _SPAN,
        ("nodes",),
    ),
    Operation(
        *("enable", "POST", "/v1/enable", "administer", "Reopen closed nodes."),
        administration.enable,
        {"nodes": NODES},
        ("nodes",),
    ),
)
