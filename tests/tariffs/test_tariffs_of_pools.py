"""Tests of pools with tariffs: files, ledgers, copies, reserved time."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import slotkern as sk

TARIFFS = sk.Tariffs(
    {"night": sk.Tariff([6, 22], [0.5, 1, 0.5]), "ß": sk.Tariff([], [0.1])}
)


def free() -> sk.FreeSlots:
    machine = sk.Machine(
        {
            "name": ["a", "b", "c"],
            "price": [1, 2, 3],
            "tariff": ["night", "", "ß"],
        }
    )
    return sk.free_slots(machine, start=0, end=48, tariffs=TARIFFS, cut=False)


def tariffs_of(pool: sk.SlotPool) -> sk.Tariffs:
    return pool.context.tariffs  # type: ignore[union-attr]


def test_pool_files_have_tariffs(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(free())
    pool.save(path)
    assert tariffs_of(sk.SlotPool.load(path)) == TARIFFS
    with np.load(path) as arrays:
        assert arrays["format"] == "slotkern pool 3"
        kept = dict(arrays)
    del kept["tariff start"]
    np.savez(path, **kept)
    with pytest.raises(ValueError, match="its tariffs are not complete"):
        sk.SlotPool.load(path)
    kept["tariff start"] = np.zeros(4)
    np.savez(path, **kept)
    with pytest.raises(ValueError, match="not a complete slotkern pool: tariffs"):
        sk.SlotPool.load(path)


def test_pool_files_without_tariffs_keep_their_format(tmp_path):
    path = tmp_path / "pool.npz"
    sk.SlotPool(sk.free_slots(sk.Machine.homogeneous(2), start=0, end=9)).save(path)
    with np.load(path) as arrays:
        assert arrays["format"] == "slotkern pool 2"
        assert not any(name.startswith("tariff") for name in arrays)


def test_copies_and_ledgers_have_tariffs(tmp_path):
    pool = sk.SlotPool(free())
    assert tariffs_of(pool.copy()) == TARIFFS
    assert tariffs_of(pickle.loads(pickle.dumps(pool))) == TARIFFS
    with pool.share(tmp_path / "pool.db") as shared:
        assert tariffs_of(shared) == TARIFFS
    with sk.SlotPool.open(tmp_path / "pool.db") as shared:
        assert tariffs_of(shared) == TARIFFS


def test_reserved_time_is_charged_by_tariff():
    pool = sk.SlotPool(free())
    (window,) = pool.reserve(["a", "b", "c"], 5.5, 23, owner="down")
    costs = [TARIFFS["night"].integral(5.5, 17.5), 2 * 17.5, 3 * (0.1 * 17.5)]
    assert window.slots["cost"].tolist() == costs
    assert window.cost == math.fsum(costs)
    assert pool.bookings()["cost"].tolist() == [window.cost]


def test_bookings_keep_what_was_charged_under_later_tariffs(tmp_path):
    path = tmp_path / "pool.npz"
    pool = sk.SlotPool(free())
    job = sk.Request(2, 4, earliest=7, where="tariff != ''")
    window = pool.find(job, "start")
    charged = window.cost
    pool.book(window, owner="eva")
    pool.save(path)
    with np.load(path) as arrays:
        kept = dict(arrays)
    kept["tariff factor"] = 2 * kept["tariff factor"]
    np.savez(path, **kept)
    later = sk.SlotPool.load(path)
    assert later.bookings()["cost"].tolist() == [charged]
    (owned,) = later.windows("eva")
    assert owned == window
    later.release(owned)
    assert later.find(job, "start").cost == 2 * charged
    later.book(window, owner="eva")  # a window that was charged by the earlier tariff
    with later.share(tmp_path / "pool.db") as shared:
        assert shared.bookings()["cost"].tolist() == [charged]
    with sk.SlotPool.open(tmp_path / "pool.db") as shared:
        assert shared.bookings()["cost"].tolist() == [charged]


def test_replays_refuse_tariffs():
    jobs = np.full(1, -1, sk.SWF)
    for name, value in (("job", 1), ("submit", 0), ("run_time", 5), ("allocated", 1)):
        jobs[name] = value
    machine = sk.Machine({"name": ["a", "b"], "tariff": ["", "night"]})
    for cluster in (machine, {"processors": [2], "tariff": ["night"]}):
        with pytest.raises(ValueError, match="the tariff 'night' cannot be replayed"):
            sk.replay(jobs, cluster=cluster)
    objects = np.array([None, "day"], object)
    rows = {"site": [0, 1], "processors": [2, 2]}
    with pytest.raises(ValueError, match="row 1: the tariff 'day' cannot be replayed"):
        sk.replay(jobs, cluster=rows | {"tariff": objects})
    for missing in (None, "", np.nan):
        sk.replay(jobs, cluster=rows | {"tariff": [missing] * 2})
