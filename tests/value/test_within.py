"""Sums of values within one group: the best of a search for each group."""

import numpy as np
import pytest

import slotkern as sk

CRITERIA = ("memory", sk.minimize("memory"), "processor_time", "dependable")


def draw(seed: int) -> np.ndarray:
    """Return two slots for each of seven nodes in three racks."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(7), 2)
    start = rng.integers(0, 5, 14) + 12 * (np.arange(14) % 2)
    return sk.make_slots(
        node=node,
        start=start,
        end=start + rng.integers(1, 8, 14),
        performance=1 + node % 2,
        price=rng.integers(0, 4, 14),
        rack=np.array(["r1", "r2", "r3"])[node % 3],
        memory=rng.integers(0, 6, 14).astype(float),
    )


def best_of_racks(slots, request, criterion, shape):
    """Return the best window of all racks, each searched by a filter."""
    windows = [
        sk.find_window(
            slots, request.replace(where=f"rack == '{rack}'"), criterion, shape=shape
        )
        for rack in ("r1", "r2", "r3")
    ]
    sign = 1 if criterion in ("memory", "dependable") else -1
    found = [window for window in windows if window is not None]
    return max(found, key=lambda w: sign * w.value, default=None)


@pytest.mark.parametrize("shape", ["square", "ragged"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_equals_the_best_of_all_groups(criterion, shape):
    found = 0
    for seed in range(40):
        slots = draw(seed)
        request = sk.Request(2, 2, budget=12 if seed % 2 else np.inf)
        within = request.replace(within="rack")
        window = sk.find_window(slots, within, criterion, shape=shape)
        other = best_of_racks(slots, request, criterion, shape)
        assert (window is None) == (other is None)
        if window is None:
            continue
        found += 1
        assert window.value == other.value
        assert window.proven
        assert len({slots["rack"][slots["node"] == n][0] for n in window.nodes}) == 1
    assert found > 5


def test_a_filter_and_within_apply_together():
    slots = sk.make_slots(
        node=range(4), start=0, end=9, performance=1, price=1, rack=list("aabb"),
        memory=[9.0, 9.0, 1.0, 2.0],
    )  # fmt: skip
    request = sk.Request(2, 3, within="rack", where="memory < 9")
    assert sk.find_window(slots, request, "memory").nodes == (2, 3)
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(1, 3, where="node == 2"), "start"))
    assert pool.find(request, "memory").start == 3


def test_rules_other_than_within_are_refused():
    slots = draw(0)
    with pytest.raises(ValueError, match="support within= alone"):
        sk.find_window(slots, sk.Request(2, 2, limits="most(rack) <= 1"), "memory")
    with pytest.raises(ValueError, match="group rules"):
        sk.find_window(
            slots,
            sk.Request(2, 2, within="rack", limits="sum(memory) >= 1"),
            "start",
        )
