"""Ledgers under signals, forks and threads."""

from __future__ import annotations

import linecache
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern import ledger
from tests.support.ledgers import assert_followed, new_ledger, reopened, state_of

JOB = sk.Request(1, 1)
FOLDER = str(Path(ledger.__file__).parent)


@pytest.fixture
def pool(where: Path | str) -> sk.SharedPool:
    return new_ledger(where, 4, 1e4)


class Interrupt:
    """Raises KeyboardInterrupt at the k-th line that the code of ledgers runs.

    Lines of `with` are not counted: tracing reports them once more before the exit of
    the block, where Python runs no handlers of signals.
    """

    def __init__(self, k: int) -> None:
        self.left = k

    def __call__(self, frame: Any, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not text.lstrip().startswith("with "):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


CALLS = {
    "place": lambda pool, k: pool.place(JOB, token=f"t{k}"),
    "release": lambda pool, k: pool.release(pool.place(JOB)),
    "advance": lambda pool, k: pool.advance(k / 1000),
    "group": lambda pool, k: grouped(pool, "group"),
    "turn": lambda pool, k: grouped(pool, "turn"),
    "refresh": lambda pool, k: pool.refresh(),
}


def grouped(pool: sk.SharedPool, how: str) -> None:
    with getattr(pool, how)():
        pool.place(JOB)
        pool.place(JOB)


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_statement(pool: sk.SharedPool, name: str) -> None:
    pool.schedule([JOB] * 5)
    other = reopened(pool, patience=0.5)
    k, done, step = 0, False, 1 if name == "group" else 2
    if isinstance(pool._store.where, str):  # a server: slower
        step *= 4
    while not done:
        k += step
        assert k < 3000
        if name == "refresh":
            other.place(JOB)
        before = sys.gettrace()
        sys.settrace(Interrupt(k))
        try:
            CALLS[name](pool, k)
            done = True
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        other.release(other.place(JOB))  # the lock is free
        pool.refresh()
        other.refresh()
        assert state_of(pool) == state_of(other)
    assert k > 15 * step
    assert_followed(pool)


def test_a_stopped_holder_makes_others_give_up(pool: sk.SharedPool) -> None:
    code = f"""if True:
        import slotkern as sk
        pool = sk.SlotPool.open({os.fspath(pool._store.where)!r})
        with pool.turn():
            pool.place(sk.Request(1, 1))
            print("ready", flush=True)
            input()"""
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        other = reopened(pool, patience=0.05)
        with pytest.raises(ledger.Busy, match=f"process {holder.pid} .* nothing has"):
            other.place(JOB)
        assert other.find(JOB) is not None
        assert other.refresh() == 0
    finally:
        holder.kill()
        holder.communicate()
    assert other.place(JOB) is not None  # a killed holder has no lock
    assert other.version == 1
    assert_followed(other)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_a_fork_book_by_themselves(pool: sk.SharedPool) -> None:
    pool.place(JOB)
    children = []
    for i in range(4):
        child = os.fork()
        if child == 0:
            try:
                time.sleep(0.1)  # the parent closes the ledger first
                for j in range(5):
                    pool.place(JOB, token=f"{i} {j}")
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    path = pool._store.where
    pool.close()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert sk.SlotPool.open(path).version == 21
    assert len({*pool.calls()["pid"].tolist()}) == 5
    assert_followed(pool)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_in_a_turn_leaves_it_to_the_parent(pool: sk.SharedPool) -> None:
    with pool.turn():
        pool.place(JOB)
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(ledger.LedgerError):
                pool.place(JOB)
                code = 2
            os._exit(0 if code == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert pool.version == 1
    assert_followed(pool)


def test_threads_share_a_pool(pool: sk.SharedPool) -> None:
    def book() -> None:
        for _ in range(20):
            pool.place(JOB)
            pool.find(JOB)

    threads = [threading.Thread(target=book) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.version == 80
    assert_followed(pool)


def test_signals_are_not_blocked_while_waiting(pool: sk.SharedPool) -> None:
    other = reopened(pool, patience=60)
    with pool.turn():
        old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(KeyboardInterrupt):
                other.place(JOB)
        finally:
            signal.signal(signal.SIGALRM, old)
    assert other.place(JOB) is not None
