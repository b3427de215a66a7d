"""Ledgers of shares of nodes: shared pools and a plain pool stay equal."""

from __future__ import annotations

import json
import pickle
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern import ledger
from slotkern.ledger.codec import pack_window, unpack_window
from tests.support.command_line import refused
from tests.support.command_line import run as command
from tests.support.ledgers import NewPlace

CORES = {"cores": 16}
JOB = sk.Request(2, 4, share=CORES)


def hosts(end: float = 50.0) -> sk.HostPool:
    """Return a pool of three different nodes with a capacity."""
    table = {"name": ["a", "b", "c"], "cores": [64, 64, 32], "gpus": [4, 0, 2]}
    table["price"] = [1, 2, 3]
    machine = sk.Machine(table, capacity=["cores", "gpus"])
    return sk.HostPool(sk.free_slots(machine, start=0, end=end), caps={"lic": 3})


@pytest.fixture
def pool(where: Path | str) -> sk.SharedHostPool:
    return hosts().share(where, user="ann")


def state_of(pool: sk.HostPool) -> Any:
    """Return all that defines a pool, without the order of its windows."""
    owned = [(w, w.name, w.special, owner) for w, owner in pool._owned_windows()]
    state = pool._rows.core.state()
    reserved = [(r.owner, r.spans.tolist()) for r in pool._rows.reservations]
    rows = {name: np.asarray(values).tolist() for name, values in state.items()}
    return sorted(map(repr, owned)), rows, reserved, pool.caps.tolist()


def assert_followed(pool: sk.SharedHostPool) -> None:
    """Assert that memory and log agree, and that the check finds no violation."""
    pool.refresh()
    with sk.HostPool.open(pool._store.where) as other:
        assert state_of(other) == state_of(pool)
        assert other == pool
    report = pool.check()
    assert report, str(report)


SIZES = st.builds(
    sk.Request,
    st.integers(1, 3),
    st.sampled_from([1.0, 3.0, 7.5]),
    share=st.sampled_from([None, {"cores": 16}, {"cores": 20, "gpus": 1}, {"gpus": 1}]),
    uses=st.sampled_from([None, {"lic": 1}]),
    name=st.sampled_from([None, "x"]),
    stack=st.just(1),
)
STACKS = st.builds(
    sk.Request,
    st.integers(1, 5),
    st.sampled_from([1.0, 3.0]),
    share=st.just({"cores": 9}),
    stack=st.integers(2, 3),
)
REQUESTS = SIZES | STACKS
OWNERS = st.sampled_from(["ann", "bob"])
CALL = st.one_of(
    st.tuples(st.just("place"), REQUESTS, OWNERS, st.sampled_from(["start", "cost"])),
    st.tuples(st.just("schedule"), st.lists(REQUESTS, min_size=1, max_size=4), OWNERS),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("release_all"), OWNERS),
    st.tuples(st.just("reserve"), st.integers(0, 2), st.integers(0, 40), OWNERS),
    st.tuples(st.just("disable"), st.integers(0, 2), st.integers(0, 40)),
    st.tuples(st.just("enable"), st.integers(0, 2)),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("quota"), st.integers(2, 9)),
    st.tuples(st.just("add"), st.integers(0, 1)),
)


def run(pool: Any, call: tuple[Any, ...]) -> Any:
    """Make a call; a refusal is part of the result."""
    what, *args = call
    try:
        match what:
            case "place":
                request, owner, criterion = args
                window = pool.find(request, criterion)
                if isinstance(pool, sk.SharedHostPool):
                    booking = pool.place(request, criterion, owner=owner)
                    assert (booking and booking.window) == window
                elif window is not None:
                    pool.book(window, owner=owner)
                return window
            case "schedule":
                done = pool.schedule(args[0], owner=args[1])
                return [*done], done.reasons
            case "release":
                windows = sorted(pool.windows(), key=repr)
                if args[0] < len(windows):
                    (same,) = {
                        len([w for w in pool.windows(o) if w == windows[args[0]]])
                        for o in pool.owners
                        if windows[args[0]] in pool.windows(o)
                    } or {0}
                    if same == 1:
                        pool.release(windows[args[0]])
            case "release_all":
                pool.release(args[0])
            case "reserve":
                node, start, owner = args
                how = {"owner": owner, "partly": start % 2 > 0}
                pool.reserve("abc"[node], start, start + 9, share={"cores": 30}, **how)
            case "disable":
                return {repr(w) for w in pool.disable("abc"[args[0]], args[1], 50)}
            case "enable":
                pool.enable("abc"[args[0]])
            case "advance":
                pool.advance(max(pool.now, args[0]))
            case "quota":
                pool.quota("nodes", args[0])
            case "add":
                later = sk.free_slots(pool.machine, start=50, end=70)
                pool.add_slots(later)
    except ValueError as error:
        return str(error).removesuffix("; nothing has changed")
    return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.booleans(), CALL), max_size=20), st.data())
