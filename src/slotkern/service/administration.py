"""Operations of administrators: the list of calls, time, and nodes."""

from __future__ import annotations

from typing import Any

import slotkern as sk
from slotkern.search.records import cells, listing_columns
from slotkern.service.exchange import Exchange
from slotkern.service.inputs import version_of

__all__ = ["advance", "calls", "disable", "enable"]


async def calls(call: Exchange) -> dict[str, Any]:
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


async def advance(call: Exchange) -> dict[str, Any]:
    now = call.body["now"]
    await call.change(lambda pool: pool.advance(now))
    return {"now": call.app.pool.now}


async def disable(call: Exchange) -> dict[str, Any]:
    how = {name: call.body.get(name) for name in ("start", "end")}
    nodes, owner = call.body["nodes"], call.body.get("owner", "down")

    def change(pool: sk.SharedPool) -> list[Any]:
        return pool.disable(nodes, owner=owner, **how)

    windows = await call.change(change)
    return {"windows": call.windows_text(windows)}


async def enable(call: Exchange) -> dict[str, Any]:
    nodes = call.body["nodes"]
    await call.change(lambda pool: pool.enable(nodes))
    return {"enabled": nodes}
