"""Sequences of changes of a pool of shared nodes, compared with plain definitions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shares_model import Best, SharesModel, lengths_of

import slotkern as sk

HORIZON = 10
CAPACITY = [(4, 2), (4, 0), (8, 4)]
PERFORMANCE, PRICE = [1, 2, 1], [4, 2, 8]


def new_pool(capacity: list[tuple[int, ...]] = CAPACITY) -> sk.HostPool:
    cores, gpus = zip(*capacity, strict=True)
    machine = sk.Machine(
        {
            "name": ["a", "b", "c"],
            "cores": cores,
            "gpus": gpus,
            "performance": PERFORMANCE,
            "price": PRICE,
        },
        capacity=["cores", "gpus"],
    )
    return sk.HostPool(sk.free_slots(machine, start=0, end=HORIZON))


def new_model() -> SharesModel:
    return SharesModel(CAPACITY, PERFORMANCE, PRICE, HORIZON)


def searches() -> st.SearchStrategy[dict[str, Any]]:
    """Draw a request: the arguments of `SharesModel.find`."""
    demand = st.none() | st.tuples(st.integers(0, 5), st.integers(0, 2)).filter(any)
    return st.fixed_dictionaries(
        {
            "nodes": st.integers(1, 3),
            "volume": st.sampled_from([2, 4, 6]),
            "demand": demand,
            "criterion": st.sampled_from(["start", "finish", "runtime", "cost"]),
            "shape": st.sampled_from(["square", "ragged"]),
            "stack": st.integers(1, 3),
            "budget": st.sampled_from([np.inf, 30.0, 8.0]),
            "earliest": st.integers(0, 3),
            "deadline": st.sampled_from([None, 7]),
        }
    )


def request_of(search: dict[str, Any]) -> sk.Request:
    """Return the request of a drawn search."""
    demand, deadline = search["demand"], search["deadline"]
    share = None
    if demand is not None:
        share = dict(zip(("cores", "gpus"), demand, strict=True))
    return sk.Request(
        search["nodes"],
        search["volume"],
        budget=search["budget"],
        earliest=search["earliest"],
        deadline=np.inf if deadline is None else deadline,
        share=share,
        stack=1 if share is None else search["stack"],
    )


def find_both(
    pool: sk.HostPool, model: SharesModel, search: dict[str, Any]
) -> sk.ShareWindow | None:
    """Compare a search of the pool with that of the model; return the window."""
    search = search | ({"stack": 1} if search["demand"] is None else {})
    how = {"criterion": search["criterion"], "shape": search["shape"]}
    window = pool.find(request_of(search), **how)
    expected = model.find(**search)
    if window is None:
        assert expected is None
        return None
    counts = window.counts or [1] * len(window)
    nodes = tuple(np.repeat(window.nodes, counts).tolist())
    found = Best(window.value, int(window.start), window.cost, nodes)
    assert found == expected
    return window


def book_both(
    pool: sk.HostPool,
    model: SharesModel,
    window: sk.ShareWindow,
    search: Any,
    owner: str,
) -> None:
    pool.book(window, owner)
    counts = window.counts or [1] * len(window)
    nodes = tuple(np.repeat(window.nodes, counts).tolist())
    lengths = lengths_of(model, nodes, search["volume"], search["shape"])
    parts = model.parts(nodes, int(window.start), lengths, search["demand"])
    model.booked.append(((window, owner), parts))


def check_amounts(pool: sk.HostPool, model: SharesModel) -> None:
    """Compare the free amounts of each unit of time."""
    found = np.full((3, HORIZON, 2), -1)
    for node, start, end, *free in pool.amounts.tolist():
        for time in range(int(start), int(end)):
            assert found[node, time].tolist() == [-1, -1]
            found[node, time] = free
    for node in range(3):
        for time in range(model.now, HORIZON):
            expected = [max(0, each) for each in model.free(node, time)]
            assert found[node, time].tolist() == expected


CHANGES = st.sampled_from(
    [
        "book",
        "book",
        "book",
        "release",
        "disable",
        "enable",
        "advance",
        "reserve",
        "copy",
        "save",
        "pickle",
    ]
)


@given(st.data())
@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_sequence_of_changes_equals_the_model(
    tmp_path: Path, data: st.DataObject
) -> None:
    pool, model = new_pool(), new_model()
    closed: dict[int, set[tuple[int, int]]] = {}
    for step in range(data.draw(st.integers(1, 9))):
        change = data.draw(CHANGES)
        if change == "book":
            search = data.draw(searches())
            window = find_both(pool, model, search)
            if window is not None:
                book_both(pool, model, window, search, f"owner {step}")
        elif change == "release" and model.booked:
            k = data.draw(st.integers(0, len(model.booked) - 1))
            (window, owner), _ = model.booked.pop(k)
            if window is None or data.draw(st.booleans()):
                if window is None or window.finish > pool.now:
                    pool.release(owner)
            else:
                pool.release(window)
        elif change == "disable":
            node, start = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 8))
            end = data.draw(st.integers(start + 1, HORIZON))
            pool.disable(node, start, end)
            closed.setdefault(node, set()).update((node, t) for t in range(start, end))
        elif change == "enable" and closed:
            node = data.draw(st.sampled_from(sorted(closed)))
            if node in pool.closed["node"]:
                pool.enable(node)
            del closed[node]
        elif change == "advance":
            now = data.draw(st.integers(model.now, HORIZON - 1))
            pool.advance(now)
            model.now = now
            model.booked = [
                (pair, parts)
                for pair, parts in model.booked
                if max(end for _, _, end, _ in parts) > now
            ]
        elif change == "reserve":
            node, start = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 8))
            end = data.draw(st.integers(start + 1, HORIZON))
            owner = f"reserved {step}"
            share = {"cores": data.draw(st.integers(1, 4))}
            if end > model.now:
                pool.reserve(node, start, end, share=share, owner=owner, partly=True)
                part = (node, start, end, (share["cores"], 0))
                model.booked.append(((None, owner), [part]))
        elif change == "copy":
            pool = pool.copy()
        elif change == "pickle":
            pool = pickle.loads(pickle.dumps(pool))
        elif change == "save":
            pool.save(tmp_path / "pool.npz", overwrite=True)
            loaded = sk.SlotPool.load(tmp_path / "pool.npz")
            assert loaded == pool
            pool = loaded  # type: ignore[assignment]
        model.closed = set().union(*closed.values())
        check_amounts(pool, model)
    find_both(pool, model, data.draw(searches()))


@given(st.lists(searches(), min_size=1, max_size=6), st.randoms())
@settings(max_examples=60, deadline=None)
def test_after_all_is_released_the_pool_equals_the_new_one(
    drawn: list[dict[str, Any]], random: Any
) -> None:
    pool, new = new_pool(), new_pool()
    jobs = [request_of(search) for search in drawn]
    windows = [window for window in pool.schedule(jobs, owner="ann") if window]
    random.shuffle(windows)
    for window in windows:
        pool.release(window)
    assert pool == new
    assert pool.amounts.tolist() == new.amounts.tolist()
    assert pool.slots.tolist() == new.slots.tolist()


@given(searches())
@settings(max_examples=80, deadline=None)
def test_schedule_equals_finding_and_booking(search: dict[str, Any]) -> None:
    pool, other = new_pool(), new_pool()
    job = request_of(search)
    criterion, shape = search["criterion"], search["shape"]
    booked = pool.schedule([job] * 3, criterion, shape=shape)
    for window, reason in zip(booked, booked.reasons, strict=True):
        found = other.find(job, criterion, shape=shape)
        assert found == window
        assert (reason == "booked") is (found is not None)
        if found is not None:
            other.book(found)
    assert pool.amounts.tolist() == other.amounts.tolist()


def test_model_by_hand() -> None:
    """Two parts of 4 cores fit on node c at once, or one there and one on a or b."""
    model = new_model()
    assert model.find(2, 2, (4, 0), stack=2) == Best(0, 0, 12.0, (0, 1))
    assert model.find(1, 2, (5, 0)) == Best(0, 0, 10.0, (2,))
    assert model.find(1, 2, (9, 0)) is None
    with pytest.raises(AssertionError):
        find_both(new_pool([(4, 2), (4, 0), (4, 4)]), model, _SEARCH)


_SEARCH = {
    "nodes": 1,
    "volume": 2,
    "demand": (5, 0),
    "criterion": "start",
    "shape": "square",
    "stack": 1,
    "budget": np.inf,
    "earliest": 0,
    "deadline": None,
}
