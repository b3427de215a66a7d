"""Domains in other processes against `Domains` with the same pools."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slotkern as sk
from slotkern.domains import rounds
from slotkern.domains.agent import DomainAgent
from slotkern.domains.remote import RemoteDomain
from slotkern.ledger import Expired, TokenUsed, Unknown
from tests.domains.test_domains import _change, _facts, _slots

_SHAPES = ("square", "ragged")
_JOB = sk.Request(4, 10)


def _request(rnd: random.Random) -> sk.Request:
    """Return a random request of those that remote domains support."""
    inf = float("inf")
    rules = [
        {},
        {},
        {"within": "domain"},
        {"limits": f"most(domain) <= {rnd.randint(1, 3)}"},
        {"limits": f"distinct(domain) >= {rnd.randint(1, 2)}"},
    ]
    return sk.Request(
        rnd.randint(1, 5),
        rnd.randint(1, 12),
        budget=rnd.choice([inf, inf, 60, 20]),
        earliest=rnd.choice([-inf, 0, 3]),
        latest=rnd.choice([inf, inf, 9]),
        deadline=rnd.choice([inf, inf, 15]),
        max_runtime=rnd.choice([inf, inf, 5]),
        max_price=rnd.choice([inf, inf, 2]),
        min_performance=rnd.choice([0, 0, 2]),
        setup=rnd.choice([0, 0, 1]),
        step=rnd.choice([0, 0, 2]),
        where=rnd.choice([None, None, "price < 3", "start >= 3"]),
        **rnd.choice(rules),
    )


def check_remote(rnd: random.Random) -> None:
    """Compare searches over agents with those of the joined pool, after changes."""
    pools = {f"d{k}": sk.SlotPool(_slots(rnd)) for k in range(rnd.randint(1, 4))}
    near, far = sk.Domains(pools), sk.RemoteDomains(pools)
    cells, rounds._CELLS = rounds._CELLS, rnd.choice([1, 4, 32])
    most, rounds._MOST = rounds._MOST, rnd.choice([(0, 1), (1, 3), (8, 64)])
    try:
        for _ in range(3):
            for criterion in rounds.CRITERIA:
                for shape in _SHAPES:
                    job = _request(rnd)
                    window = far.find(job, criterion, shape=shape)
                    other = near.find(job, criterion, shape=shape)
                    assert _facts(window) == _facts(other), (job, criterion, shape)
            if window is not None and rnd.random() < 0.5:
                made = far.book(window, "meta")
                assert sum(len(each.window) for each in made.parts.values()) == len(
                    window
                )
                if rnd.random() < 0.5:
                    far.release(made)
            _change(rnd, rnd.choice([*pools.values()]), rnd.choice([1, 3]))
    finally:
        rounds._CELLS, rounds._MOST = cells, most


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64).map(random.Random))
def test_searches_equal_those_of_domains(rnd: random.Random) -> None:
    check_remote(rnd)


@pytest.mark.parametrize("criterion", rounds.CRITERIA)
@pytest.mark.parametrize("shape", _SHAPES)
def test_slot_that_ends_with_its_part_after_rounding(
    criterion: str, shape: str
) -> None:
    # 1.1 + 8 is 9.1 after rounding, but 9.1 - 8 is two units in the last place less
    # than 1.1
    slots = sk.make_slots(
        node=[0, 1], start=[1.1, 2.1], end=[9.1, 99], performance=1, price=1
    )
    far = sk.RemoteDomains({"d": sk.SlotPool(slots)})
    window = far.find(sk.Request(1, 8), criterion, shape=shape)
    assert window is not None
    assert (window.names, window.start) == (("d/0",), 1.1)


def test_expired_hold_that_the_local_manager_has_released() -> None:
    pool = _site(2)
    agent = DomainAgent("d", pool)
    far = sk.RemoteDomains({"d": pool})
    window = far.find(sk.Request(1, 5), "start")
    assert window is not None
    agent._book([window.to_dict()], "ann", 1e-3, None, None)
    pool.release("ann")
    time.sleep(0.01)
    found, value = pickle.loads(agent.answer(pickle.dumps(("facts", ()))))
    assert found, value
    assert not agent._held


def _site(nodes: int, price: Any = 1, seed: int | None = None) -> sk.SlotPool:
    """Return a pool of nodes that are free from 0 to 100, or at random times."""
    rng = np.random.default_rng(seed)
    start = 0 if seed is None else rng.integers(0, 80, nodes)
    return sk.SlotPool(
        sk.make_slots(
            node=range(nodes), start=start, end=100, performance=1, price=price
        )
        if seed is None
        else np.sort(
            sk.make_slots(
                node=range(nodes),
                start=start,
                end=start + rng.integers(10, 80, nodes),
                performance=rng.choice([1, 2, 4], nodes),
                price=rng.integers(1, 9, nodes),
            ),
            order=["start", "node"],
        )
    )


@pytest.mark.parametrize("criterion", rounds.CRITERIA)
@pytest.mark.parametrize("shape", _SHAPES)
def test_bytes_do_not_grow_with_the_domain(criterion: str, shape: str) -> None:
    received = []
    for nodes in (1_000, 10_000):
        pools = {f"d{k}": _site(nodes, seed=k) for k in range(2)}
        far, near = sk.RemoteDomains(pools), sk.Domains(pools)
        before = far.traffic.received
        job = sk.Request(8, 20, budget=3_000)
        window = far.find(job, criterion, shape=shape)
        assert _facts(window) == _facts(near.find(job, criterion, shape=shape))
        received.append(far.traffic.received - before)
    assert received[1] < 1.5 * received[0]


@pytest.mark.parametrize(
    ("request_", "criterion", "text"),
    [
        (_JOB, "first", "criterion 'first' is not possible over remote domains"),
        (_JOB, "last", "criterion"),
        (_JOB, np.ones(4), "criteria over remote domains are start, finish"),
        (sk.Request(2, 1, within="rack"), "start", "within='rack'"),
        (sk.Request(2, 1, limits="most(rack) <= 1"), "start", r"most\(rack\) <= 1"),
        (sk.Request(2, 1, limits="sum(price) <= 9"), "start", r"sum\(price\) <= 9"),
        (sk.Request(2, 1, where=[True, True]), "start", "where must be an expression"),
        (sk.Request(2, 1, uses={"x": 1}), "start", "uses: not possible"),
        ("4 nodes", "start", "take a Request"),
    ],
)
def test_searches_that_need_all_slots_are_refused(
    request_: Any, criterion: Any, text: str
) -> None:
    domains = sk.RemoteDomains({"a": _site(2), "b": _site(2)})
    with pytest.raises((ValueError, TypeError), match=text):
        domains.find(request_, criterion)


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({}, "one or more"),
        ({"a/b": _site(1)}, "'a/b'"),
        (
            {
                "a": _site(1),
                "b": sk.SlotPool(
                    _site(1).slots, clock=sk.Clock("2030-01-01", zone="UTC")
                ),
            },
            "'a' and 'b' must have the same clock",
        ),
    ],
)
def test_domains_that_do_not_fit_are_refused(given_: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        sk.RemoteDomains(given_)


def test_dates_are_converted_by_the_clock() -> None:
    clock = sk.Clock("2030-01-01", unit="h", zone="UTC")
    slots = _site(2).slots
    pools = {name: sk.SlotPool(slots, clock=clock) for name in ("a", "b")}
    job = sk.Request(3, walltime="2h", earliest="2030-01-01 06:00")
    window = sk.RemoteDomains(pools).find(job, "start")
    assert window is not None
    assert window.start_time.isoformat() == "2030-01-01T06:00:00+00:00"
    assert _facts(window) == _facts(sk.Domains(pools).find(job, "start"))


# --- bookings


@pytest.fixture
def ledgers(tmp_path: Path) -> dict[str, Path]:
    """Two ledgers of two nodes."""
    files = {name: tmp_path / f"{name}.db" for name in ("a", "b")}
    for file in files.values():
        _site(2).share(file).close()
    return files


def _open(files: dict[str, Path]) -> list[int]:
    return [len(sk.SlotPool.open(file).open_bookings()) for file in files.values()]


def test_place_books_all_or_none(ledgers: dict[str, Path]) -> None:
    domains = sk.RemoteDomains(ledgers)
    booking = domains.place(_JOB, owner="ann", token="t")
    assert booking is not None
    assert booking.window.names == ("a/0", "a/1", "b/0", "b/1")
    assert [part.window.names for part in booking.parts.values()] == [
        ("a/0", "a/1"),
        ("b/0", "b/1"),
    ]
    again = sk.RemoteDomains(ledgers).place(_JOB, owner="ann", token="t")
    assert again is not None
    assert again.repeated
    assert _facts(again.window)[1:] == _facts(booking.window)[1:]
    near = sk.Domains({name: sk.SlotPool.open(file) for name, file in ledgers.items()})
    assert near.recover("t") is not None
    with pytest.raises(TokenUsed, match="another request"):
        domains.place(sk.Request(4, 11), owner="ann", token="t")
    domains.release(booking)
    assert _open(ledgers) == [0, 0]
    with pytest.raises(ValueError, match="booked in no domain"):
        domains.release(booking)


def test_a_refused_part_releases_the_others(ledgers: dict[str, Path]) -> None:
    domains = sk.RemoteDomains(ledgers)
    window = domains.find(_JOB)
    sk.SlotPool.open(ledgers["b"]).reserve([0], 0, 5, owner="local")
    with pytest.raises(ValueError, match="node 0") as caught:
        domains.book(window)
    assert "in the domain 'b'" in caught.value.__notes__
    assert _open(ledgers) == [0, 1]
    booking = domains.place(_JOB)
    assert booking is not None
    assert booking.window.start == 5


def test_holds_of_a_pool_end(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = DomainAgent("a", _site(1))
    domains = sk.RemoteDomains({"a": RemoteDomain(lambda _: _sent(agent))})
    window = domains.find(sk.Request(1, 10))
    ledger = domains._ledger("a")
    (part,) = ledger._book_part([window], "ann", 0.0, None)
    with pytest.raises(Expired, match="no hold 1"):
        ledger.confirm([part])
    assert agent.pool.owners == []
    (part,) = ledger._book_part([window], "ann", 60.0, None)
    ledger.confirm([part])
    assert agent.pool.owners == ["ann"]
    ledger.release(part)
    with pytest.raises(LookupError, match="booking 2 is not booked"):
        ledger.release(part)
    with pytest.raises(ValueError, match="'a' is a pool of its process"):
        domains.place(sk.Request(1, 1), token="t")


class _DyingError(Exception):
    """Stands for the loss of a worker."""


def _sent(agent: DomainAgent) -> Any:
    return lambda question: lambda: agent.answer(question)


@pytest.mark.parametrize("kind", ["ledger", "pool"])
@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("question", range(4))
def test_a_worker_that_dies_in_a_booking_leaves_nothing(
    ledgers: dict[str, Path], question: int, after: bool, reopens: bool, kind: str
) -> None:
    """It dies before or after each question of a booking; recovery is complete."""
    sources: dict[str, Any] = {**ledgers}
    if kind == "pool":
        sources["b"] = lambda: _site(2)
    agents: dict[str, DomainAgent] = {}
    asked: list[str] = []
    dead: set[str] = set()
    armed: list[bool] = []

    def start(name: str) -> Any:
        if name in dead:
            if not reopens:
                raise Unknown(f"no worker can open {name!r}")
            dead.remove(name)
        agents[name] = DomainAgent(name, sources[name])

        def send(text: bytes) -> Any:
            def wait() -> bytes:
                if armed:
                    asked.append(name)
                dies = armed and len(asked) == question + 1
                if name in dead or (dies and not after):
                    dead.add(name)
                    raise Unknown(f"the worker of {name!r} does not answer")
                answer = agents[name].answer(text)
                if dies:
                    dead.add(name)
                    raise Unknown(f"the worker of {name!r} does not answer")
                return answer

            return wait

        return send

    def booked() -> list[int]:
        if kind == "ledger":
            return _open(ledgers)
        a = _open({"a": ledgers["a"]})
        return [*a, len(agents["b"].pool.owners)]

    domains = sk.RemoteDomains({name: RemoteDomain(start) for name in ledgers})
    window = domains.find(_JOB)
    armed.append(True)
    with pytest.raises(Unknown) as caught:
        domains.book(window, "ann", hold=60)
    armed.clear()
    notes = [each for each in caught.value.__notes__ if "recover(" in each]
    lost_pool = kind == "pool" and question in (1, 3)
    assert len(notes) == (0 if reopens and not lost_pool else 1)
    if notes:
        lost = {*dead}
        dead.clear()
        for name in lost:
            domains.reconnect(name, RemoteDomain(start))
        assert domains.recover(notes[0].partition("'")[2].partition("'")[0]) is None
    assert booked() == [0, 0]
    again = domains.book(domains.find(_JOB), "ann")
    assert booked() == [1, 1]
    domains.release(again)
    assert booked() == [0, 0]


def test_two_workers_that_die_after_they_have_confirmed(
    ledgers: dict[str, Path],
) -> None:
    """Both ledgers have all their parts: the booking is complete."""
    agents = {name: DomainAgent(name, file) for name, file in ledgers.items()}
    confirmed: list[str] = []

    def start(name: str) -> Any:
        opened = len(confirmed)

        def send(text: bytes) -> Any:
            def wait() -> bytes:
                is_lost = len(confirmed) == 2 and not opened
                answer = b"" if is_lost else agents[name].answer(text)
                if not is_lost and pickle.loads(text)[0] == "confirm":
                    confirmed.append(name)
                if len(confirmed) == 2 and not opened:
                    raise Unknown(f"the worker of {name!r} does not answer")
                return answer

            return wait

        return send

    domains = sk.RemoteDomains({name: RemoteDomain(start) for name in ledgers})
    booking = domains.book(domains.find(_JOB), "ann")
    assert _open(ledgers) == [1, 1]
    assert all(part.expires is None for part in booking.parts.values())
    domains.release(booking)
    assert _open(ledgers) == [0, 0]


def test_recovery_with_a_plain_pool_among_the_domains(ledgers: dict[str, Path]) -> None:
    """The agent of a plain pool keeps the token of its part."""
    agent = DomainAgent("b", _site(2))
    domains = sk.RemoteDomains(
        {"a": ledgers["a"], "b": RemoteDomain(lambda _: _sent(agent))}
    )
    window = domains.find(_JOB)
    booking = domains._book(window, "ann", 60, "t")
    found = domains.recover("t")
    assert found is not None
    assert found.repeated
    assert {n: part.id for n, part in found.parts.items()} == {
        n: part.id for n, part in booking.parts.items()
    }
    assert found.window.names == booking.window.names
    domains.release(found)
    assert agent.pool.owners == []
    assert domains.recover("t") is None


def test_the_agent_of_a_pool_drops_parts_that_have_ended() -> None:
    agent = DomainAgent("a", _site(1))
    domains = sk.RemoteDomains({"a": RemoteDomain(lambda _: _sent(agent))})
    kept = domains.place(sk.Request(1, 10), owner="kept")
    for _ in range(400):
        domains.place(sk.Request(1, 10), owner="ann")
        agent.pool.release("ann")  # by the local manager
    assert len(agent._held) <= 130
    domains.release(kept)
    assert agent.pool.owners == []


def test_schedule_books_in_order_and_all_or_none(ledgers: dict[str, Path]) -> None:
    domains = sk.RemoteDomains(ledgers)
    jobs = [sk.Request(3, 10), sk.Request(5, 10), sk.Request(2, 10)]
    made = domains.schedule(jobs, owner="ann")
    pools = {name: _site(2) for name in ledgers}
    other = sk.Domains(pools).schedule(jobs)
    assert [None if m is None else _facts(m.window)[1:] for m in made] == [
        None if w is None else _facts(w)[1:] for w in other
    ]
    assert made[1] is None
    before = _open(ledgers)
    assert sum(before) == sum(len(each.parts) for each in made if each is not None)
    with pytest.raises(TypeError, match="take a Request"):
        domains.schedule([sk.Request(3, 10), "4 nodes"])
    assert _open(ledgers) == before


def test_functions_of_slots_refuse_remote_domains() -> None:
    domains = sk.RemoteDomains({"a": _site(2)})
    calls: list[Any] = [sk.find_window, sk.find_alternatives]
    for call in calls:
        with pytest.raises(TypeError, match="got RemoteDomains"):
            call(domains, sk.Request(1, 1))
    with pytest.raises(TypeError, match="got RemoteDomains"):
        sk.schedule_batch(domains, [sk.Request(1, 1)])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers of dask in processes of their own, over TCP."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address=None,
        ) as started,
        distributed.Client(started) as client,
    ):
        yield client


def _workers(client: Any) -> list[str]:
    client.wait_for_workers(2)
    return sorted(client.scheduler_info()["workers"])


def test_workers_of_dask(cluster: Any, ledgers: dict[str, Path]) -> None:
    workers = dict(zip(ledgers, _workers(cluster), strict=False))
    domains = sk.RemoteDomains(
        {
            name: sk.remote_domain(cluster, str(file), workers[name])
            for name, file in ledgers.items()
        }
    )
    booking = domains.place(_JOB, owner="ann", token="t")
    assert booking is not None
    assert _open(ledgers) == [1, 1]
    assert domains.traffic.rounds > 0
    with pytest.raises(ValueError, match="'first'"):
        domains.find(_JOB, "first")
    domains.release(booking)

    window = domains.find(_JOB)
    pids = cluster.run(os.getpid)
    os.kill(pids[workers["b"]], signal.SIGKILL)
    with pytest.raises(Unknown, match="worker of the domain 'b'") as caught:
        domains.book(window, "bob", hold=60)
    assert _open(ledgers)[0] == 0
    (note,) = [each for each in caught.value.__notes__ if "recover(" in each]
    domains.reconnect("b", sk.remote_domain(cluster, str(ledgers["b"])))
    assert domains.recover(note.partition("'")[2].partition("'")[0]) is None
    assert _open(ledgers) == [0, 0]
    assert domains.place(_JOB, owner="bob") is not None
    assert _open(ledgers) == [1, 1]