def test_shared_pools_and_a_plain_pool_stay_equal(
    new_place: NewPlace,
    calls: list[tuple[bool, tuple[Any, ...]]],
    data: st.DataObject,
) -> None:
    where = new_place()
    plain = hosts()
    first = hosts().share(where)
    second = sk.HostPool.open(where, durable="crash")
    for which, call in calls:
        pool = second if which else first
        pool.refresh()
        assert run(pool, call) == run(plain, call)
        assert state_of(pool) == state_of(plain)
        if data.draw(st.integers(0, 4)) == 0:
            pool.snapshot()
    first.refresh()
    second.refresh()
    assert state_of(first) == state_of(second)
    assert_followed(first)
    first.close()
    second.close()


def test_tokens_holds_and_owners(pool: sk.SharedHostPool) -> None:
    booking = pool.place(JOB, owner="bob", token="t")
    other = sk.SlotPool.open(pool._store.where, user="cid")
    assert isinstance(other, sk.SharedHostPool)
    again = other.place(JOB, owner="bob", token="t")
    assert again == booking._replace(repeated=True)
    with pytest.raises(ledger.TokenUsed, match="belongs to another request"):
        other.place(sk.Request(1, 1, share=CORES), token="t")
    with pytest.raises(ledger.NotYours):
        other.release(booking, owner="ann")
    hold = other.place(JOB, hold="1h")
    assert hold.expires is not None
    assert pool.confirm(hold).expires is None
    with pytest.raises(ledger.Expired):
        pool.confirm(99)
    assert other.place(JOB, hold=0.0) is not None
    assert [each.id for each in pool.open_bookings()] == [1, 2]
    other.place(sk.Request(1, 1, share=CORES))
    assert len(other.open_bookings()) == 3  # the hold has ended before the call
    assert [each.id for each in other.bookings_of("t")] == [1]
    assert_followed(pool)


def test_a_schedule_is_repeated_by_its_token(pool: sk.SharedHostPool) -> None:
    jobs = [
        *(JOB, sk.Request(3, 3), sk.Request(9, 1, name="wide")),
        *(sk.Request(1, 2, share=CORES, uses={"lic": 2}),),
        sk.Request(1, 2, share={"cores": 99}),
    ]
    done = pool.schedule(jobs, owner="bob", token="night")
    other = sk.HostPool.open(pool._store.where)
    again = other.schedule(jobs, owner="bob", token="night")
    assert [*again] == [*done]
    assert again.reasons == done.reasons
    assert repr(again.listing()) == repr(done.listing())
    assert again.cost[done.booked].tolist() == done.cost[done.booked].tolist()
    assert pool.version == 3
    assert_followed(pool)


def test_equal_windows_are_released_by_their_numbers(pool: sk.SharedHostPool) -> None:
    window = pool.find(sk.Request(1, 4, share=CORES))
    first = pool.book(window, "ann")
    second = pool.book(window, "bob")
    third = pool.book(window, "cid")
    assert first.window == second.window == third.window
    assert pool.release(second) == 1
    assert pool.owners == ["ann", "cid"]
    with pytest.raises(LookupError, match="booking 2 is not booked"):
        pool.release(second)
    assert pool.release(window) == 1  # the last one
    assert pool.owners == ["ann"]
    assert_followed(pool)


def test_of_equal_windows_the_one_of_the_owner_is_released(
    pool: sk.SharedHostPool,
) -> None:
    window = pool.find(sk.Request(1, 4, share=CORES))
    for owner in ("ann", "bob", "ann", "cid"):
        pool.book(window, owner)
    assert pool.release(window, owner="ann") == 1  # the last one of ann
    assert [each.id for each in pool.open_bookings()] == [1, 2, 4]
    assert pool.release(window, owner="ann") == 1
    with pytest.raises(ledger.NotYours, match="belongs to 'cid', not to 'ann'"):
        pool.release(window, owner="ann")
    assert pool.release(window, owner="bob") == 1
    assert pool.owners == ["cid"]
    assert_followed(pool)


def test_a_share_that_is_not_free_is_taken(pool: sk.SharedHostPool) -> None:
    other = sk.HostPool.open(pool._store.where)
    window = other.find(sk.Request(1, 4, share={"gpus": 4}))
    pool.place(sk.Request(1, 4, share={"gpus": 3}))
    with pytest.raises(ledger.Taken, match="nothing has changed"):
        other.book(window)
    with pool.group():
        pool.place(JOB)
        pool.place(JOB)
    version = pool.version
    with suppress(ZeroDivisionError), pool.turn():
        pool.place(JOB)
        raise ZeroDivisionError
    assert pool.version == version
    assert_followed(pool)


def test_bookings_before_the_ledger_are_kept(where: Path | str) -> None:
    plain = hosts()
    plain.book(plain.find(JOB), owner="old")
    plain.reserve("a", 20, 30, share={"cores": 60}, owner="service")
    pool = plain.share(where)
    assert pool == plain
    assert [(b.id, b.owner) for b in pool.open_bookings()] == [(-1, "old")]
    assert pool.release(-1) == 1
    pool.release("service")
    assert pool.amounts["cores"].tolist() == [64, 64, 32]
    assert_followed(pool)
    plain.book(plain.find(JOB))
    with pytest.raises(ValueError, match="booked without an owner"):
        plain.share(where)


