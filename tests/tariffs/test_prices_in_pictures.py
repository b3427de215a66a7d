"""Tests of the price over time below Gantt pictures."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import slotkern as sk
from slotkern.plotting.prices import price_ranges, tariffs_of
from slotkern.viewer.collect import make_background

NIGHT = sk.Tariff([6, 22], [0.5, 1, 0.5])


def free(cut: bool = False) -> sk.FreeSlots:
    machine = sk.Machine(
        {
            "name": ["a", "b", "c"],
            "price": [1, 2, 3],
            "tariff": ["night", "night", ""],
        }
    )
    return sk.free_slots(machine, start=0, end=48, tariffs={"night": NIGHT}, cut=cut)


def test_prices_have_their_own_axes() -> None:
    figure = sk.plot_gantt(free())
    rows, prices = figure.axes
    assert rows.get_xlim() == prices.get_xlim() == (0, 48)
    assert prices.get_ylabel() == "price"
    labels = [text.get_text() for text in prices.get_legend().get_texts()]
    assert labels == ["no tariff", "cheapest to dearest node", "night"]
    assert len(sk.plot_gantt(free(cut=True)).axes) == 1
    window = sk.find_window(free(), sk.Request(2, 4), "cost")
    assert len(sk.plot_gantt(free().slots, window).axes) == 2  # of the window
    alone = Figure().add_subplot()
    assert len(sk.plot_gantt(free(), ax=alone).axes) == 1


@pytest.mark.parametrize("many", [False, True])
def test_prices_of_nodes(many: bool) -> None:
    given = free()
    slots, tariffs = given.slots, tariffs_of(given)
    assert tariffs == sk.Tariffs({"night": NIGHT})
    assert tariffs_of(sk.SlotPool(given)) == tariffs
    assert tariffs_of(slots) is None
    if not many:
        base, found = price_ranges(slots, tariffs, 0, 30)
        assert base.edges.tolist() == [0, 30]
        assert base.low.tolist() == base.high.tolist() == [3]  # the node without one
        assert not price_ranges(slots[slots["tariff"] == ""], tariffs, 0, 30)
        assert found.edges.tolist() == [0, 6, 22, 30]
        assert found.low.tolist() == [0.5, 1, 0.5]
        assert found.high.tolist() == [1, 2, 1]
        return
    several = sk.Tariffs(
        {f"t{k}": sk.Tariff([3 * k + 1], [k, 7 - k]) for k in range(6)}
    )
    slots = sk.make_slots(
        node=range(6),
        start=0,
        end=30,
        performance=1,
        price=[1, 2, 1, 3, 1, 1],
        tariff=[*several],
    )
    (found,) = price_ranges(slots, several, 0, 30)
    assert found.name == "6 tariffs"
    for edge, low, high in zip(found.edges[:-1], found.low, found.high, strict=True):
        now = slots["price"] * [tariff.at(edge) for tariff in several.values()]
        assert (low, high) == (now.min(), now.max())
    slots["tariff"][0], slots["price"][0] = "", 99
    (found,) = price_ranges(slots, several, 0, 30)
    assert found.name == "5 tariffs, none"
    assert (found.high == 99).all()


def test_pages_show_mean_prices() -> None:
    background = make_background(free())
    expected = [NIGHT.mean(0, 48), 2 * NIGHT.mean(0, 48), 3]
    assert background.free["price"].tolist() == pytest.approx(expected)


def test_pages_show_the_price_of_endless_time_without_a_tariff() -> None:
    slots = sk.make_slots(
        node=[0, 1],
        start=0,
        end=float("inf"),
        performance=1,
        price=[2, 3],
        tariff=["", "night"],
    )
    pool = sk.SlotPool(slots, tariffs={"night": NIGHT})
    price = make_background(pool).free["price"]
    assert price[0] == 2
    assert np.isnan(price[1])  # it has no mean
