"""The thread that changes the ledger of a service, and reads what others change.

Changes that wait together are calls of one group: one commit and one flush serve all
of them, and each is answered after the flush. So the rate of bookings grows with the
number of clients that wait, and no answer is sent before its change is durable.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from slotkern.foundation.logger import log
from slotkern.ledger.shared import SharedPool

__all__ = ["Overloaded", "Writer"]

#: Changes that are stored together: they hold the lock of writers for some 5 ms.
_MOST_TOGETHER = 100
#: Seconds without a change after which the entries of other processes are read.
_POLL = 0.05


class Overloaded(Exception):
    """Too many requests wait already."""


class _Job(NamedTuple):
    user: str
    change: Callable[[SharedPool], Any]
    future: asyncio.Future[Any]


#: A job with its result and its error; one of both is None.
_Outcome = tuple[_Job, Any, Exception | None]


class Writer:
    """A queue of changes and its thread.

    Attributes
    ----------
    fault : Exception or None
        The reason why the ledger could not be read lately.
    changed : asyncio.Event
        Set when the pool has a new version; then another event takes its place.
    """

    def __init__(self, pool: SharedPool, most_waiting: int) -> None:
        self.fault: Exception | None = None
        self.changed = asyncio.Event()
        self._pool, self._version = pool, pool.version
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._gathered: list[_Job] = []  # the jobs of this round of the loop
        self._most_waiting = most_waiting
        self._closing = self._ended = False
        # A daemon: a second interrupt ends the program without `close`.
        self._thread = threading.Thread(
            target=self._run, name="slotkern writer", daemon=True
        )
        self._thread.start()

    async def call(self, user: str, change: Callable[[SharedPool], Any]) -> Any:
        """Make a change in the name of a user; return its result when it is stored.

        Raises
        ------
        Overloaded
            If the queue is full, or `close` was called.
        """
        if self._closing:
            raise Overloaded("the service ends")
        if self._jobs.qsize() + len(self._gathered) >= self._most_waiting:
            raise Overloaded("too many changes wait to be stored")
        job = _Job(user, change, self._loop.create_future())
        if not self._gathered:  # wake the thread once for all changes of a round
            self._loop.call_soon(self._hand_over)
        self._gathered.append(job)
        try:
            return await job.future
        finally:
            del job  # its error refers to this frame

    def _hand_over(self) -> None:
        for job in self._gathered:
            self._jobs.put(job)
        self._gathered.clear()

    async def close(self) -> None:
        """Store what waits, and end the thread."""
        self._closing = True  # no job comes after the None
        self._hand_over()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (jobs := self._take()) is not None:
            if not jobs:
                self._refresh()
            while jobs:
                jobs = self._store(jobs)
            if self._pool.version != self._version:
                self._version = self._pool.version
                self._loop.call_soon_threadsafe(self._announce)

    def _take(self) -> list[_Job] | None:
        """Return the jobs that wait; none after `_POLL` seconds; None at the end."""
        if self._ended:
            return None
        try:
            job = self._jobs.get(timeout=_POLL)
        except queue.Empty:
            return []
        jobs: list[_Job] = []
        while job is not None:
            jobs.append(job)
            if len(jobs) == _MOST_TOGETHER:
                return jobs
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs
        self._ended = True
        return jobs or None

    def _refresh(self) -> None:
        try:
            self._pool.refresh()
            self.fault = None
        except Exception as error:  # shown by the health check
            if self.fault is None:
                log.warning("the ledger cannot be read: %s", error)
            self.fault = error

    def _store(self, jobs: list[_Job]) -> list[_Job]:
        """Make changes in one group, and resolve their futures after its flush.

        Returns the jobs after one that failed midway: the group ends there, so that an
        error of its commit comes to all whose changes it should have stored.
        """
        outcomes: list[_Outcome] = []
        pool, forever = self._pool, float("inf")
        try:
            pool.register(*dict.fromkeys(job.user for job in jobs))
            with pool.group(most=forever, within=forever):  # type: ignore[arg-type]
                for i in range(len(jobs)):
                    pool.user = jobs[i].user
                    outcomes.append((jobs[i], *_outcome_of(jobs[i].change, pool)))
                    if pool.is_stale:
                        break
            self.fault = None
        except Exception as error:  # nothing, or an unknown part, was stored
            outcomes = _failed(jobs, outcomes, error)
        self._loop.call_soon_threadsafe(_resolve, outcomes)
        rest = jobs[len(outcomes) :]
        # The errors refer to this frame: without cycles they are freed at once.
        del jobs, outcomes
        return rest

    def _announce(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


def _outcome_of(
    change: Callable[[SharedPool], Any], pool: SharedPool
) -> tuple[Any, Exception | None]:
    """Return the result of a change, or its error."""
    try:
        return change(pool), None
    except Exception as error:
        return None, error


def _failed(
    jobs: list[_Job], outcomes: list[_Outcome], error: Exception
) -> list[_Outcome]:
    """Return the outcomes of jobs whose group was not stored, or only partly."""
    failed = {id(job): why for job, _, why in outcomes if why is not None}
    tried = jobs[: len(outcomes)] or jobs
    return [(job, None, failed.get(id(job), error)) for job in tried]


def _resolve(outcomes: list[_Outcome]) -> None:
    for job, result, error in outcomes:
        if job.future.done():  # the client has gone
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)
