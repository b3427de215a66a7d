"""A ledger that one process serves: searches in threads, changes in one thread.

HTTP (`app`) and the Model Context Protocol (`mcp`) are two ways to call the operations
of one `Backend`. The event loop does the short searches; threads do the others, one
thread changes the ledger (`Writer`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import slotkern as sk
from slotkern.foundation.extras import extra
from slotkern.service.users import User
from slotkern.service.writer import Overloaded, Writer

with extra():
    import anyio.to_thread

__all__ = ["Backend", "ServiceLimits"]


@dataclass(frozen=True)
class ServiceLimits:
    """The limits of the cost of requests.

    Attributes
    ----------
    body : int
        Bytes of a body.
    work : int
        Units of counted work of a search: `max_work`.
    windows : int
        Windows of a front or of alternatives.
    jobs : int
        Jobs of a schedule, and of a search of several jobs.
    runs : int
        Simulated runs of a forecast.
    searches : int
        Long searches that run at the same time.
    waiting : int
        Requests that wait for a search, and changes that wait to be stored.
    streams : int
        Open streams of events.
    calls : int
        Calls of a list.
    rate : float
        Requests of a user in a second.
    """

    body: int = 65_536
    work: int = 5_000_000
    windows: int = 1000
    jobs: int = 1000
    runs: int = 1000
    searches: int = 2
    waiting: int = 256
    streams: int = 100
    calls: int = 1000
    rate: float = 1000.0


class Backend:
    """An open ledger that operations search and change while `running`.

    The ledger is closed by its owner, not by the backend.

    Parameters
    ----------
    pool : SharedPool
    limits : ServiceLimits
    """

    def __init__(self, pool: sk.SharedPool, limits: ServiceLimits) -> None:
        self.pool, self.limits = pool, limits

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the thread that writes; at the end store what waits, and end it."""
        self._searches = anyio.CapacityLimiter(self.limits.searches)
        self._writer = Writer(self.pool, self.limits.waiting)
        try:
            yield
        finally:
            await self._writer.close()

    async def search(self, function: Callable[[], Any]) -> Any:
        """Run a long search in a thread; `Overloaded` if too many wait."""
        if self._searches.statistics().tasks_waiting >= self.limits.waiting:
            raise Overloaded("too many searches wait")
        return await anyio.to_thread.run_sync(function, limiter=self._searches)

    async def change(self, user: User, change: Callable[[sk.SharedPool], Any]) -> Any:
        """Change the ledger in the name of a user."""
        return await self._writer.call(user.name, change)
