"""Bookings of remote domains whose parts, tokens or workers are not as they were."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

import pytest

import slotkern as sk
from slotkern.domains.agent import DomainAgent
from slotkern.domains.remote import RemoteDomain
from slotkern.ledger import Expired, TokenUsed, Unknown
from tests.domains.test_remote import _JOB, _open, _site, ledgers

__all__ = ["ledgers"]


class _Slow:
    """A worker of domain a: while `loses` is set, calls of `book` are not answered."""

    def __init__(self, file: Path) -> None:
        self.agent = DomainAgent("a", file)
        self.lost: list[bytes] = []
        self.loses = True

    def source(self) -> RemoteDomain:
        def send(text: bytes) -> Any:
            def wait() -> bytes:
                if self.loses and pickle.loads(text)[0] == "book":
                    self.lost.append(text)
                    raise Unknown("the worker of 'a' does not answer")
                return self.agent.answer(text)

            return wait

        return RemoteDomain(lambda _: send)


def test_the_parts_of_a_pool_that_its_local_manager_has_released(
    ledgers: dict[str, Path],
) -> None:
    """They count as not booked, for release, recovery and confirmation."""
    pool = _site(2)
    domains = sk.RemoteDomains({"p": pool, **ledgers})
    job = sk.Request(6, 10)
    booking = domains.place(job, owner="ann")
    assert booking is not None
    pool.release("ann")
    domains.release(booking)  # the part of the pool comes first
    assert _open(ledgers) == [0, 0]

    window = domains.find(job)
    domains._book(window, "ann", 60, "t")
    pool.release("ann")
    pool.reserve([0, 1], 0, 10, owner="local")
    assert domains.recover("t") is None
    assert _open(ledgers) == [0, 0]
    assert pool.owners == ["local"]

    alone = sk.RemoteDomains({"p": pool})
    part = alone._ledger("p")
    (held,) = part._book_part([alone.find(sk.Request(2, 10))], "ann", 60.0, "u")
    pool.release("ann")
    with pytest.raises(Expired, match="no hold"):
        part.confirm([held])


def test_a_part_is_not_that_of_a_later_booking_of_the_same_time() -> None:
    pool = _site(1)
    domains = sk.RemoteDomains({"p": pool})
    first = domains.place(sk.Request(1, 10), owner="ann")
    pool.release("ann")
    second = domains.place(sk.Request(1, 10), owner="ann")
    assert first is not None
    assert second is not None
    with pytest.raises(ValueError, match="booked in no domain"):
        domains.release(first)
    assert pool.owners == ["ann"]
    domains.release(second)
    assert pool.owners == []


def test_a_pool_that_was_opened_again_gives_an_id_to_another_booking() -> None:
    domains = sk.RemoteDomains({"p": _site(1)})
    old = domains.place(sk.Request(1, 10), owner="ann")
    assert old is not None
    pool = _site(1)
    domains.reconnect("p", pool)
    other = domains.place(sk.Request(1, 20), owner="bob")
    assert other is not None
    assert other.parts["p"].id == old.parts["p"].id
    with pytest.raises(ValueError, match="booked in no domain"):
        domains.release(old)
    assert pool.owners == ["bob"]


def test_an_older_copy_of_a_ledger_gives_an_id_to_another_booking(
    ledgers: dict[str, Path], tmp_path: Path
) -> None:
    """Its part is lost; the others are released, and no other booking is."""
    copy = tmp_path / "copy.db"
    with sk.SlotPool.open(ledgers["b"]) as ledger:
        ledger.backup(copy)
    domains = sk.RemoteDomains(ledgers)
    booking = domains.place(_JOB, owner="ann", token="t")
    assert booking is not None
    with sk.SlotPool.open(copy) as ledger:
        local = ledger.place(sk.Request(2, 10), owner="local", hold=60)
    assert local is not None
    assert local.id == booking.parts["b"].id
    domains.reconnect("b", copy)
    with pytest.raises(Expired, match="no hold"):
        domains._ledger("b").confirm([booking.parts["b"]])
    assert domains.recover("t") is None
    with pytest.raises(ValueError, match="booked in no domain"):
        domains.release(booking)
    (still,) = sk.SlotPool.open(copy).open_bookings()
    assert (still.id, still.owner) == (local.id, "local")
    assert still.expires is not None
    assert _open({"a": ledgers["a"]}) == [0]


def test_a_call_that_arrives_after_it_was_given_up_leaves_a_hold(
    ledgers: dict[str, Path],
) -> None:
    agent = DomainAgent("a", ledgers["a"])
    late: list[bytes] = []

    def start(_name: str) -> Any:
        def send(text: bytes) -> Any:
            def wait() -> bytes:
                if pickle.loads(text)[0] == "book":
                    late.append(text)
                if late and not reopened:
                    raise Unknown("the worker of 'a' does not answer")
                return agent.answer(text)

            return wait

        reopened = bool(late)
        return send

    domains = sk.RemoteDomains({"a": RemoteDomain(start)})
    with pytest.raises(Unknown) as caught:
        domains.book(domains.find(sk.Request(2, 10)), "ann", hold=0.2)
    assert "its parts are released" in caught.value.__notes__
    assert agent.answer(late[0])
    assert [each.expires is None for each in agent.pool.open_bookings()] == [False]
    time.sleep(0.3)
    domains.place(sk.Request(2, 10), owner="bob")
    assert [each.owner for each in agent.pool.open_bookings()] == ["bob"]


def test_a_hold_without_a_date_books_nothing() -> None:
    pool = _site(1)
    domains = sk.RemoteDomains({"p": pool})
    with pytest.raises((ValueError, OverflowError)):
        domains.book(domains.find(sk.Request(1, 10)), "ann", hold=1e14)
    assert pool.owners == []


def test_the_token_of_a_local_manager_is_none_of_a_booking(
    ledgers: dict[str, Path],
) -> None:
    local = sk.SlotPool.open(ledgers["a"])
    local.place(sk.Request(1, 10), owner="local", token="7", hold=60)
    domains = sk.RemoteDomains(ledgers)
    assert domains.recover("7") is None
    assert _open(ledgers) == [1, 0]
    booking = domains.place(sk.Request(3, 10), owner="ann", token="7")
    assert booking is not None
    assert domains.recover("7") is not None


def test_one_token_of_two_bookings_is_refused(
    ledgers: dict[str, Path], tmp_path: Path
) -> None:
    """Two metaschedulers of different domains have used the same token."""
    _site(2).share(tmp_path / "c.db").close()
    more = {"c": tmp_path / "c.db"}
    sk.RemoteDomains(ledgers).place(_JOB, token="7")
    sk.RemoteDomains(more).place(sk.Request(2, 10), token="7")
    with pytest.raises(TokenUsed, match="different bookings in 'a', 'b', 'c'"):
        sk.RemoteDomains(ledgers | more).recover("7")
    assert _open(ledgers | more) == [1, 1, 1]


def test_release_asks_all_domains_if_one_does_not_answer(
    ledgers: dict[str, Path],
) -> None:
    agent = DomainAgent("a", ledgers["a"])
    dead: list[bool] = []

    def send(text: bytes) -> Any:
        def wait() -> bytes:
            if dead:
                raise Unknown("the worker of 'a' does not answer")
            return agent.answer(text)

        return wait

    domains = sk.RemoteDomains({"a": RemoteDomain(lambda _: send), "b": ledgers["b"]})
    booking = domains.place(_JOB, owner="ann")
    assert booking is not None
    dead.append(True)
    with pytest.raises(Unknown, match="'a' does not answer"):
        domains.release(booking)
    assert _open(ledgers) == [1, 0]
    dead.clear()
    domains.release(booking)
    assert _open(ledgers) == [0, 0]


def test_reconnect_refuses_a_domain_of_another_clock(ledgers: dict[str, Path]) -> None:
    domains = sk.RemoteDomains(ledgers)
    clock = sk.Clock("2030-01-01", zone="UTC")
    with pytest.raises(ValueError, match="'a' and 'b' must have the same clock"):
        domains.reconnect("b", sk.SlotPool(_site(2).slots, clock=clock))
    assert domains.place(_JOB, token="t") is not None
    domains.reconnect("b", _site(2))
    with pytest.raises(ValueError, match="'b' is a pool of its process"):
        domains.place(_JOB, token="u")


@pytest.mark.parametrize("volume", [20, 4])
def test_the_time_of_a_released_part_that_a_local_manager_has_booked(
    ledgers: dict[str, Path], volume: float
) -> None:
    pool = _site(2)
    domains = sk.RemoteDomains({"p": pool, **ledgers})
    booking = domains.place(sk.Request(6, 10), owner="ann")
    assert booking is not None
    pool.release("ann")
    pool.book(pool.find(sk.Request(2, volume), "start"), "ann")
    domains.release(booking)
    assert _open(ledgers) == [0, 0]
    assert set(pool.booked["end"]) == {volume}

    alone = sk.RemoteDomains({"p": pool})
    window = alone.find(sk.Request(2, 10))
    alone._ledger("p")._book_part([window], "bob", 0.05, "u")
    pool.release("bob")
    pool.book(pool.find(sk.Request(2, volume), "start"), "bob")
    time.sleep(0.1)
    assert alone.find(sk.Request(1, 1)) is not None  # the hold has ended
    assert sorted(pool.owners) == ["ann", "bob"]


def test_a_late_call_does_not_spoil_its_token(
    ledgers: dict[str, Path], tmp_path: Path
) -> None:
    files = ledgers | {"c": tmp_path / "c.db"}
    _site(2).share(files["c"]).close()
    worker = _Slow(files["a"])
    domains = sk.RemoteDomains({**files, "a": worker.source()})
    with pytest.raises(Unknown):
        domains.place(_JOB, owner="ann", token="t", hold=0.2)
    worker.loses = False
    local = sk.SlotPool.open(files["a"])
    busy = local.place(sk.Request(2, 10), owner="local")
    assert busy is not None
    booking = domains.place(_JOB, owner="ann", token="t")
    assert booking is not None
    assert set(booking.parts) == {"b", "c"}
    local.release(busy)
    assert worker.agent.answer(worker.lost[0])
    time.sleep(0.3)  # the hold of the late call ends
    again = domains.place(_JOB, owner="ann", token="t")
    assert again is not None
    assert again.repeated
    assert set(again.parts) == {"b", "c"}


def test_a_local_token_of_an_attempt_is_none_of_the_booking(
    ledgers: dict[str, Path],
) -> None:
    local = sk.SlotPool.open(ledgers["a"])
    local.place(sk.Request(1, 10), owner="local", token="7#0")
    worker = _Slow(ledgers["a"])
    domains = sk.RemoteDomains({**ledgers, "a": worker.source()})
    with pytest.raises(Unknown):
        domains.place(sk.Request(3, 5), owner="ann", token="7")
    assert [each.owner for each in local.open_bookings()] == ["local"]


def test_the_error_of_schedule_names_tokens_of_bookings_that_may_stay(
    ledgers: dict[str, Path],
) -> None:
    agent = DomainAgent("a", ledgers["a"])
    dead: list[bool] = []

    def start(_name: str) -> Any:
        if dead:
            raise Unknown("the worker of 'a' does not start")
        return send

    def send(text: bytes) -> Any:
        def wait() -> bytes:
            if pickle.loads(text)[0] == "book" and _open(ledgers)[0]:
                dead.append(True)
            if dead:
                raise Unknown("the worker of 'a' does not answer")
            return agent.answer(text)

        return wait

    domains = sk.RemoteDomains({**ledgers, "a": RemoteDomain(start)})
    with pytest.raises(Unknown) as caught:
        domains.schedule([_JOB, _JOB], owner="ann")
    assert _open(ledgers) == [1, 0]
    note = next(n for n in caught.value.__notes__ if "may stay booked" in n)
    dead.clear()
    token = note.partition("recover('")[2].partition("'")[0]
    assert domains.recover(token) is None
    assert _open(ledgers) == [0, 0]


def test_a_booking_of_domains_is_released_there() -> None:
    pool = _site(1)
    near = sk.Domains({"p": pool})
    booking = near.place(sk.Request(1, 5), owner="ann")
    with pytest.raises(TypeError, match="was made by Domains: release it there"):
        sk.RemoteDomains({"p": pool}).release(booking)
    assert pool.owners == ["ann"]
