"""Tests of the calls of a shared pool: what each stores, answers and refuses."""

from __future__ import annotations

import copy
import gc
import pickle
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import slotkern as sk
from slotkern import ledger
from slotkern.ledger import replay
from tests.support.ledgers import assert_followed, new_ledger, nodes, state_of

JOB = sk.Request(2, 5)


@pytest.fixture
def pool(where: Path | str) -> sk.SharedPool:
    return new_ledger(where)


@pytest.fixture
def other(pool: sk.SharedPool) -> sk.SharedPool:
    return sk.SlotPool.open(pool._store.where, user="bob")


def test_a_booking_of_one_is_seen_by_the_other(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    first = pool.place(JOB, owner="ann")
    second = other.place(JOB)
    assert first is not None
    assert second is not None
    assert (first.id, first.owner, first.window.nodes) == (1, "ann", (0, 1))
    assert (second.id, second.owner, second.window.nodes) == (2, "bob", (2, 3))
    assert pool.refresh() == 1
    assert state_of(pool) == state_of(other)
    assert_followed(pool)


def test_no_window_stores_nothing_and_not_the_token(pool: sk.SharedPool) -> None:
    assert pool.place(sk.Request(5, 5), token="t") is None
    assert pool.version == 0
    assert pool.place(JOB, token="t") is not None


def test_a_criterion_that_no_row_can_hold_books_nothing(where: Path | str) -> None:
    name = "c" * 65_536
    values = {name: [1.0, 2.0]}
    slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=1, **values)
    pool = sk.SlotPool(slots).share(where)
    with pytest.raises(ValueError, match="a criterion of 65536 bytes"):
        pool.place(sk.Request(1, 4), name)
    assert (len(pool.booked), pool.version) == (0, 0)
    assert pool.place(sk.Request(1, 4)) is not None


def test_a_token_repeats_its_answer(pool: sk.SharedPool, other: sk.SharedPool) -> None:
    first = pool.place(JOB, token="t")
    again = other.place(JOB, owner="ann", token="t")
    assert first is not None
    assert again is not None
    assert again == first._replace(repeated=True)
    with pytest.raises(ledger.TokenUsed, match="another request, at version 1"):
        other.place(JOB, owner="bob", token="t")
    with pytest.raises(ValueError, match="nothing has changed"):
        pool.place(JOB.replace(name="x"), token="t")
    pool.release(first)
    assert other.place(JOB, owner="ann", token="t") == again
    assert_followed(other)


def test_a_token_distinguishes_names_and_masks(pool: sk.SharedPool) -> None:
    named = sk.Request(1, 5, name="a")
    assert pool.place(named, token="n") is not None
    with pytest.raises(ledger.TokenUsed):
        pool.place(sk.Request(1, 5, name="b"), token="n")
    texts = set()
    for row in (1, 900):  # texts of long arrays are cut
        mask = np.zeros(2000, bool)
        mask[row] = True
        texts.add(ledger.codec.request_text(sk.Request(1, 5, where=mask)))
    assert len(texts) == 2


def test_the_texts_of_requests_do_not_change() -> None:
    """Tokens of earlier versions stay valid: fields without an effect are omitted."""
    text = ledger.codec.request_text
    assert text(sk.Request(2, 5)) == '{"nodes":2,"volume":5.0}'
    request = sk.Request(2, 5, deadline=9, limits=["sum(price) <= 3"], name="a")
    assert text(request) == (
        '{"nodes":2,"volume":5.0,"deadline":9.0,'
        '"limits":[["price","<=",3.0]],"name":"a"}'
    )


@pytest.mark.parametrize(
    "limit",
    [{"budget": 0.0}, {"max_price": 0.0}, {"deadline": 0.0}, {"earliest": 0.0}],
)
def test_a_token_distinguishes_a_limit_of_zero(
    pool: sk.SharedPool, limit: dict[str, float]
) -> None:
    assert pool.place(JOB, token="t") is not None
    with pytest.raises(ledger.TokenUsed):
        pool.place(JOB.replace(**limit), token="t")  # type: ignore[arg-type]


