"""Tokens: parts that a killed process left are completed or released."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern.domains import booking as steps
from slotkern.ledger import Busy, Corrupt, TokenUsed

_JOB = sk.Request(4, 10)


class _KilledError(BaseException):
    """Stands for the end of the process: nothing is rolled back after it."""


@pytest.fixture
def domains(tmp_path: Path) -> sk.Domains:
    """Two ledgers of two nodes."""
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)
    pools = {n: sk.SlotPool(slots).share(tmp_path / f"{n}.db") for n in ("a", "b")}
    return sk.Domains(pools)


def _place_and_die(
    domains: sk.Domains, patch: pytest.MonkeyPatch, confirmed: int, hold: float
) -> None:
    """Place a job with the token "t"; end after the parts of `confirmed` ledgers."""
    confirm, calls = steps._confirm, iter(range(9))

    def confirm_or_die(pool: Any, parts: Any) -> Any:
        if next(calls) == confirmed:
            raise _KilledError
        return confirm(pool, parts)

    with patch.context() as during:
        during.setattr(steps, "_confirm", confirm_or_die)
        during.setattr(steps, "_roll_back", lambda *_given: None)
        with pytest.raises(_KilledError):
            domains.place(_JOB, owner="ann", token="t", hold=hold)


def _open(domains: sk.Domains) -> list[int]:
    return [len(domains[name].open_bookings()) for name in domains]


def test_holds_of_a_killed_process_are_released(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_and_die(domains, monkeypatch, 0, hold=60)
    assert _open(domains) == [1, 1]
    assert domains.recover("t") is None
    assert _open(domains) == [0, 0]


def test_one_confirmed_part_completes_the_others(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_and_die(domains, monkeypatch, 1, hold=60)
    found = domains.recover("t")
    assert found is not None
    assert found.repeated
    assert (found.owner, found.token) == ("ann", "t")
    assert found.window.names == ("a/0", "a/1", "b/0", "b/1")
    again = domains.place(_JOB, owner="ann", token="t")
    assert again == found
    for name in domains:
        (part,) = domains[name].open_bookings()
        assert part.expires is None
    domains.release(found)
    assert _open(domains) == [0, 0]


def test_a_confirmed_part_whose_others_expired_is_released(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_and_die(domains, monkeypatch, 1, hold=0.5)
    time.sleep(0.6)
    local = domains["b"].reserve([0], 0, 5, owner="local")
    assert domains.recover("t") is None
    assert _open(domains) == [0, 1]
    booking = domains.place(_JOB, owner="ann", token="t")
    assert booking is not None
    assert not booking.repeated
    assert booking.window.start == local[0].finish
    again = domains.place(_JOB, owner="ann", token="t")
    assert again is not None
    assert again.repeated
    assert (again.window, again.token) == (booking.window, booking.token)


@pytest.mark.parametrize(
    ("request_", "options"),
    [
        (sk.Request(3, 10), {}),
        (sk.Request(4, 11), {}),
        (sk.Request(4, 10, budget=500), {}),
        (_JOB, {"criterion": "cost"}),
        (_JOB, {"shape": "ragged"}),
        (_JOB, {"owner": "bob"}),
    ],
)
def test_a_token_of_another_request_is_refused(
    domains: sk.Domains, request_: sk.Request, options: Any
) -> None:
    made = domains.place(_JOB, owner="ann", token="t")
    with pytest.raises(TokenUsed, match="the token 't' belongs to another request"):
        domains.place(request_, **({"owner": "ann", "token": "t"} | options))
    assert domains.place(_JOB, owner="ann", token="t").window == made.window
    assert _open(domains) == [1, 1]


def test_recovery_names_the_domains_that_are_missing(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    _place_and_die(domains, monkeypatch, 1, hold=60)
    ledger = domains.remove("b")
    with pytest.raises(ValueError, match="token 't' also has parts in 'b'"):
        domains.recover("t")
    assert [each.expires for each in domains["a"].open_bookings()] == [None]
    domains.add("b", ledger)
    assert domains.recover("t") is not None
    assert _open(domains) == [1, 1]


@pytest.mark.parametrize("at", ["a", "b"])
def test_an_interrupt_between_a_booking_and_its_record(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    book = sk.SharedPool._book_part

    def book_and_stop(self: sk.SharedPool, *given: Any) -> Any:
        found = book(self, *given)
        if self is domains[at]:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(sk.SharedPool, "_book_part", book_and_stop)
    with pytest.raises(KeyboardInterrupt):
        domains.book(domains.find(_JOB), "ann")
    assert _open(domains) == [0, 0]


def test_a_signal_after_the_booking_of_a_pool_releases_it(tmp_path: Path) -> None:
    """A profiler raises at each return of compiled code, as an interrupt may."""
    slots = sk.make_slots(node=[0, 1], start=0, end=100, performance=1, price=1)

    class Stopping(sk.SlotPool):
        def __getattribute__(self, name: str) -> Any:
            if name == "book":
                armed.append(True)
            return super().__getattribute__(name)

    armed: list[bool] = []
    pools = {"a": sk.SlotPool(slots).share(tmp_path / "a.db"), "b": Stopping(slots)}
    domains = sk.Domains(pools)
    window = domains.find(_JOB)

    def stop(_frame: Any, event: str, _what: Any) -> None:
        if event == "c_return" and armed and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt

    stopped: list[bool] = []
    sys.setprofile(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            domains.book(window, "ann")
    finally:
        sys.setprofile(None)
    assert stopped
    assert pools["a"].open_bookings() == []
    assert pools["b"].owners == []
    assert len(pools["b"].slots) == 2


def test_tokens_need_ledgers(domains: sk.Domains) -> None:
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    domains.add("c", sk.SlotPool(slots))
    with pytest.raises(ValueError, match="'c' is a pool of this process"):
        domains.place(sk.Request(1, 1), token="t")
    assert domains.place(sk.Request(1, 1)) is not None


def test_the_bookings_of_a_token_in_a_ledger(domains: sk.Domains) -> None:
    pool = domains["a"]
    assert pool.bookings_of("x") is None
    made = pool.place(sk.Request(1, 1), token="x", hold=60)
    assert made is not None
    (found,) = pool.bookings_of("x")
    assert found == made._replace(repeated=True)
    pool.confirm(found)
    assert pool.bookings_of("x")[0].expires is None
    pool.release(found)
    assert pool.bookings_of("x") == []


@pytest.mark.parametrize(
    ("confirmed", "state"), [(0, "until its hold ends"), (1, "booked")]
)
def test_a_part_that_cannot_be_released_is_reported(
    domains: sk.Domains,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    confirmed: int,
    state: str,
) -> None:
    confirm, calls = steps._confirm, iter(range(9))

    def confirm_or_fail(pool: Any, parts: Any) -> Any:
        if next(calls) == confirmed:
            raise Busy("later")
        return confirm(pool, parts)

    def fail(*_given: Any) -> None:
        raise Corrupt("locked")

    monkeypatch.setattr(steps, "_confirm", confirm_or_fail)
    monkeypatch.setattr(steps, "release_part", fail)
    with pytest.raises(Busy, match="later"):
        domains.place(_JOB, token="t")
    assert f"a: a part stays {state}: locked" in caplog.text
    assert "b: a part stays until its hold ends: locked" in caplog.text


def test_a_ledger_that_cannot_release_its_part_is_an_error(
    domains: sk.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    booking = domains.place(_JOB)
    assert booking is not None

    def fail(*_given: Any) -> None:
        raise Corrupt("contradiction")

    with monkeypatch.context() as during:
        during.setattr(domains["b"], "release", fail)
        with pytest.raises(Corrupt, match="contradiction"):
            domains.release(booking)
    domains.release(booking)
    assert _open(domains) == [0, 0]
