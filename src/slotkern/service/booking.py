"""Operations that book: windows are found and booked, confirmed and released."""

from __future__ import annotations

from typing import Any

import numpy as np

import slotkern as sk
from slotkern._kernels.request import Request
from slotkern.ledger.errors import TokenUsed
from slotkern.search.records import (
    arrow_table,
    list_text,
    listing_columns,
    object_text,
)
from slotkern.service.exchange import Exchange
from slotkern.service.problems import Problem
from slotkern.service.users import User

__all__ = ["book", "confirm", "release", "schedule", "schedule_table"]


async def book(call: Exchange) -> dict[str, Any]:
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
        def charged(job: Request) -> Request:
            # It must not evade the quotas of its owner.
            return job if job.account is not None else job.replace(account=owner)

        limited = pool._capacities is not None
        try:
            return pool.place(
                charged(request) if limited else request, criterion, **how
            )
        except TokenUsed:  # before the first quota, or after the last one?
            return pool.place(
                request if limited else charged(request), criterion, **how
            )

    booking = await call.change(change)
    if booking is None:
        call.stored = False
        why = await call.explanation(request)
        raise Problem(409, why["text"])
    call.status = 200 if booking.repeated else 201
    return call.record(booking)


#: Fields of requests whose searches may take long: the writer has no time for them.
_LONG = ("within", "tree", "whole")


async def schedule(call: Exchange) -> dict[str, Any]:
    done, numbers = await _scheduled(call)
    jobs = list_text(
        object_text(
            {
                "name": name,
                "reason": reason,
                "id": number,
                "window": None if window is None else call.window(window),
            }
        )
        for name, reason, number, window in zip(
            done.names, done.reasons, numbers, done, strict=True
        )
    )
    heading: dict[str, Any] = {"slotkern": sk.__version__, "version": call.version}
    return heading | {"booked": int(done.booked.sum()), "jobs": jobs}


async def schedule_table(call: Exchange) -> Any:
    """Return a row for each job: its number, id, and the columns of `schedule`."""
    done, numbers = await _scheduled(call)
    columns: dict[str, Any] = {"job": np.arange(len(done)), "id": numbers}
    columns |= listing_columns(done.listing(), call.app.pool.clock)
    table = arrow_table(columns)
    return table.replace_schema_metadata({"version": str(call.version)})


async def _scheduled(call: Exchange) -> tuple[Any, list[int | None]]:
    """Book a window for each job as one call; return the result, and the ids."""
    body, user, jobs = call.body, call.user, call.jobs()
    owner, token = body.get("owner", user.name), body.get("token")
    criterion, shape = body.get("criterion", "start"), body.get("shape", "square")
    for i, job in enumerate(jobs):
        _may_book(user, owner, job)
        sums = any(type(amount) is str for amount in (job.uses or {}).values())
        if job.limits or sums or any(getattr(job, name) for name in _LONG):
            raise Problem(
                400,
                f"{call.place(i)} has limits, whose search may take long: book it by "
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

    with call.located():
        found: tuple[Any, list[int | None]] = await call.change(change)
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


async def confirm(call: Exchange) -> dict[str, Any]:
    number, owner = call.booking, _owner(call)
    booking = await call.change(lambda pool: pool.confirm(number, owner=owner))
    return call.record(booking)


async def release(call: Exchange) -> dict[str, Any]:
    number, owner = call.booking, _owner(call)
    try:
        await call.change(lambda pool: pool.release(number, owner=owner))
    except LookupError as error:
        raise Problem(404, str(error)) from None
    return {"released": number}
