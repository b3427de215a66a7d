"""Tests of free slots under prices by time and tariffs: whole spans, or cut ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slotkern as sk

free_slots = partial(sk.free_slots, cut=False)
DAY: dict[str, Any] = {"start": 0, "end": 10}
NIGHT = sk.Tariff([2, 8], [1, 3, 1])


def price_at(free: sk.FreeSlots, node: int, time: float) -> float:
    """Return the price of a node at a time; NaN if it is busy."""
    slots = free.slots[free.slots["node"] == node]
    slots = slots[(slots["start"] <= time) & (time < slots["end"])]
    if not len(slots):
        return np.nan
    (slot,) = slots
    if free.tariffs is None or not slot["tariff"]:
        return float(slot["price"])
    return float(slot["price"] * free.tariffs[slot["tariff"]].at(time))


rows = st.tuples(
    st.integers(0, 2), *2 * [st.integers(0, 20).map(lambda k: k / 2)], st.integers(0, 3)
)


@given(st.lists(rows, max_size=4), st.lists(rows, max_size=5), st.booleans())
@example([], [(0, 2.0, 6.0, 4), (0, 3.0, 3.0, 1)], True)
def test_whole_spans_have_the_prices_of_cut_ones(busy, changes, by_node):
    """Compare with the table, by halves of a time unit."""
    machine = sk.Machine({"name": ["a", "b", "c"], "price": [1, 1, 2]})
    busy = [(n, *sorted(t)) for n, *t, _ in busy]
    changes = [(n if by_node else 0, *sorted((a, b)), p) for n, a, b, p in changes]
    changes = [
        row
        for i, row in enumerate(changes)
        if all(o[0] != row[0] or o[2] <= row[1] or o[1] >= row[2] for o in changes[:i])
    ]
    prices = {
        c: np.array([row[i] for row in changes], float if i else int)
        for i, c in enumerate(("node", "start", "end", "price"))
    }
    if not by_node:
        del prices["node"]
    taken = {c: [r[i] for r in busy] for i, c in enumerate(("node", "start", "end"))}
    whole, cut = (
        free_slots(machine, taken, prices=prices, cut=each, **DAY)
        for each in (False, True)
    )
    plain = free_slots(machine, taken, **DAY)
    spans = ["node", "start", "end"]
    assert (whole.slots[spans] == plain.slots[spans]).all()
    assert cut.tariffs is None
    assert "tariff" not in cut.slots.dtype.names
    for node in range(3):
        for half in range(20):
            time = half / 2
            expected = [
                p
                for m, a, b, p in changes
                if (m == node or not by_node) and a <= time < b
            ] or [machine.price[node]]
            if any(m == node and a <= time < b for m, a, b in busy):
                expected = [np.nan]
            for free in (whole, cut):
                found = price_at(free, node, time)
                assert np.array_equal(found, expected[0], equal_nan=True)


def test_nodes_of_equal_prices_share_a_tariff():
    machine = sk.Machine({"name": ["a", "b", "c", "d"], "price": [1, 1, 2, 5]})
    prices = {"node": ["a", "b", "c"], "start": 1, "end": [2, 2, 2], "price": [3] * 3}
    free = free_slots(machine, prices=prices, **DAY)
    assert free.slots["tariff"].tolist() == ["price 1", "price 1", "price 2", ""]
    assert free.slots["price"].tolist() == [1, 1, 1, 5]
    everywhere = {"start": [1], "end": [2], "price": [3]}
    free = free_slots(machine, prices=everywhere, **DAY)
    assert free.slots["tariff"].tolist() == ["price 1", "price 1", "price 2", "price 3"]
    free = free_slots(sk.Machine.homogeneous(2), prices=everywhere, **DAY)
    assert free.tariffs == sk.Tariffs({"price": sk.Tariff([1, 2], [0, 3, 0])})


def test_hourly_prices_of_a_year_and_many_nodes_are_one_tariff():
    hours = np.arange(8760.0)
    prices = {"start": hours, "end": hours + 1, "price": hours % 24}
    machine = sk.Machine.homogeneous(2000)
    free = free_slots(machine, start=0, end=8760, prices=prices)
    assert len(free) == 2000
    assert len(free.tariffs["price"].breakpoints) == 8759


def test_tariffs_of_the_machine():
    machine = sk.Machine(
        {"name": ["a", "b", "c"], "price": [1, 2, 3], "tariff": ["night", "", "spot"]}
    )
    spot = {"start": [0, 5], "end": [5, 10], "price": [2, 4]}
    free = free_slots(machine, tariffs={"night": NIGHT, "spot": spot}, **DAY)
    assert free.slots["tariff"].tolist() == ["night", "", "spot"]
    assert free.slots["price"].tolist() == [1, 2, 3]
    assert free.tariffs == sk.Tariffs({"night": NIGHT, "spot": sk.Tariff([5], [2, 4])})
    cut = free_slots(machine, tariffs={"night": NIGHT, "spot": spot}, cut=True, **DAY)
    assert cut.slots[["node", "start", "price"]].tolist() == [
        (0, 0, 1),
        (1, 0, 2),
        (2, 0, 6),
        (0, 2, 3),
        (2, 5, 12),
        (0, 8, 1),
    ]


def test_one_tariff_for_all_nodes():
    machine = sk.Machine.homogeneous(2, price=2)
    free = free_slots(machine, tariffs={"night": NIGHT}, **DAY)
    assert free.slots["tariff"].tolist() == ["night", "night"]
    assert free.slots["price"].tolist() == [2, 2]
    assert free.to_pandas()["tariff"].tolist() == ["night", "night"]


def test_tariffs_by_times_of_day():
    days = {"start": "2026-10-24", "end": "2026-10-26", "zone": "Europe/Berlin"}
    free = free_slots(
        sk.Machine.homogeneous(1),
        tariffs={"night": {"06:00": 3, "22:00": 1}},
        unit="h",
        **days,
    )
    assert free.tariffs["night"] == sk.Tariff([6, 22, 31, 47], [1, 3, 1, 3, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tariffs": {"a": NIGHT, "b": NIGHT}}, "no column 'tariff', which names one"),
        (
            {"tariffs": {"spot": {"start": [0], "end": [8], "price": [1]}}},
            r"tariffs\['spot'\]: there is no price from 8 to 10; add it",
        ),
        ({"tariffs": {"a": {"06:00": 1}}}, "the horizon has no clock"),
        (
            {"tariffs": {"a": NIGHT}, "prices": {"start": [0], "end": [1], "price": 1}},
            "prices and tariffs are both given",
        ),
    ],
)
def test_wrong_tariffs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        free_slots(sk.Machine.homogeneous(2), **options, **DAY)


def test_names_of_tariffs_are_checked():
    machine = sk.Machine({"name": ["a", "b"], "tariff": [None, "nihgt"]})
    with pytest.raises(ValueError, match=r"machine: tariff, row 1: .*mean 'night'\?"):
        free_slots(machine, tariffs={"night": NIGHT}, **DAY)
    with pytest.raises(ValueError, match="machine, row 1: the node has the tariff"):
        free_slots(machine, **DAY)
    with pytest.raises(TypeError, match="tariffs must be a mapping of names to Tariff"):
        free_slots(machine, tariffs=NIGHT, **DAY)
    with pytest.raises(TypeError, match="row 0: the tariff 3 is no text"):
        sk.Machine({"name": ["a"], "tariff": [3]})
    without = sk.Machine({"name": ["a", "b"], "tariff": ["", ""]})
    assert free_slots(without, **DAY).tariffs is None


def test_names_of_tariffs_in_files_are_text(tmp_path):
    path = tmp_path / "machine.csv"
    path.write_text("name,price,tariff\nn[1-2],0.5,7\nm,1,\n")
    machine = sk.Machine.read(path)
    assert machine.columns["tariff"].tolist() == ["7", "7", ""]
    assert sk.Machine(machine.to_dict()) == machine


def test_tariff_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spot.csv"
    path.write_text("start,price\n2026-10-24 00:00,1\n2026-10-24 12:00,3\n")
    day = {"start": "2026-10-24", "end": "2026-10-25", "zone": "UTC", "unit": "h"}
    machine = sk.Machine({"name": ["a"], "price": [1.0]})
    found = sk.free_slots(machine, **day, tariffs={"spot": path})  # type: ignore[arg-type]
    assert found.tariffs == sk.Tariffs({"spot": sk.Tariff([12], [1, 3])})
    with pytest.raises(TypeError, match="give the tariff a name, as in tariffs="):
        sk.free_slots(machine, **day, tariffs={"06:00": 1, "22:00": 2})  # type: ignore[arg-type]