def test_windows_found_before_are_booked_or_taken(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    window = pool.find(JOB)
    assert window is not None
    booking = pool.book(window, owner="ann", token="w")
    assert booking.window == window
    with pytest.raises(ledger.Taken, match="node 0 from 0"):
        other.book(window)
    assert pool.book(window, owner="ann", token="w") == booking._replace(repeated=True)
    two = [other.find(JOB), None]
    assert [b.id for b in other.book(two)] == [2]
    with pytest.raises(TypeError, match="no window"):
        other.book(None)  # type: ignore[call-overload]
    assert_followed(pool)


def test_a_schedule_is_one_call(pool: sk.SharedPool, other: sk.SharedPool) -> None:
    jobs = {"a": JOB, "b": sk.Request(9, 1), "c": JOB}
    done = pool.schedule(jobs, owner="night", token="331")
    assert done.reasons == ["booked", "nodes", "booked"]
    again = other.schedule(jobs, owner="night", token="331")
    assert again == done
    assert again.names == ["a", "b", "c"]
    table = pool.calls()
    assert table[["first", "last", "user", "token"]].tolist() == [(1, 2, "ann", "331")]
    assert_followed(other)


def test_owners_and_numbers_of_a_release(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    bookings = [pool.place(JOB.replace(name=n), owner="ann") for n in "abc"]
    a, b, c = (b for b in bookings if b is not None)
    with pytest.raises(ledger.NotYours, match="belongs to 'ann'"):
        other.release(a, owner="bob")
    assert other.release(a.id, owner="ann", token="r") == 1
    assert pool.release(a.id, owner="ann", token="r") == 1
    with pytest.raises(LookupError, match="not booked"):
        pool.release(a)
    assert pool.release(b.window) == 1
    assert other.release("ann", name="c") == 1
    with pytest.raises(ValueError, match="'ann' has nothing booked"):
        other.release("ann")
    with pytest.raises(ledger.NotYours):
        other.release("ann", owner="bob")
    with pytest.raises(TypeError, match="can be released"):
        other.release(None)  # type: ignore[arg-type]
    assert (pool.refresh(), len(pool.windows())) == (1, 0)
    assert c.id == 3
    assert_followed(pool)


def test_a_hold_ends_unless_it_is_confirmed(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    now = 10**15
    pool._store.clock = other._store.clock = lambda: now  # type: ignore[method-assign]
    kept = pool.place(JOB, hold="10min")
    lost = pool.place(JOB, hold=timedelta(minutes=10))  # type: ignore[arg-type]
    assert kept is not None
    assert lost is not None
    assert kept.expires is not None
    assert kept.expires.timestamp() == 10**9 + 600
    assert other.confirm(kept, owner="ann").expires is None
    with pytest.raises(ledger.NotYours):
        other.confirm(lost, owner="bob")
    now += 599 * 10**6
    assert pool.release(lost) == 1
    late = pool.place(JOB, hold=1)
    now += 2 * 10**6
    assert late is not None
    with pytest.raises(ledger.Expired):
        other.confirm(late.id)
    assert pool.confirm(kept.id).id == kept.id
    assert len(other.windows()) == 1
    assert_followed(other)


def test_holds_of_no_time_and_of_all_time(pool: sk.SharedPool) -> None:
    hold = pool.place(JOB, hold=0)
    window = pool.find(JOB)
    assert window is not None
    held = pool.book(window, hold="0s")
    pool.snapshot()
    for one in (pool, sk.SlotPool.open(pool._store.where)):
        for each in (hold, held):
            with pytest.raises(ledger.Expired):
                one.confirm(each)  # type: ignore[arg-type]
    version = pool.version
    for long in ("4000000d", 1e300):
        with pytest.raises(ValueError, match="hold must be from 0 to 1000 years"):
            pool.place(JOB, hold=long)
    with pytest.raises(TypeError, match="keep must be"):
        pool.compact(keep=None)  # type: ignore[arg-type]
    assert pool.version == version
    assert_followed(pool)


def test_a_refusal_keeps_holds_that_ended(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    now = 10**15
    pool._store.clock = other._store.clock = lambda: now  # type: ignore[method-assign]
    pool.place(JOB, hold=1)
    window = pool.find(JOB)
    assert window is not None
    pool.book(window)
    now += 10**7
    with pytest.raises(ledger.Taken):
        other.book(window)
    assert other.version == 3
    assert_followed(pool)


def test_a_clock_that_jumps_changes_only_ends_of_holds(pool: sk.SharedPool) -> None:
    now = 10**15
    pool._store.clock = lambda: now  # type: ignore[method-assign]
    hold = pool.place(JOB, hold=60)
    now -= 3600 * 10**6
    pool.place(JOB)
    assert pool.calls()["time"].astype(int).tolist() == [10**15] * 2
    now += 30 * 3600 * 10**6
    with pytest.raises(ledger.Expired):
        pool.confirm(hold)
    assert_followed(pool)


def test_time_and_nodes_are_entries(pool: sk.SharedPool, other: sk.SharedPool) -> None:
    plain = sk.SlotPool(nodes())
    for each in (pool, plain):
        each.book(each.find(sk.Request(3, 50)), owner="ann")
        hit = each.disable([0, 1], start=10, end=70, owner="power")
        assert len(hit) == 1
        each.enable([1])
        each.reserve([1, 2], 40, 80, owner="m", partly=True)
        each.advance(20.5)
        each.remove_node(3)
        each.add_slots(nodes(9, 90)[7:] if each.now < 0 else _late())
        each.release("ann")
    other.refresh()
    assert state_of(pool) == state_of(plain) == state_of(other)
    assert other.closed["owner"].tolist().count("m") == 2
    for each in (pool, plain):
        each.release("m")
    other.advance(5)  # the slower clock of another process
    assert other.version == pool.version
    assert other.now == 20.5
    other.disable([7])
    plain.disable([7])
    pool.refresh()
    assert state_of(pool) == state_of(plain) == state_of(other)
    assert_followed(other)


def _late() -> np.ndarray:
    return sk.make_slots(node=[7, 8], start=30, end=90, performance=1, price=1)


def test_refusals_change_nothing(pool: sk.SharedPool) -> None:
    for call in (
        lambda: pool.enable([0]),
        lambda: pool.disable([9]),
        lambda: pool.reserve([0], 50, 200),
        lambda: pool.remove_node(9),
        lambda: pool.add_slots(nodes(2)),
        lambda: pool.schedule([JOB], "median"),
        lambda: pool.place(JOB, "median"),  # type: ignore[arg-type]
        lambda: pool.place(JOB, owner=""),
        lambda: pool.place(JOB, hold=-1),
        lambda: pool.place("job"),  # type: ignore[arg-type]
        lambda: pool.place(JOB, token=3),  # type: ignore[arg-type]
        lambda: pool.schedule([JOB, 3]),
        lambda: pool.confirm(None),  # type: ignore[arg-type]
        lambda: pool.share("other.db"),
        pool.handle,
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert pool.version == 0
    assert_followed(pool)


def test_requests_that_a_ledger_cannot_store_are_refused(pool: sk.SharedPool) -> None:
    for request in (sk.Request(1, 1, share={"cores": 2}),):
        with pytest.raises(ValueError, match="does not support share="):
            pool.place(request, token="t")
        with pytest.raises(ValueError, match="does not support share="):
            pool.schedule([JOB, request], token="t")
    assert pool.version == 0
    assert_followed(pool)


def test_searches_work_as_on_any_pool(pool: sk.SharedPool) -> None:
    pool.place(JOB)
    assert pool.find(JOB, "cost") is not None
    assert sk.find_window(pool, JOB) is not None
    assert sk.explain(pool, sk.Request(9, 1)).fits is False
    assert len(pool.find_alternatives(JOB)) > 0
    assert pool.bookings()["owner"].tolist() == ["ann"]
    for same in (pool.copy(), copy.copy(pool), pickle.loads(pickle.dumps(pool))):
        assert type(same) is sk.SlotPool
        assert state_of(same) == state_of(pool)
        same.release("ann")
    assert len(pool.windows()) == 1


def test_a_group_is_stored_at_its_end(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    with pool.group(within=60):
        first = pool.place(JOB, token="t")
        assert pool.place(JOB, token="t") == first._replace(repeated=True)  # type: ignore
        assert other.refresh() == 0
        with pytest.raises(LookupError):
            pool.release(99)
        pool.release(first)  # type: ignore[arg-type]
        with pytest.raises(ledger.LedgerError, match="already"), pool.turn():
            pass
    assert other.refresh() == 2
    with pytest.raises(ZeroDivisionError), pool.group(within=60):  # noqa: PT012
        pool.place(JOB)
        raise ZeroDivisionError
    assert other.refresh() == 1
    with pool.group(most=2, within=60):
        pool.place(JOB)
        pool.place(JOB)
        assert other.refresh() == 2
    with pool.group(within=0):
        pool.place(JOB)
        assert other.refresh() == 1
    assert_followed(other)


def test_a_turn_is_stored_as_a_whole_or_not(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    before = state_of(pool)
    with pytest.raises(ZeroDivisionError), pool.turn():  # noqa: PT012
        pool.place(JOB)
        pool.advance(3)
        raise ZeroDivisionError
    assert state_of(pool) == before
    assert pool.version == 0
    with pool.turn():
        pool.place(JOB)
        pool.release("ann")
    assert other.refresh() == 2

    def interrupted() -> None:
        with pool.turn():
            pool.place(JOB)
            pool._stale = True  # as after Ctrl-C in a call
            pool.place(JOB)

    with pytest.raises(ledger.LedgerError, match="interrupted"):
        interrupted()
    assert other.refresh() == 0
    assert_followed(pool)


def test_bookings_from_before_the_ledger(where: Path | str) -> None:
    plain = sk.SlotPool(nodes())
    window = plain.find(JOB)
    plain.book(window)
    with pytest.raises(ValueError, match="without an owner"):
        plain.share(where)
    plain.release(window)
    plain.book(window, owner="ann")
    plain.disable([3], start=2)
    pool = plain.share(where)
    assert state_of(pool) == state_of(plain)
    with pytest.raises(FileExistsError):
        plain.share(where)
    assert pool.release(-1) == 1
    assert_followed(pool)
    if isinstance(where, Path):
        endings = ("", "-shm", "-turn", "-wal")
        names = [f"{where.name}{ending}" for ending in endings]
        assert sorted(p.name for p in where.parent.iterdir()) == names


def test_clocks_and_machines_are_kept(where: Path | str) -> None:
    machine = sk.Machine({"name": ["n1", "n2"], "performance": 1, "price": 1})
    clock = sk.Clock("2026-11-27", zone="UTC", unit="h")
    free = sk.free_slots(machine, None, start=0, end=48, clock=clock)
    pool = sk.SlotPool(free).share(where)
    pool.place(sk.Request(1, walltime="2h", name="x"), owner="ann")
    pool.disable("n2", start="2026-11-27 10:00")
    pool.reserve("n1", "2026-11-27 12:00", "2026-11-27 13:00", owner="m")
    pool.advance("2026-11-27 01:00")
    other = sk.SlotPool.open(where)
    assert (
        other.bookings()["start_time"].tolist()
        == pool.bookings()["start_time"].tolist()
    )
    assert other.windows()[0].names == ("n1",)
    pool.remove_node("n1")
    other.refresh()
    assert state_of(other) == state_of(pool)
    assert_followed(other)


def test_follow_and_calls(pool: sk.SharedPool, other: sk.SharedPool) -> None:
    pool.place(JOB, token="t")
    stream = other.follow(since=0)
    assert next(stream).kind == "book"
    pool.release("ann")
    assert (next(stream).of, other.version) == (1, 2)
    assert pool.calls(token="t")["last"].tolist() == [1]
    assert pool.calls(since=1)["last"].tolist() == [2]
    assert pool.calls(user="bob").size == 0
    assert pool.calls(most=1)["last"].tolist() == [1]
    assert pool.calls(since=1, most=5)["last"].tolist() == [2]
    with pytest.raises(ValueError, match="most must be at least 1"):
        pool.calls(most=0)
    pool.compact(0)
    with pytest.raises(LookupError, match="after version 0 were dropped, up to 2"):
        next(other.follow(since=0))
    pool.place(JOB)
    assert next(other.follow(since=2)).version == 3


def test_snapshots_compaction_and_backups(
    pool: sk.SharedPool, other: sk.SharedPool, tmp_path: Path
) -> None:
    for _ in range(5):
        pool.place(JOB, token=f"{pool.version}")
    pool.release(2)
    assert pool.snapshot() == 6
    pool.place(JOB)
    pool.backup(tmp_path / "copy.db")
    copied = sk.SlotPool.open(tmp_path / "copy.db")
    assert copied.version == 7
    assert state_of(copied) == state_of(pool)
    assert copied.check()
    assert pool.compact() == 0
    assert pool.compact(keep=0) == 7
    assert other.refresh() == 7  # from the snapshot, not from entries
    assert state_of(other) == state_of(pool)
    again = other.place(JOB, owner="ann", token="0")  # forgotten
    assert again is not None
    assert not again.repeated
    assert_followed(pool)


def test_a_snapshot_of_a_dropped_part_is_not_stored(
    pool: sk.SharedPool, other: sk.SharedPool
) -> None:
    pool.place(JOB)
    other.refresh()
    (first,) = [stored for stored in pool._store.snapshots()]
    pool.compact(0)
    pool._store.put_snapshot(first)
    assert [stored.version for stored in pool._store.snapshots()] == [1]


def test_a_broken_snapshot_is_passed_over(pool: sk.SharedPool) -> None:
    pool.place(JOB)
    pool.snapshot()
    with pool._store.turn():
        pool._store._change("UPDATE snapshots SET body = chain WHERE version = 1")
        pool._store._end()
    other = sk.SlotPool.open(pool._store.where)
    assert (other.version, state_of(other)) == (1, state_of(pool))


def test_opening_after_many_entries_stores_a_snapshot(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotkern.ledger.opening.SNAPSHOT_AFTER", 3)
    pool.schedule([JOB] * 3)
    sk.SlotPool.open(pool._store.where)
    assert [stored.version for stored in pool._store.snapshots()] == [3, 0]
    assert sk.SlotPool.open(pool._store.where).replayed == 0


def test_users_without_a_name(
    pool: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", fail)
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert sk.SlotPool.open(pool._store.where, readonly=True).user == "4711"


def test_readonly(pool: sk.SharedPool) -> None:
    reader = sk.SlotPool.open(pool._store.where, readonly=True)
    pool.place(JOB)
    assert reader.refresh() == 1
    assert reader.find(JOB) is not None
    with pytest.raises(ledger.LedgerError, match="readonly"):
        reader.place(JOB)


def test_past_bookings_are_dropped_from_memory(where: Path | str) -> None:
    pool = new_ledger(where, 1, 1e6)
    pool.schedule([sk.Request(1, 1)] * 300)
    pool.advance(299.5)
    assert len(pool._bookings) == 1
    with pytest.raises(LookupError):
        pool.release(5)
    assert_followed(pool)


def test_replay_leaves_the_frozen_objects_of_the_program_frozen(
    pool: sk.SharedPool, other: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "_MANY_OBJECTS", 0)
    gc.collect()
    other.place(sk.Request(1, 1))
    assert (pool.refresh(), gc.get_freeze_count(), gc.isenabled()) == (1, 0, True)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        other.place(sk.Request(1, 1))
        assert pool.refresh() == 1
        assert 0 < gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


def test_the_replay_after_an_interrupted_one_enables_the_collector(
    pool: sk.SharedPool, other: sk.SharedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "_MANY_OBJECTS", 0)
    other.place(sk.Request(1, 1))
    with monkeypatch.context() as patched:
        patched.setattr(gc, "freeze", interrupt)
        with pytest.raises(KeyboardInterrupt):
            pool.refresh()
    assert not gc.isenabled()
    other.place(sk.Request(1, 1))
    pool.refresh()
    assert gc.isenabled()
