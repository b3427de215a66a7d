"""Capacities, quotas and jobs of several parts in a ledger."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.ledger.check_caps import Charge, CountedRules
from slotkern.ledger.codec import pack_window, unpack_window, unpack_windows
from tests.support.ledgers import NewPlace, assert_followed, nodes, reopened, state_of

JOBS = st.builds(
    lambda n, volume, uses, account: sk.Request(
        n, volume, uses={"lic": uses} if uses else None, account=account
    ),
    st.integers(1, 3),
    st.sampled_from([1.0, 4.0, 7.5]),
    st.integers(0, 4),
    st.sampled_from([None, "ann", "bob"]),
)
OWNERS = st.sampled_from(["ann", "bob"])
SPAN = st.tuples(st.integers(0, 20), st.integers(21, 40))
CALL = st.one_of(
    st.tuples(st.just("find"), JOBS, OWNERS),
    st.tuples(st.just("schedule"), st.lists(JOBS, min_size=1, max_size=4), OWNERS),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("cap"), st.integers(2, 5), st.none() | SPAN),
    st.tuples(st.just("quota"), st.integers(1, 4), st.booleans(), OWNERS),
    st.tuples(st.just("unset"), st.booleans(), OWNERS),
    st.tuples(st.just("advance"), st.integers(0, 9)),
)


def change(pool: Any, call: tuple[Any, ...]) -> Any:
    """Make a call; a refusal is part of the result."""
    what, *given = call
    try:
        match what:
            case "find":
                window = pool.find(given[0], "start")
                if window is not None:
                    pool.book(window, given[1])
                return window
            case "schedule":
                return pool.schedule(given[0], owner=given[1])
            case "release":
                windows = sorted(pool.windows(), key=lambda w: (w.start, w.nodes))
                if given[0] < len(windows):
                    pool.release(windows[given[0]])
            case "cap":
                pool.set_cap("lic", given[0], *(given[1] or ()))
            case "quota":
                amount, each, account = given
                name = "*" if each else account
                pool.quota("nodes", amount, account=name, each=each)
            case "unset":
                each, account = given
                pool.quota("nodes", None, account="*" if each else account, each=each)
            case "advance":
                pool.advance(max(pool.now, given[0]))
    except ValueError as error:
        return str(error).removesuffix("; nothing has changed")
    return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.booleans(),
    st.lists(st.tuples(st.booleans(), CALL), max_size=20),
    st.data(),
)
def test_shared_pools_keep_capacities_as_a_plain_pool_does(
    new_place: NewPlace,
    has_caps: bool,
    calls: list[tuple[bool, tuple[Any, ...]]],
    data: st.DataObject,
) -> None:
    where, caps = new_place(), {"lic": 4} if has_caps else None
    plain = sk.SlotPool(nodes(4, 50.0), caps=caps)
    first = sk.SlotPool(nodes(4, 50.0), caps=caps).share(where)
    second = sk.SlotPool.open(where, durable="crash")
    for which, call in calls:
        pool = second if which else first
        pool.refresh()
        assert change(pool, call) == change(plain, call)
        assert state_of(pool) == state_of(plain)
        assert sorted(pool.caps.tolist()) == sorted(plain.caps.tolist())
        if data.draw(st.integers(0, 6)) == 0:
            pool.snapshot()
    assert_followed(first)
    with reopened(second) as third:
        assert sorted(third.caps.tolist()) == sorted(plain.caps.tolist())
    first.close()
    second.close()


def test_a_later_quota_counts_what_a_shared_schedule_has_booked(
    new_place: NewPlace,
) -> None:
    jobs = [sk.Request(2, 4), sk.Request(1, 3, account="bob")]
    with sk.SlotPool(nodes(), caps={"lic": 4}).share(new_place()) as pool:
        pool.schedule(jobs, owner="ann")
        one = sk.SlotPool(nodes(), caps={"lic": 4})
        for job in jobs:
            one.book(one.find(job, "start"), "ann")
        for each in (pool, one):
            each.quota("nodes", 3)
        assert pool.caps["used"].max() == 3
        assert sorted(pool.caps.tolist()) == sorted(one.caps.tolist())
        with reopened(pool) as other:
            assert sorted(other.caps.tolist()) == sorted(one.caps.tolist())


def test_a_window_keeps_its_uses_and_account_in_the_log(tmp_path: Path) -> None:
    job = sk.Request(2, 4, uses={"lic": 3}, account="physics", name="ocean")
    with sk.SlotPool(nodes(), caps={"lic": 4}).share(tmp_path / "site.db") as pool:
        window = pool.place(job, token="t").window
        with reopened(pool) as other:
            (found,) = other.windows()
            assert (found.uses, found.account) == ({"lic": 3}, "physics")
            again = other.place(job, token="t")
            assert again.repeated
            assert again.window.uses == {"lic": 3}
            assert other.find(job).start == window.finish
    body = pack_window(window)
    plain = pack_window(sk.find_window(nodes(), sk.Request(2, 4)))
    assert (body[0], plain[0]) == (2, 1)
    for found in (
        unpack_window(body),
        *unpack_windows([body, plain, body], [None] * 3)[::2],
    ):
        assert (found, found.special) == (window, window.special)
    with pytest.raises(ValueError, match="invalid special fields: Expecting"):
        unpack_window(body[:-20])
    head = body[: body.index(b"{")]
    for odd, words in ((b'{"x":1}', "unknown fields"), (b'{"uses":3}', "uses must be")):
        with pytest.raises(ValueError, match=f"invalid special fields: {words}"):
            unpack_window(head + odd)
    with pytest.raises(ValueError, match="format 4"):
        unpack_windows([b"\x04" + body[1:]], [None])


def test_new_slots_extend_the_hours_of_quotas_for_followers(tmp_path: Path) -> None:
    clock = sk.Clock("2026-11-30", unit="h", zone="Europe/Berlin")
    pool = sk.SlotPool(nodes(2, 24.0), clock=clock).share(tmp_path / "site.db")
    other = reopened(pool)
    pool.quota("nodes", 1, when="Mon-Fri 08:00-18:00")
    more = nodes(2, 72.0)
    more["start"] = 24.0
    pool.add_slots(more)
    other.refresh()
    assert other.caps.tolist() == pool.caps.tolist()
    late = sk.Request(2, 4, earliest=24)
    assert pool.find(late) == other.find(late)
    assert_followed(pool)
    for each in (pool, other):
        each.close()


def test_the_check_finds_more_than_a_capacity_has(tmp_path: Path) -> None:
    place = tmp_path / "site.db"
    job = sk.Request(1, 5, uses={"lic": 3}, account="x")
    with sk.SlotPool(nodes(), caps={"lic": 6}).share(place) as pool:
        pool.schedule([job, job])
        pool.set_cap("lic", 4)  # less than what is booked: no violation
        assert pool.check()
        pool.release(pool.open_bookings()[0])
        pool.place(job.replace(uses={"lic": 1}))
        assert pool.check()
        pool.snapshot()
        (path,) = (pool._store.where,)
    with sqlite3.connect(path) as connection:
        kinds = [row[0] for row in connection.execute("SELECT kind FROM entries")]
        assert kinds == ["book", "book", "caps", "release", "book"]
        (version,) = next(
            connection.execute("SELECT version FROM entries WHERE kind = 'caps'")
        )
        rules = b'{"rules":[["lic",null,false,null,[[-Infinity,3]],null]]}'
        connection.execute(
            "UPDATE entries SET body = ? WHERE version = ?", (rules, version)
        )
    connection.close()
    text = str(sk.ledger.check.check_ledger(path))
    assert "version 5: more than a capacity has: lic: 4 of 3" in text
    assert "has other capacities than the log" in text


@given(
    st.lists(
        st.tuples(
            *(st.integers(0, 9), st.integers(1, 5), st.integers(1, 3)),
            st.sampled_from([None, "a", "b"]),
        ),
        max_size=8,
    ),
    st.integers(1, 6),
    st.sampled_from([(None, False), ("*", True), ("*", False), ("a", False)]),
)
def test_the_check_counts_as_a_sum_over_each_moment(
    rows: list[Any], limit: int, rule: tuple[str | None, bool]
) -> None:
    counted = CountedRules()
    steps = [[float("-inf"), limit], [4.0, None], [7.0, limit + 1]]
    counted.set_rules([["nodes", *rule, None, steps, None]])
    known: list[Charge] = []
    for number, (start, length, amount, account) in enumerate(rows):
        charge = Charge(start, start + length, amount, {}, account)
        known.append(charge)
        exceeded = False
        for moment in range(start, start + length):
            most = limit if moment < 4 else None if moment < 7 else limit + 1
            used = sum(
                each.nodes
                for each in known
                if each.start <= moment < each.finish
                and (rule[0] in (None, "*") or each.account == rule[0])
                and (not rule[1] or (each.account or "") == (account or ""))
            )
            counts = rule[0] in (None, "*", account)
            exceeded |= counts and most is not None and used > most
        assert bool(counted.take(number, charge)) == exceeded
        if number % 3 == 2:
            counted.give_back(number)
            known.pop()


# --- jobs of several parts

CHAIN = sk.Chain(
    [
        sk.Request(1, 3, name="sort"),
        sk.AnyOf([sk.Together([sk.Request(1, 4), sk.Request(2, 2)]), sk.Request(1, 9)]),
    ],
    name="daily",
)


def test_a_plan_is_booked_whole_and_repeated_by_its_token(new_place: NewPlace) -> None:
    place = new_place()
    plain = sk.SlotPool(nodes())
    plan = plain.find(CHAIN, "finish")
    with sk.SlotPool(nodes()).share(place, user="ann") as pool:
        bookings = pool.place(CHAIN, "finish", token="t")
        assert [each.window for each in bookings] == list(plan)
        assert {each.owner for each in bookings} == {"ann"}
        assert len(pool.calls()) == 1
        again = pool.place(CHAIN, "finish", token="t")
        assert again == [each._replace(repeated=True) for each in bookings]
        with pytest.raises(sk.ledger.TokenUsed):
            pool.place(sk.Chain([*CHAIN.stages], name="other"), "finish", token="t")
        too_many = sk.Together([sk.Request(3, 4), sk.Request(2, 4)])
        assert pool.place(too_many) is None
        version = pool.version
        with pytest.raises(sk.ledger.Taken):
            pool.book(plan)
        assert pool.version == version
        assert_followed(pool)


def test_plans_in_a_schedule_are_one_call(new_place: NewPlace) -> None:
    jobs = [
        sk.Request(2, 4, name="a"),
        CHAIN,
        sk.Request(9, 1),
        sk.Together([sk.Request(1, 4, name="x"), sk.Request(2, 2, name="y")]),
        sk.Request(1, 1),
    ]
    plain = sk.SlotPool(nodes())
    expected = plain.schedule(jobs, owner="ann")
    with sk.SlotPool(nodes()).share(new_place(), user="ann") as pool:
        done = pool.schedule(jobs, token="night")
        version = pool.version
        with reopened(pool, user="ann") as other:
            again = other.schedule(jobs, token="night")
        for found in (done, again):
            assert list(found) == list(expected)
            assert found.reason.tolist() == expected.reason.tolist()
            assert found.names == expected.names
            assert found[1] == expected[1]
            assert found[1].roles == expected[1].roles
        assert pool.version == version
        assert len(pool.calls()) == 1
        assert state_of(pool) == state_of(plain)
        assert_followed(pool)


def test_a_schedule_that_fails_after_a_plan_stores_nothing(tmp_path: Path) -> None:
    with sk.SlotPool(nodes()).share(tmp_path / "site.db") as pool:
        before = state_of(pool)
        cyclic: Any = [CHAIN, "no job"]
        with pytest.raises(TypeError):
            pool.schedule(cyclic)
        assert pool.version == 0
        assert state_of(pool) == before
        assert_followed(pool)
