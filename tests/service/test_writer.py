"""Tests of the thread that changes the ledger of a service."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from service import make_ledger

import slotkern as sk
from slotkern.service.writer import Overloaded, Writer

JOB = sk.Request(1, 1)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[sk.SharedPool]:
    """Share 8 equal nodes."""
    with make_ledger(tmp_path) as found:
        yield found


def run(pool: sk.SharedPool, test: Callable[[Writer], Awaitable[Any]]) -> Any:
    """Run a test with a writer."""

    async def main() -> Any:
        writer = Writer(pool, 100)
        try:
            return await test(writer)
        finally:
            await writer.close()

    return asyncio.run(main())


def place(pool: sk.SharedPool) -> Any:
    """Book a job."""
    return pool.place(JOB)


def fail_midway(pool: sk.SharedPool) -> Any:
    """Change memory, and fail before the call is complete."""

    def change(_now: int) -> Any:
        sk.SlotPool.book(pool, sk.find_window(pool, JOB))
        raise RuntimeError("midway")

    return pool._call("{}", change)


async def together(writer: Writer, *changes: Callable[[sk.SharedPool], Any]) -> Any:
    """Return the results, or errors, of changes that wait at the same time."""
    with sk.SlotPool.open(writer._pool._store.where).turn():  # the writer waits
        first = asyncio.create_task(writer.call("ann", place))
        await asyncio.sleep(0.1)
        jobs = [asyncio.create_task(writer.call("ann", each)) for each in changes]
        await asyncio.sleep(0.1)
    await first
    return await asyncio.gather(*jobs, return_exceptions=True)


def test_a_change_that_fails_midway_spares_the_others(pool: sk.SharedPool) -> None:
    async def test(writer: Writer) -> None:
        before, failed, after = await together(writer, place, fail_midway, place)
        assert (before.id, after.id) == (2, 3)
        assert isinstance(failed, RuntimeError)

    run(pool, test)
    assert (report := pool.check()), report
    assert report.bookings == 3


def test_no_change_is_confirmed_that_was_not_stored(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(writer: Writer) -> None:
        commit, turns = pool._store._commit, []

        def commit_most(turn: Any) -> None:
            turns.append(turn)
            if len(turns) == 2:
                raise sk.ledger.LedgerError("the disk is full")
            commit(turn)

        monkeypatch.setattr(pool._store, "_commit", commit_most)
        before, failed, after = await together(writer, place, fail_midway, place)
        assert isinstance(before, sk.ledger.LedgerError)
        assert isinstance(failed, RuntimeError)
        assert after.id == 2

    run(pool, test)
    assert (report := pool.check()), report
    assert report.bookings == 2


def test_a_refused_change_leaves_no_cycles(pool: sk.SharedPool) -> None:
    async def refused(writer: Writer) -> None:
        for _ in range(10):
            await asyncio.gather(
                *(writer.call("ann", lambda pool: pool.release(99)) for _ in range(20)),
                return_exceptions=True,
            )

    async def test(writer: Writer) -> None:
        await refused(writer)
        gc.collect()
        gc.disable()
        try:
            await refused(writer)
            assert gc.collect() < 200
        finally:
            gc.enable()

    run(pool, test)


def test_no_change_waits_after_the_end(pool: sk.SharedPool) -> None:
    async def test(writer: Writer) -> None:
        await writer.close()
        with pytest.raises(Overloaded):
            await writer.call("ann", place)

    run(pool, test)
