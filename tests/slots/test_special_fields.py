"""Tests of fields of requests that only some searches support: share and stack."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any

import numpy as np
import pytest

import slotkern as sk
from slotkern.foundation.amounts import Amounts, amounts_of
from slotkern.foundation.special_fields import SPECIAL_FIELDS
from slotkern.machine.jobs import read_jobs, requests_of

SHARED = sk.Request(4, 10, share={"cores": 16, "gpus": 2.0}, stack=2, name="a")


def test_share_is_part_of_a_request() -> None:
    assert SHARED.share == {"cores": 16, "gpus": 2}
    assert SHARED.stack == 2
    assert "share={'cores': 16, 'gpus': 2}, stack=2" in repr(SHARED)
    assert pickle.loads(pickle.dumps(SHARED)) == SHARED
    assert json.loads(json.dumps(SHARED.share)) == {"cores": 16, "gpus": 2}
    same = sk.Request(
        4, 10, share={"gpus": 2, "cores": 16, "memory": 0}, stack=2, name="a"
    )
    assert same == SHARED
    assert hash(same) == hash(SHARED)
    for other in (
        SHARED.replace(share={"cores": 16}),
        SHARED.replace(stack=1),
        SHARED.replace(share=None, stack=1),
    ):
        assert other != SHARED


def test_amounts_of_zero_beside_columns_are_dropped() -> None:
    for uses in ({"matlab": 0, "power": "watts"}, "matlab=0,power=watts"):
        assert sk.Request(1, 1, uses=uses).uses == {"power": "watts"}
    with pytest.raises(ValueError, match=r"uses takes nothing: \{'matlab': 0\}"):
        sk.Request(1, 1, uses={"matlab": 0})
    with pytest.raises(
        ValueError, match=r"uses\['matlab'\] must be a whole number or a"
    ):
        sk.Request(1, 1, uses="matlab=,power=watts")


def test_requests_without_special_fields_have_none() -> None:
    plain = sk.Request(4, 10, share=None, stack=1)
    assert plain.special is None
    assert plain == sk.Request(4, 10)
    for name, field in SPECIAL_FIELDS.items():
        assert getattr(plain, name) == field.default
        assert name not in repr(plain)


def test_share_survives_the_conversion_of_dates() -> None:
    clock = sk.Clock("2026-10-26", zone="UTC")
    slots = sk.make_slots(node=[0], start=0, end=90000, performance=1, price=1)
    pool = sk.SlotPool(slots, clock=clock)
    request = sk.Request(1, walltime="1h", share={"cores": 1})
    with pytest.raises(ValueError, match="does not support share"):
        pool.find(request)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memory": 0.5}, "share['memory'] is 0.5, but amounts are whole numbers"),
        ({"memory": 0.5}, "use a smaller unit, such as MB"),
        ({"memory": 2**40}, "use a larger unit, such as MB"),
        ({"cores": -1}, "share['cores'] must not be negative, got -1"),
        ({"cores": True}, "share['cores'] must be a whole number, got True"),
        ({"cores": np.nan}, "share['cores'] must not be negative, got nan"),
        ({"cores": "many"}, "share['cores'] must be a whole number, got 'many'"),
        ({"cores": 0}, "share takes nothing: {'cores': 0}"),
        ({}, "share takes nothing: {}"),
        ({3: 1}, "share has the key 3, which is not a name"),
        (16, "share must be a mapping of names to amounts"),
        ("cores", "share must be amounts such as 'cores=16,gpus=2', got 'cores'"),
        ("cores=1,cores=2", "share has 'cores' twice"),
    ],
)
def test_invalid_shares(given: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        sk.Request(1, 1, share=given)


def test_stack_without_share_is_refused() -> None:
    with pytest.raises(ValueError, match="stack=2 needs share="):
        sk.Request(1, 1, stack=2)
    with pytest.raises(ValueError, match="stack must be at least 1, got 0"):
        sk.Request(1, 1, share={"cores": 1}, stack=0)
    with pytest.raises(TypeError, match="did you mean 'share'"):
        sk.Request(1, 1, shares={"cores": 1})


def test_amounts_are_immutable() -> None:
    amounts = amounts_of("share", "cores=16, gpus=2")
    assert amounts == {"cores": 16, "gpus": 2}
    for change in (
        lambda: amounts.__setitem__("cores", 1),
        lambda: amounts.pop("cores"),
        lambda: amounts.update(cores=1),
        amounts.clear,
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    assert isinstance(pickle.loads(pickle.dumps(amounts)), Amounts)


# --- searches that do not support shares


def test_other_searches_refuse_shares() -> None:
    slots = sk.make_slots(node=[0, 1], start=0, end=90, performance=1, price=1)
    pool = sk.SlotPool(slots)
    pool.book(pool.find(sk.Request(1, 1)))
    job = sk.Request(1, 5, share={"cores": 16}, name="a")
    searches = [
        lambda: sk.find_window(slots, job),
        lambda: sk.find_window(slots, job, "processor_time"),
        lambda: sk.find_window(slots, job, method="lite"),
        lambda: sk.find_window(slots, job, method="published"),
        lambda: sk.find_windows(slots, [job]),
        lambda: sk.find_alternatives(slots, job),
        lambda: sk.find_alternatives(slots, job, method="published"),
        lambda: sk.pareto(slots, job),
        lambda: sk.explain(slots, job),
        lambda: pool.find(job),
        lambda: pool.schedule([job]),
        lambda: pool.find_alternatives(job),
        lambda: sk.schedule_batch(slots, [job]),
        lambda: sk.schedule_batch(slots, [job], sk.Backfilling()),
    ]
    refused = r"does not support share=.*needs find, schedule"
    for search in searches:
        with pytest.raises(ValueError, match=refused):
            search()


def test_errors_of_queues_name_the_job_once() -> None:
    slots = sk.make_slots(node=[0], start=0, end=9, performance=1, price=1)
    job = sk.Request(1, 1, share={"cores": 1}, name="j00")
    for schedule in (
        lambda: sk.SlotPool(slots).schedule([job]),
        lambda: sk.schedule_batch(slots, [job]),
    ):
        with pytest.raises(ValueError, match=r"^j00: a search of slots does not"):
            schedule()


# --- tables of jobs


def test_tables_of_jobs_have_a_column_for_each_amount(tmp_path: Any) -> None:
    expected = [
        sk.Request(2, 4, share={"cores": 16, "gpus": 2}, stack=2),
        sk.Request(1, 4, share={"cores": 8}),
        sk.Request(1, 4),
    ]
    columns = {
        "nodes": [2, 1, 1],
        "volume": [4, 4, 4],
        "share.cores": [16, 8, np.nan],
        "share.gpus": [2, 0, 0],
        "stack": [2, np.nan, np.nan],
    }
    assert requests_of(columns) == expected
    path = tmp_path / "jobs.csv"
    path.write_text(
        "nodes,volume,share.cores,share.gpus,stack\n2,4,16,2,2\n1,4,8,,\n1,4,,,\n"
    )
    assert requests_of(read_jobs(path)) == expected
    path.write_text(
        'nodes,volume,share,stack\n2,4,"cores=16,gpus=2",2\n1,4,cores=8,\n1,4,,\n'
    )
    assert requests_of(read_jobs(path)) == expected
    path = tmp_path / "jobs.json"
    rows = [{"nodes": 2, "volume": 4, "share": {"cores": 16, "gpus": 2}, "stack": 2}]
    path.write_text(json.dumps(rows))
    assert requests_of(read_jobs(path)) == expected[:1]


def test_errors_in_tables_name_the_row() -> None:
    columns = {"nodes": [1, 1], "volume": [4, 4], "share.memory": [1, 0.5]}
    with pytest.raises(ValueError, match=r"row 1: share\['memory'\] is 0.5, but"):
        requests_of(columns)
    del columns["share.memory"]
    with pytest.raises(ValueError, match=r"unknown column 'shares\.cores'"):
        requests_of(columns | {"shares.cores": [1, 1]})
