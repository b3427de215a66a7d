"""Tests of capacities of machines, and of free amounts by time."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk

TABLE = {
    "name": ["anna", "bert", "carl"],
    "cores": [64, 64, 128],
    "gpus": [4, 0, 8],
    "memory": [512_000.0, 256_000.0, 512_000.0],
    "price": [4, 1, 8],
}


def shared(**changes: Any) -> sk.Machine:
    return sk.Machine(TABLE | changes, capacity=["cores", "gpus", "memory"])


def test_machine_with_capacity() -> None:
    machine = shared()
    assert machine.capacity is not None
    assert machine.capacity.names == ("cores", "gpus", "memory")
    assert machine.capacity.amounts.tolist()[1] == [64, 0, 256_000]
    assert machine.columns["memory"].dtype == np.int64
    assert pickle.loads(pickle.dumps(machine)) == machine
    assert machine != sk.Machine(TABLE)
    assert sk.Machine(TABLE).capacity is None
    priced = sk.Machine(
        TABLE, capacity=["cores", "gpus"], prices={"cores": 0.5}, grain={"cores": 4}
    )
    assert pickle.loads(pickle.dumps(priced)) == priced
    assert sk.Machine.homogeneous(2, cores=4, capacity="cores").capacity is not None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"memory": [1, 1, 0.5]}, "machine, row 2: memory is 0.5, but capacities are"),
        ({"memory": [1, 1, 0.5]}, "use a smaller unit, such as MB"),
        ({"memory": [1, 2**40, 1]}, "row 1: memory is 1.09951e+12, but capacities"),
        ({"memory": [1, 2**40, 1]}, "use a larger unit, such as MB"),
        ({"cores": [1, -2, 1]}, "machine, row 1: cores is -2, which is negative"),
        ({"cores": [1, np.nan, 1]}, "row 1: cores is missing; write 0 for none"),
        ({"cores": ["1", "x", "1"]}, "row 1: cores 'x' is not a number"),
        (
            {"cores": [1, 0, 1], "memory": [1, 0, 1]},
            "row 1: the node has no cores and no gpus and no memory",
        ),
    ],
)
def test_invalid_capacities(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        shared(**changes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": ["core"]}, "machine has no column 'core'; it has cores, gpus"),
        ({"capacity": ["core"]}, "did you mean 'cores'?"),
        ({"capacity": ["cores", "cores"]}, "capacity has 'cores' twice"),
        ({"capacity": []}, "capacity names no column"),
        ({"capacity": [3]}, "capacity must be names of columns, got 3"),
        ({"prices": {"cores": 1}}, "prices needs capacity="),
        ({"grain": {"cores": 4}}, "grain needs capacity="),
        ({"capacity": "cores", "grain": {"gpus": 4}}, "grain has 'gpus', but the"),
        ({"capacity": "cores", "grain": {"cores": 0.5}}, "grain['cores'] is 0.5"),
        ({"capacity": "cores", "prices": {"cores": -1}}, "prices['cores'] must not be"),
        ({"capacity": "cores", "prices": {"cores": "x"}}, "has no column 'x'"),
        ({"capacity": "cores", "prices": 3}, "prices must be a mapping of resources"),
    ],
)
def test_invalid_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        sk.Machine(TABLE, **options)


# --- free amounts by time


def test_busy_spans_take_amounts() -> None:
    busy = {
        "node": ["anna", "anna", "bert", "carl"],
        "start": [2, 4, 0, 1],
        "end": [6, 9, 3, 2],
        "cores": [16, 16, np.nan, 0],
        "gpus": [1, np.nan, np.nan, 8],
    }
    free = sk.free_slots(shared(), busy, start=0, end=10)
    assert free.amounts is not None
    assert free.amounts.tolist() == [
        (0, 0, 2, 64, 4, 512_000),
        (0, 2, 4, 48, 3, 512_000),
        (0, 4, 6, 32, 3, 512_000),
        (0, 6, 9, 48, 4, 512_000),
        (0, 9, 10, 64, 4, 512_000),
        (1, 0, 3, 0, 0, 0),
        (1, 3, 10, 64, 0, 256_000),
        (2, 0, 1, 128, 8, 512_000),
        (2, 1, 2, 128, 0, 512_000),
        (2, 2, 10, 128, 8, 512_000),
    ]
    whole = free.slots[["node", "start", "end"]].tolist()
    assert whole == [(0, 0, 2), (2, 0, 1), (2, 2, 10), (1, 3, 10), (0, 9, 10)]
    assert free.busy["cores"][0] == 16
    assert sk.free_slots(sk.Machine(TABLE), busy, start=0, end=10).amounts is None


def test_errors_of_amounts_name_the_row() -> None:
    busy = {"node": ["anna"] * 2, "start": [0, 0], "end": [1, 1], "memory": [1, 0.5]}
    with pytest.raises(ValueError, match=r"busy: memory, row 1: memory is 0\.5, but"):
        sk.free_slots(shared(), busy, start=0, end=10)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)
        ),
        max_size=8,
    )
)
def test_free_amounts_equal_sums_over_unit_times(
    spans: list[tuple[int, int, int, int]],
) -> None:
    machine = sk.Machine.homogeneous(2, cores=[5, 7], capacity="cores")
    node, start, end, cores = [[each[k] for each in spans] for k in range(4)]
    end = [max(pair) for pair in zip(start, end, strict=True)]
    busy = {"node": node, "start": start, "end": end, "cores": cores}
    free = sk.free_slots(machine, busy if spans else None, start=1, end=8)
    found = np.full((2, 9), -1)
    assert free.amounts is not None
    for row in free.amounts.tolist():
        assert (found[row[0], int(row[1]) : int(row[2])] == -1).all()
        found[row[0], int(row[1]) : int(row[2])] = row[3]
    for host, capacity in enumerate([5, 7]):
        for t in range(1, 8):
            taken = [
                amount
                for at, a, b, amount in zip(node, start, end, cores, strict=True)
                if at == host and a <= t < b
            ]
            assert found[host, t] == max(0, capacity - sum(taken))
