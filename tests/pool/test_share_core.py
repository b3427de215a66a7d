"""The binding of shared hosts: searches, changes, states and errors."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import slotkern as sk
from slotkern._kernels.shares import MAX_SHARE, ShareCore


def spans(*rows: tuple[int, float, float]) -> NDArray[np.void]:
    return np.array(list(rows), [("row", "i8"), ("start", "f8"), ("end", "f8")])


def hosts(count: int = 3) -> NDArray[np.void]:
    return sk.make_slots(
        node=np.arange(count), start=0, end=100, performance=1, price=[1.0] * count
    )


def core(count: int = 3) -> ShareCore:
    all_time = spans(*[(h, 0, 100) for h in range(count)])
    amounts = np.full((count, 2), [8, 2])
    return ShareCore(hosts(count), amounts, all_time, amounts)


def test_parts_of_two_jobs_share_a_host() -> None:
    shared = core(1)
    request = sk.Request(1, 10)
    for start in (0, 0, 10):
        window = shared.find(request, [4, 1])
        assert window is not None
        assert (window.start, window.nodes) == (start, (0,))
        shared.book(window, [4, 1])
    assert shared.find(sk.Request(1, 5, deadline=10), [1, 0]) is None


def test_several_parts_may_be_on_one_host() -> None:
    shared = core(2)
    assert shared.find(sk.Request(3, 10), [2, 0]) is None
    window = shared.find(sk.Request(3, 10), [2, 0], stack=2)
    assert window is not None
    assert window.nodes == (0, 0, 1)
    assert window.slots["row"].tolist() == [0, 0, 1]
    shared.book(window, [2, 0])
    _, free, available = shared.profile(0)
    assert free.tolist() == [[4, 2], [8, 2]]
    assert available.all()


@pytest.mark.parametrize("criterion", ["first", "start", "finish", "runtime", "cost"])
@pytest.mark.parametrize("shape", ["square", "ragged"])
def test_criteria_and_prices(criterion: Any, shape: Any) -> None:
    shared = core()
    window = shared.find(
        sk.Request(2, 10),
        [8, 0],
        np.array([3.0, 1.0, 2.0]),
        criterion=criterion,
        shape=shape,
    )
    assert window is not None
    assert window.criterion == criterion
    if criterion != "first":
        assert (window.nodes, window.cost) == ((1, 2), 30)


def test_filters_and_limits_read_the_columns_of_the_hosts() -> None:
    shared = core()
    window = shared.find(sk.Request(1, 10, where="node >= 2"), [1, 1])
    assert window is not None
    assert window.nodes == (2,)
    limited = sk.Request(2, 10, limits="sum(node) >= 3")
    window = shared.find(limited, [1, 1])
    assert window is not None
    assert window.nodes == (1, 2)
    with pytest.raises(ValueError, match="rows serve the criterion 'start'"):
        shared.find(limited, [1, 1], method="rows")
    with pytest.raises(ValueError, match="stack > 1"):
        shared.find(limited, [1, 1], stack=2)


@pytest.mark.parametrize("criterion", ["start", "finish", "cost"])
def test_parts_within_one_rack_are_the_best_of_all_racks(criterion: Any) -> None:
    random = np.random.default_rng(3)
    racks = np.arange(12) % 3
    table = sk.make_slots(
        node=np.arange(12),
        start=0,
        end=400,
        performance=1,
        price=random.integers(1, 4, 12),
        rack=racks,
    )
    all_time = spans(*[(h, 0, 400) for h in range(12)])
    shared = ShareCore(table, np.full((12, 2), [8, 2]), all_time, [[8, 2]] * 12)
    booked: list[tuple[sk.Window, list[int]]] = []
    for _ in range(120):
        demand = [int(random.integers(1, 6)), int(random.integers(0, 2))]
        n, volume = int(random.integers(1, 4)), int(random.integers(1, 20))
        inside = [
            shared.find(
                sk.Request(n, volume, where=f"rack == {rack}"),
                demand,
                criterion=criterion,
            )
            for rack in range(3)
        ]
        best = min((w.value, w.start, w.cost) for w in inside if w is not None)
        request = sk.Request(n, volume, within="rack")
        window = shared.find(request, demand, criterion=criterion)
        assert window is not None
        assert len({racks[node] for node in window.nodes}) == 1
        assert (window.value, window.start, window.cost) == best
        if random.random() < 0.2 and booked:
            shared.release(*booked.pop(int(random.integers(len(booked)))))
        else:
            shared.book(window, demand)
            booked.append((window, demand))
    with pytest.raises(ValueError, match="stack > 1"):
        shared.find(sk.Request(2, 1, within="rack"), [1, 0], stack=2)


def test_release_needs_the_booked_demand_and_restores_the_state() -> None:
    shared = core()
    before = shared.state()
    window = shared.find(sk.Request(2, 10), [5, 1])
    assert window is not None
    shared.book(window, [5, 1])
    with pytest.raises(ValueError, match=r"node 0 from 0\.0 to 10\.0 is not free"):
        shared.book(window, [5, 1])
    with pytest.raises(ValueError, match="is not booked"):
        shared.release(window, [5, 2])
    shared.release(window, [5, 1])
    with pytest.raises(ValueError, match="is not booked"):
        shared.release(window, [5, 1])
    after = shared.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_reserved_and_closed_time() -> None:
    shared = core(1)
    part = spans((0, 10, 20))
    shared.reserve(part, [[9, 0]])
    assert shared.profile(0)[1].tolist() == [[8, 2], [-1, 2], [8, 2]]
    assert shared.free_spans([0, 1])[["start", "end"]].tolist() == [(0, 10), (20, 100)]
    with pytest.raises(ValueError, match="is not reserved with these amounts"):
        shared.unreserve(part, [[8, 0]])
    shared.unreserve(part, [[9, 0]])
    shared.disable(spans((0, 10, 20), (0, 15, 30)))
    assert shared.closed[["start", "end"]].tolist() == [(10, 30)]
    assert shared.profile(0)[2].tolist() == [True, False, True]
    shared.enable([0])
    assert len(shared.free_spans([8, 2])) == 1


def test_time_passes_and_is_added() -> None:
    shared = core(1)
    window = shared.find(sk.Request(1, 10), [8, 2])
    assert window is not None
    shared.book(window, [8, 2])
    assert shared.integrals()[0].tolist() == [80, 20]
    assert shared.integrals()[1].tolist() == [720, 180]
    shared.advance(5)
    assert shared.now == 5
    shared.release(window, [8, 2])
    found = shared.find(sk.Request(1, 10), [8, 2])
    assert found is not None
    assert found.start == 5
    with pytest.raises(ValueError, match="overlaps another span of node 0"):
        shared.add(spans((0, 99, 110)), [[1, 0]])
    shared.add(spans((0, 100, 110)), [[8, 0]])
    late = shared.find(sk.Request(1, 10, earliest=95), [8, 0], criterion="finish")
    assert late is not None
    assert late.finish == 105


def test_copies_and_restored_states_are_independent() -> None:
    shared = core()
    window = shared.find(sk.Request(2, 10), [8, 0])
    assert window is not None
    shared.book(window, [8, 0])
    shared.reserve(spans((2, 0, 4)), [[3, 0]])
    shared.disable(spans((1, 50, 60)))
    other = shared.copy()
    state = shared.state()
    assert all(
        np.array_equal(state[key], value) for key, value in other.state().items()
    )
    other.release(window, [8, 0])
    assert len(shared.state()["booked"]) == 2
    assert len(other.state()["booked"]) == 0


@pytest.mark.parametrize(
    ("capacity", "text"),
    [
        ([[8, 2]], "one row for each of 3 hosts"),
        (np.full((3, 2), 0.5), r"capacity\[0, 0\] is 0.5: amounts are whole numbers"),
        (np.full((3, 2), -1), r"capacity\[0, 0\] is -1"),
        (np.full((3, 2), MAX_SHARE + 1), "use a larger unit"),
    ],
)
def test_invalid_capacities(capacity: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ShareCore(hosts(), capacity, spans(), np.empty((0, 2), int))


def test_invalid_arguments() -> None:
    shared = core()
    with pytest.raises(ValueError, match="all its amounts are 0"):
        shared.find(sk.Request(1, 1), [0, 0])
    with pytest.raises(ValueError, match="one amount for each of 2 resources"):
        shared.find(sk.Request(1, 1), [1])
    with pytest.raises(ValueError, match=r"spans\[0\]: row 3"):
        shared.disable(spans((3, 0, 1)))
    with pytest.raises(ValueError, match=r"spans\[1\] overlaps"):
        ShareCore(
            hosts(), np.ones((3, 1), int), spans((0, 0, 5), (0, 4, 9)), [[1], [1]]
        )
