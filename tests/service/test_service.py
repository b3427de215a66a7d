"""Tests of the service: results of searches, bookings, tokens and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from service import ARROW, JOB, SLOTS, Client, run

import slotkern as sk
from slotkern._kernels.windows import json_from_window
from slotkern.search.records import (
    _FIRST,
    JsonText,
    cells,
    list_text,
    object_text,
    part_columns,
    request_record,
    strict_json,
    strict_text,
    window_record,
    window_text,
)
from slotkern.service.exchange import Exchange
from slotkern.service.operations import OPERATIONS


def test_a_forecast_answers_as_the_library_does(tmp_path: Path) -> None:
    queue = [{"nodes": 8, "walltime": 3}, {"nodes": 7, "volume": 2, "user": None}]
    columns = {"nodes": [8, 7], "walltime": [3, None], "volume": [None, 2]}

    async def test(client: Client) -> None:
        body = {"request": JOB, "queue": queue, "policy": "fcfs", "runs": 9, "seed": 4}
        found = (await client("POST", "/v1/forecast", body, "rob")).json
        for runs in (9, 20):  # the limit of the service
            expected = sk.forecast(
                client.app.pool,
                sk.Request(2, 4),
                columns,
                policy="fcfs",
                seed=4,
                runs=9,
            ).to_dict()
            assert found | expected == found
            body["runs"] = runs
            found = (await client("POST", "/v1/forecast", body, "rob")).json
        wrong = body | {"queue": [{"nodes": 1, "wall": 3}]}
        answer = await client("POST", "/v1/forecast", wrong, "rob")
        assert answer.status == 400
        assert "body.queue[0] has no field 'wall'" in answer.json["detail"]

    run(tmp_path, test, runs=9)


def test_a_search_answers_as_the_library_does(tmp_path: Path) -> None:
    job = JOB | {"earliest": 3, "budget": 9, "limits": ["sum(price) <= 2"]}
    request = sk.Request(2, 4, earliest=3, budget=9, limits="sum(price) <= 2")

    async def test(client: Client) -> None:
        pool = client.app.pool
        body = {"request": job, "criterion": "cost", "shape": "ragged"}
        found = (await client("POST", "/v1/find", body, "rob")).json
        window = sk.find_window(pool, request, "cost", shape="ragged")
        assert found["window"] == json.loads(
            json.dumps(window_record(pool, pool.origin, window))
        )
        assert found["request"]["earliest"] == request_record(request)["earliest"]
        again = body | {"request": found["request"]}  # an answer is a request
        assert (await client("POST", "/v1/find", again, "rob")).json == found
        front = (await client("POST", "/v1/front", {"request": job}, "rob")).json
        expected = sk.pareto(pool, request, ("cost", "finish"))
        assert [w["values"] for w in front["windows"]] == expected.values.tolist()
        many = {"request": JOB, "most": 3}
        several = (await client("POST", "/v1/alternatives", many, "rob")).json
        assert len(several["windows"]) == 3
        none = {"request": JOB | {"nodes": 9}}
        found = (await client("POST", "/v1/find", none, "rob")).json
        assert found["window"] is None
        assert "8 nodes" in found["explanation"]["text"]
        assert (await client("POST", "/v1/bookings", none, "ann")).status == 409

    run(tmp_path, test)


def test_a_record_of_a_window_has_the_columns_of_a_table() -> None:
    machine = sk.Machine({"name": ["b", "a", "c"], "site": ["x", "x", "y"]})
    clock = sk.Clock("2026-12-01", unit="h", zone="Europe/Berlin")
    pool = sk.SlotPool(sk.free_slots(machine, start=0, end=24, clock=clock))
    plain = sk.make_slots(
        node=[2, 0, 1],
        start=0,
        end=9,
        performance=1,
        price=2,
        rack=["r1", "r2", "r3"],
        window=[7, 8, 9],
        name=["n1", "n2", "n3"],
        load=[0.5, np.nan, 1.5],
    )
    for free, slots in ((pool, pool.origin), (plain, plain)):
        window = sk.find_window(free, sk.Request(2, 0.1))
        columns = {k: cells(c) for k, c in part_columns(free, slots, [window]).items()}
        assert columns.pop("window") == [1, 1]
        titles = (*_FIRST, *columns)
        order = [*dict.fromkeys(name for name in titles if name in columns)]
        record = window_record(free, slots, window)
        rows = [[*each.items()] for each in record["slots"]]
        expected = zip(*(columns[name] for name in order), strict=True)
        assert rows == [[*zip(order, row, strict=True)] for row in expected]
        assert window_text(free, slots, window).text == strict_text(record)


@given(st.lists(st.floats(), min_size=4, max_size=4), st.floats(-1e17, 1e17))
def test_the_text_of_a_window_has_the_numbers_of_python(
    loads: list[float], start: float
) -> None:
    slots = sk.make_slots(
        node=range(4), start=start, end=1e300, performance=3, price=0.1, load=loads
    )
    pool = sk.SlotPool(slots)
    pool.set_cap("licences", 9)
    for job in (sk.Request(4, 1e3), sk.Request(4, 1e3, uses={"licences": 2})):
        window = pool.find(job)
        record = window_record(pool, slots, window)
        assert window_text(pool, slots, window).text == strict_text(record)


def test_the_text_of_a_window_refuses_columns_of_another_length() -> None:
    window = sk.find_window(SLOTS, sk.Request(2, 1))
    for column, words in ((np.zeros(1), "no row 1"), ([b"1"], "1 values for 2 parts")):
        with pytest.raises(ValueError, match=f'"load" has {words}'):
            json_from_window(window, b"", {b'"load"': column})
    with pytest.raises(ValueError, match="need columns"):
        json_from_window(window, b"", {})
    texts: Any = ["1", "2"]
    with pytest.raises(TypeError):
        json_from_window(window, b"", {b'"load"': texts})


#: Slots with several numbers in a cell, and slots with half of a character in names.
ODD = {
    "cells": np.array(
        [(i, 0, 9, 1, 1, (i, 0.5)) for i in range(3)],
        [
            *(("node", "i4"), ("start", "f8"), ("end", "f8"), ("performance", "f8")),
            *(("price", "f8"), ("load", "f8", (2,))),
        ],
    ),
    "names": sk.free_slots(sk.Machine({"name": ["a\ud800", "b"]}), start=0, end=9),
    "texts": sk.make_slots(
        node=[0, 1], start=0, end=9, performance=1, price=1, rack=["\ud800\u00e9", "x"]
    ),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_booking_of_odd_columns_is_answered(tmp_path: Path, kind: str) -> None:
    async def test(client: Client) -> None:
        pool = client.app.pool
        body = {"request": {"nodes": 2, "volume": 1}}
        found = await client("POST", "/v1/find", body, "rob")
        record = window_record(pool, pool.origin, pool.find(sk.Request(2, 1)))
        assert found.json["window"] == json.loads(json.dumps(record))
        booked = await client("POST", "/v1/bookings", body, "ann")
        assert booked.status == 201
        assert booked.json["window"]["slots"] == found.json["window"]["slots"]
        listed = (await client("GET", "/v1/bookings", None, "rob")).json["bookings"]
        assert listed == [booked.json]
        if kind == "cells":
            answer = await client("GET", "/v1/bookings", None, "rob", accept=ARROW)
            table = pa.ipc.open_stream(answer.body).read_all()
            assert table["load"].to_pylist() == [[0, 0.5], [1, 0.5]]

    run(tmp_path, test, sk.SlotPool(ODD[kind]))


def test_an_error_after_a_change_was_stored_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no text")

    async def test(client: Client) -> None:
        monkeypatch.setattr(Exchange, "window", fail)
        for path, body in (
            ("/v1/bookings", {"request": JOB}),
            ("/v1/schedule", {"jobs": [JOB]}),
        ):
            answer = await client("POST", path, body, "ann")
            assert answer.status == 500
            assert f"POST {path} is stored" in answer.json["detail"]
        assert len(client.app.pool.open_bookings()) == 2
        answer = await client("POST", "/v1/find", {"request": JOB}, "ann")
        assert answer.status == 400

    run(tmp_path, test)


def test_texts_of_json_are_members_and_items() -> None:
    text = JsonText('{"b":1.50}')
    found = {"a": np.nan, "t": text, "all": list_text([text, JsonText("2")]), "z": 0}
    expected = '{"a":null,"t":{"b":1.50},"all":[{"b":1.50},2],"z":0}'
    assert object_text(found).text == expected
    assert strict_json(found) == json.loads(expected)
    assert object_text({"t": text}).text == '{"t":{"b":1.50}}'
    assert object_text({}).text == "{}"


def test_bookings_from_before_the_ledger_have_negative_ids(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        (listed,) = (await client("GET", "/v1/bookings", None, "rob")).json["bookings"]
        assert (listed["id"], listed["owner"]) == (-1, "ann")
        assert (await client("DELETE", "/v1/bookings/-1", None, "bea")).status == 403
        answer = await client("DELETE", "/v1/bookings/-1", None, "ann")
        assert answer.json == {"released": -1}
        for odd in ("-1", "x", "1.0", "9" * 30):
            answer = await client("DELETE", f"/v1/bookings/{odd}", None, "ann")
            assert answer.status == 404, odd

    pool = sk.SlotPool(SLOTS)
    pool.schedule([sk.Request(2, 4)], owner="ann")
    run(tmp_path, test, pool)


def test_the_version_of_a_list_is_not_newer_than_the_list(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        search = client.app.search

        async def overtaken(function: Callable[[], Any]) -> Any:
            found = await search(function)
            await client("POST", "/v1/bookings", {"request": JOB}, "ann")
            return found

        client.app.search = overtaken  # type: ignore[method-assign]
        listed = (await client("GET", "/v1/bookings", None, "rob")).json
        assert listed == {"version": 0, "bookings": []}
        assert client.app.pool.version == 1

    run(tmp_path, test)


def test_unknown_fields_of_queries_are_refused(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        answer = await client("GET", "/v1/bookings?ownr=ann", None, "rob")
        assert answer.status == 400
        assert "did you mean 'owner'" in answer.json["detail"]
        assert (await client("GET", "/v1?owner=ann", None, "rob")).status == 400
        for since in ("", "-1", "x", "\u0663", "9" * 30):
            answer = await client("GET", f"/v1/calls?since={since}", None, "root")
            assert answer.status == 400, since
            assert "since must be a version" in answer.json["detail"]
        answer = await client("GET", "/v1/openapi.json", None, "rob")
        (described,) = answer.json["paths"]["/v1/bookings"]["get"]["parameters"]
        assert (described["name"], described["in"]) == ("owner", "query")

    run(tmp_path, test)


def test_a_repeated_booking_gets_its_first_answer(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        body = {"request": JOB, "token": "t", "name": "ocean"}
        first = await client("POST", "/v1/bookings", body, "ann")
        again = await client("POST", "/v1/bookings", body, "ann")
        assert (first.status, again.status) == (201, 200)
        assert again.json == first.json | {"repeated": True}
        other = await client("POST", "/v1/bookings", body, "bea")  # another token
        assert other.json["id"] != first.json["id"]
        changed = body | {"criterion": "cost"}
        assert (await client("POST", "/v1/bookings", changed, "ann")).status == 422
        path = "/v1/bookings?owner=ann"
        (listed,) = (await client("GET", path, None, "rob")).json["bookings"]
        assert listed == first.json

    run(tmp_path, test)


def test_a_token_keeps_its_answer_when_quotas_come_and_go(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        body, path = {"request": JOB, "token": "t"}, "/v1/bookings"
        first = await client("POST", path, body, "ann")
        with sk.SlotPool.open(tmp_path / "site.db", user="zoe") as other:
            other.quota("nodes", 2)
        again = await client("POST", path, body, "ann")
        assert (again.status, again.json["id"]) == (200, first.json["id"])
        counted = await client("POST", path, body | {"token": "u"}, "ann")
        assert counted.json["window"]["account"] == "ann"
        assert (await client("POST", path, body | {"token": "u"}, "ann")).status == 200
        changed = body | {"criterion": "cost"}
        assert (await client("POST", path, changed, "ann")).status == 422

    run(tmp_path, test)


def test_concurrent_bookings_are_all_stored(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        jobs = [
            client(
                *("POST", "/v1/bookings"),
                *({"request": {"nodes": 1, "volume": 1 + i % 3}}, user),
            )
            for i in range(20)
            for user in ("ann", "bea", "rob", "root")
        ]
        statuses = [answer.status for answer in await asyncio.gather(*jobs)]
        assert statuses == [201, 201, 403, 201] * 20
        assert (report := client.app.pool.check()), report
        assert report.bookings == 60

    run(tmp_path, test)


def test_events_are_the_entries_of_all_processes(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        await client("POST", "/v1/bookings", {"request": JOB}, "ann")
        with sk.SlotPool.open(tmp_path / "site.db", user="zoe") as other:
            other.place(sk.Request(2, 4, name="ice"))
        stream = client.app._stream(0, [])
        found = [await anext(stream) for _ in range(2)]
        await stream.aclose()
        ids, kinds, data = zip(
            *(event.splitlines()[:3] for event in found), strict=True
        )
        assert ids == ("id: 1", "id: 2")
        assert set(kinds) == {"event: entry"}
        entries = [json.loads(line.removeprefix("data: ")) for line in data]
        assert [entry["owner"] for entry in entries] == ["ann", "zoe"]
        answer = await client("GET", "/v1/events", None, "rob", last_event_id="x")
        assert answer.status == 400

    run(tmp_path, test)


def test_the_document_has_all_operations_and_their_fields(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        found = (await client("GET", "/v1/openapi.json", None, "rob")).json
        for operation in OPERATIONS:
            described = found["paths"][operation.path][operation.method.lower()]
            if operation.fields:
                content = described["requestBody"]["content"]["application/json"]
                assert set(content["schema"]["properties"]) == set(operation.fields)
            types = described.get("requestBody", {}).get("content", {})
            assert (ARROW in types) == operation.takes_table
            if operation.takes_table:
                named = {each["name"] for each in described["parameters"]}
                assert named == set(operation.fields) - {"jobs"}
        booking = found["paths"]["/v1/bookings"]["post"]["responses"]
        assert booking.keys() == {"200", "201", "default"}
        assert found["paths"]["/healthz"]["get"]["security"] == []

    run(tmp_path, test)