def test_a_copy_has_no_ledger(pool: sk.SharedHostPool, tmp_path: Path) -> None:
    pool.place(JOB)
    for other in (pool.copy(), pickle.loads(pickle.dumps(pool))):
        assert type(other) is sk.HostPool
        assert other == pool
    with pytest.raises(TypeError, match="this pool has a ledger"):
        pool.share(tmp_path / "other.db")
    pool.backup(tmp_path / "copy.db")
    assert sk.HostPool.open(tmp_path / "copy.db") == pool
    pool.save(tmp_path / "pool.npz")
    assert sk.HostPool.load(tmp_path / "pool.npz") == pool
    pool.compact(keep=0)
    assert_followed(pool)


def test_the_kind_of_a_ledger_is_checked(where: Path | str, tmp_path: Path) -> None:
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    sk.SlotPool(slots).share(where)
    with pytest.raises(TypeError, match="books whole nodes"):
        sk.HostPool.open(where)
    file = tmp_path / "later.db"
    hosts().share(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = 'racks' WHERE name = 'kind'")
    with pytest.raises(ledger.OtherFormat, match="'racks', which this program"):
        sk.SlotPool.open(file)


def test_bodies_of_windows_round_trip() -> None:
    pool = hosts()
    requests = [
        *(JOB, sk.Request(2, 4), sk.Request(3, 2, share={"cores": 9}, stack=3)),
        sk.Request(1, 1, share={"gpus": 1}, uses={"lic": 1}, account="phys"),
    ]
    for request in requests:
        window = pool.find(request)
        body = pack_window(window)
        again = unpack_window(body, window.name, window.context)
        assert (again, again.special) == (window, window.special)
        assert type(again) is sk.ShareWindow
        for wrong in (body[:-1], body + b"x", body.replace(b"cores", b'cor"s')):
            if wrong != body:
                with pytest.raises(ValueError, match="a window of an invalid share"):
                    unpack_window(wrong)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"share": {"cores": 60}}, "node 0: 76 of 64 cores"),
        ({"share": {"gpus": 9}}, "node 0: 9 of 4 gpus"),
        ({"share": None}, "node 0: 80 of 64 cores"),
        ({"counts": [0]}, "parts on 1 nodes"),
        ({"share": {"disks": 1}}, "a share of"),
        ({"start": 49.0}, "node 0 has no time at 50"),
    ],
)
def test_the_check_finds_what_is_booked_twice(
    tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    """A booking changed by SQL: its chain breaks, and its amounts are counted."""
    pool = hosts().share(tmp_path / "site.db")
    job = sk.Request(1, 4, share=CORES)
    pool.place(job)
    pool.place(job)
    assert pool.check()
    pool.close()
    with sqlite3.connect(tmp_path / "site.db") as connection:
        query = "SELECT body, start, finish FROM entries WHERE version = 2"
        body, start, finish = connection.execute(query).fetchone()
        given = change.copy()
        if "start" in given:
            first = np.frombuffer(body, "<f8", 2, 8 + body[2]).copy()
            first += given.pop("start")
            start, finish = first.tolist()
            at = 8 + body[2]
            body = body[:at] + first.tobytes() + body[at + 16 :]
        at = body.rindex(b'{"share"')
        data = json.dumps(json.loads(body[at:]) | given).encode()
        connection.execute(
            "UPDATE entries SET body = ?, start = ?, finish = ? WHERE version = 2",
            (body[:at] + data, start, finish),
        )
    report = ledger.check.check_ledger(tmp_path / "site.db")
    assert any(fault in each for each in report.violations), str(report)
    assert any("chain" in each for each in report.violations)


def test_commands_book_shares_in_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "name,nodes,volume,share.cores\nwet,2,4,16\ndry,1,2,60\n"
    )
    hosts().save(tmp_path / "pool.npz")
    site = str(tmp_path / "site.db")
    site, jobs = tmp_path / "site.db", tmp_path / "jobs.csv"
    assert command("ledger", "create", tmp_path / "pool.npz", site).exit_code == 0
    night = "schedule", site, jobs, "--token", "night"
    for _ in range(2):
        done = command(*night)
        assert done.exit_code == 0, done.output
        assert "2 of 2 jobs booked" in done.output
    pool = sk.HostPool.open(site)
    assert (len(pool.windows("jobs")), pool.version) == (2, 2)
    find = "find", site, "--nodes", 1, "--volume", 4, "--share", "cores=60"
    for words in (
        find,
        ("disable", site, "--nodes", "a", "--start", 20),
        ("enable", site, "--nodes", "a"),
        ("release", site, "--owner", "jobs", "--name", "wet"),
        ("ledger", "check", site),
    ):
        done = command(*words)
        assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{site}: sound: version 5")
    assert "60 cores" in command("bookings", site).stdout
    refused(command("mcp", site), "shares of nodes, which a service does not support")
    assert_followed(pool)
