"""Tests of the service: who may do what, results, limits, and arbitrary requests."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from service import JOB, ROLES, SLOTS, Client, running

import slotkern as sk
from fuzz import fuzz
from slotkern.search.records import request_record, strict_text, window_record
from slotkern.service.app import Service
from slotkern.service.operations import OPERATIONS
from slotkern.service.users import ROLES as ORDER


def run(
    folder: Path,
    test: Callable[[Client], Awaitable[Any]],
    slots: Any = SLOTS,
    **limits: Any,
) -> Any:
    """Run a test with the client of a new service."""

    async def main() -> Any:
        async with running(folder, slots, **limits) as client:
            return await test(client)

    return asyncio.run(main())


# --- authorization

#: Method, path, body, the least role, and the status of a success; the bookings of
#: ann and root have the ids 1 and 2.
MATRIX = [
    ("GET", "/v1", None, "read", 200),
    ("GET", "/v1/openapi.json", None, "read", 200),
    ("GET", "/v1/page", None, "read", 200),
    ("GET", "/v1/bookings", None, "read", 200),
    ("POST", "/v1/find", {"request": JOB}, "read", 200),
    ("POST", "/v1/front", {"request": JOB}, "read", 200),
    ("POST", "/v1/alternatives", {"request": JOB, "most": 2}, "read", 200),
    ("POST", "/v1/explain", {"request": JOB}, "read", 200),
    ("POST", "/v1/forecast", {"request": JOB, "queue": []}, "read", 200),
    ("POST", "/v1/find/many", {"jobs": [JOB]}, "read", 200),
    ("POST", "/v1/schedule", {"jobs": [JOB]}, "book", 200),
    ("POST", "/v1/schedule", {"jobs": [JOB], "owner": "zoe"}, "administer", 200),
    (
        *("POST", "/v1/schedule", {"jobs": [JOB, JOB | {"account": "zoe"}]}),
        *("administer", 200),
    ),
    ("POST", "/v1/bookings", {"request": JOB}, "book", 201),
    ("POST", "/v1/bookings", {"request": JOB, "owner": "zoe"}, "administer", 201),
    (
        *("POST", "/v1/bookings", {"request": JOB | {"account": "zoe"}}),
        *("administer", 201),
    ),
    ("POST", "/v1/bookings/2/confirm", None, "administer", 200),
    ("DELETE", "/v1/bookings/2", None, "administer", 200),
    ("GET", "/v1/calls", None, "administer", 200),
    ("POST", "/v1/advance", {"now": 1}, "administer", 200),
    ("POST", "/v1/disable", {"nodes": [0]}, "administer", 200),
    ("POST", "/v1/enable", {"nodes": [0]}, "administer", 200),
]


def test_each_role_may_do_what_the_table_says(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for user in ("ann", "root"):
            await client("POST", "/v1/bookings", {"request": JOB}, user)
        for method, path, body, least, status in MATRIX:
            assert (await client(method, path, body)).status == 401, path
            wrong = {"authorization": "Bearer wrong"}
            assert (await client(method, path, body, **wrong)).status == 401, path
            for user, role in ROLES.items():
                answer = await client(method, path, body, user)
                allowed = ORDER.index(role) >= ORDER.index(least)
                assert answer.status == (status if allowed else 403), (path, user)

        listed = {row[:2] for row in MATRIX}
        missing = {each for each in routes(client.app) if each not in listed}
        assert missing == {("GET", "/healthz"), ("GET", "/v1/events")}
        jobs = [
            asyncio.create_task(client("GET", "/v1/events", None, user))
            for user in ROLES
        ]
        await asyncio.sleep(0.1)
        client.app.end_streams()
        assert [each.status for each in await asyncio.gather(*jobs)] == [200] * 4

    run(tmp_path, test)


def routes(app: Service) -> list[tuple[str, str]]:
    """Return the methods and paths of an application; those of ids have the id 2."""
    return [
        (method, route.path.replace("{id}", "2"))
        for route in app._app.routes
        for method in route.methods - {"HEAD"}
    ]


def test_only_the_health_check_needs_no_token(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        assert (await client("GET", "/healthz")).json == {"status": "ok"}
        paths = {path for _, path in routes(client.app)} - {"/healthz"}
        assert len(paths) > 10
        for path in (*paths, "/", "/docs", "/healthz/", "/v2"):
            for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
                answer = await client(method, path)
                assert answer.status == 401, path
                assert "www-authenticate" in answer.headers

    run(tmp_path, test)


def test_a_user_changes_only_the_own_bookings(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        held = {"request": JOB, "hold": "1h"}
        number = (await client("POST", "/v1/bookings", held, "ann")).json["id"]
        path = f"/v1/bookings/{number}"
        assert (await client("DELETE", path, None, "bea")).status == 403
        assert (await client("POST", f"{path}/confirm", None, "bea")).status == 403
        assert (await client("POST", f"{path}/confirm", None, "ann")).status == 200
        assert (await client("DELETE", path, None, "ann")).json == {"released": number}
        assert (await client("DELETE", path, None, "ann")).status == 404
        assert (await client("POST", f"{path}/confirm", None, "ann")).status == 410
        calls = (await client("GET", "/v1/calls", None, "root")).json["calls"]
        assert [call["user"] for call in calls] == ["ann", "ann", "ann"]

    run(tmp_path, test)


def test_browsers_may_read_with_the_basic_scheme(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        def basic(name: str) -> dict[str, str]:
            pair = f"{name}:{client.tokens['ann']}".encode()
            return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}

        page = await client("GET", "/v1/page", **basic("ann"))
        assert page.status == 200
        assert b'http-equiv="refresh"' in page.body
        assert (await client("GET", "/v1/page", **basic("bea"))).status == 401
        body = {"request": JOB}
        answer = await client("POST", "/v1/bookings", body, **basic("ann"))
        assert answer.status == 401
        broken = {"authorization": "Basic \u00e9"}
        assert (await client("GET", "/v1", **broken)).status == 401

    run(tmp_path, test)


# --- results


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


ARROW = "application/vnd.apache.arrow.stream"


def test_a_schedule_is_one_call_with_one_token(tmp_path: Path) -> None:
    jobs = [JOB | {"name": "a"}, {"nodes": 9, "volume": 1}, {"nodes": 8, "volume": 2}]
    body = {"jobs": jobs, "criterion": "start", "token": "night"}

    async def test(client: Client) -> None:
        pool = client.app.pool
        plain = pool.copy()
        expected = plain.schedule(
            [sk.Request(2, 4, name="a"), sk.Request(9, 1), sk.Request(8, 2)]
        )
        found = (await client("POST", "/v1/schedule", body, "ann")).json
        assert [job["reason"] for job in found["jobs"]] == expected.reasons
        assert [job["id"] for job in found["jobs"]] == [1, None, 2]
        assert (found["booked"], pool.version) == (2, 2)
        for job, window in zip(found["jobs"], expected, strict=True):
            if window is not None:
                assert job["window"]["start"] == window.start
        again = (await client("POST", "/v1/schedule", body, "ann")).json
        assert again["jobs"] == found["jobs"]
        other = await client("POST", "/v1/schedule", body | {"jobs": [JOB]}, "ann")
        assert other.status == 422
        pool.quota("nodes", 99, each=True)  # accounts count from now on
        assert (await client("POST", "/v1/schedule", body, "ann")).json[
            "jobs"
        ] == found["jobs"]
        table = await client("POST", "/v1/schedule", body, "ann", accept=ARROW)
        rows = pa.ipc.open_stream(table.body).read_all()
        assert rows["id"].to_pylist() == [1, None, 2]
        assert rows["reason"].to_pylist() == expected.reasons
        assert pool.version == 3
        listed = (await client("GET", "/v1/bookings", None, "rob")).json["bookings"]
        assert [each["id"] for each in listed] == [1, 2]
        assert pool.check()

    run(tmp_path, test)


def test_a_repeated_schedule_has_its_own_ids(tmp_path: Path) -> None:
    """Released windows that somebody else has booked since keep their old ids."""
    body = {"jobs": [JOB], "criterion": "start", "token": "night"}

    async def test(client: Client) -> None:
        pool = client.app.pool
        first = (await client("POST", "/v1/schedule", body, "ann")).json["jobs"]
        window = pool.open_bookings()[0].window
        pool.release(1)
        other = pool.book(window, "zoe")
        again = (await client("POST", "/v1/schedule", body, "ann")).json["jobs"]
        assert again == first
        assert again[0]["id"] == 1 != other.id

    run(tmp_path, test)


def test_jobs_that_may_take_long_are_not_scheduled(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for more in ({"limits": ["sum(price) <= 3"]}, {"within": "price"}):
            body = {"jobs": [JOB, JOB | more]}
            answer = await client("POST", "/v1/schedule", body, "ann")
            assert answer.status == 400
            assert "jobs[1] has limits" in answer.json["detail"]
        for path in ("/v1/schedule", "/v1/find/many"):
            answer = await client("POST", path, {"jobs": [JOB] * 4}, "ann")
            assert (answer.status, "at most 3" in answer.json["detail"]) == (413, True)
            answer = await client("POST", path, {"jobs": [JOB, {"nodes": 0}]}, "ann")
            assert answer.status == 400
            assert "jobs[1]" in answer.json["detail"]
            empty = await client("POST", path, {"jobs": []}, "ann", accept=ARROW)
            assert empty.status == 200, empty
        assert client.app.pool.version == 0

    run(tmp_path, test, jobs=3)


def test_windows_of_several_jobs_and_fronts_are_tables_of_arrow(tmp_path: Path) -> None:
    hard = JOB | {"limits": ["sum(price) <= 1"]}
    body = {"jobs": [JOB, {"nodes": 9, "volume": 1}, hard, JOB], "criterion": "start"}

    async def test(client: Client) -> None:
        pool = client.app.pool
        found = (await client("POST", "/v1/find/many", body, "rob")).json["windows"]
        reasons = [each["reason"] for each in found]
        assert reasons == ["found", "none", "none", "found"]
        expected = window_record(
            pool, pool.origin, pool.find(sk.Request(2, 4), "start")
        )
        assert (
            found[0]["window"] == json.loads(json.dumps(expected)) == found[3]["window"]
        )
        answer = await client("POST", "/v1/find/many", body, "rob", accept=ARROW)
        table = pa.ipc.open_stream(answer.body).read_all()
        assert table["job"].to_pylist() == [0, 0, 3, 3]
        assert table["node"].to_pylist() == [0, 1, 0, 1]
        assert table.schema.metadata == {b"version": b"0"}
        one = {"request": JOB}
        answer = await client("POST", "/v1/front", one, "rob", accept=ARROW)
        table = pa.ipc.open_stream(answer.body).read_all()
        front = (await client("POST", "/v1/front", one, "rob")).json["windows"]
        parts = [part["node"] for window in front for part in window["slots"]]
        assert table["node"].to_pylist() == parts
        assert pool.version == 0

    run(tmp_path, test)


def test_bookings_are_a_table_of_arrow(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        kind = "application/vnd.apache.arrow.stream"
        for hold in (None, "1h"):
            body = {"request": JOB, "name": "ice", "hold": hold}
            assert (await client("POST", "/v1/bookings", body, "ann")).status == 201
        listed = (await client("GET", "/v1/bookings", None, "rob")).json["bookings"]
        answer = await client("GET", "/v1/bookings", None, "rob", accept=kind)
        assert answer.headers["content-type"] == kind
        table = pa.ipc.open_stream(answer.body).read_all()
        assert table.schema.metadata == {b"version": b"2"}
        rows = table.to_pylist()
        assert [row["id"] for row in rows] == [1, 1, 2, 2]
        assert {(row["owner"], row["job"]) for row in rows} == {("ann", "ice")}
        assert [row["expires"] is None for row in rows] == [True, True, False, False]
        parts = [part for each in listed for part in each["window"]["slots"]]
        for name in ("node", "start", "end", "cost"):
            assert [row[name] for row in rows] == [part[name] for part in parts]
        empty = "/v1/bookings?owner=zoe"
        answer = await client("GET", empty, None, "rob", accept=kind)
        assert pa.ipc.open_stream(answer.body).read_all().num_rows == 0
        answer = await client("GET", "/v1", None, "rob", accept=kind)
        assert answer.status == 406

    run(tmp_path, test)


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
        booking = found["paths"]["/v1/bookings"]["post"]["responses"]
        assert booking.keys() == {"200", "201", "default"}
        assert found["paths"]["/healthz"]["get"]["security"] == []

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True, "\u00e9"]}, '{"a":[1,2.5,null,true,"\u00e9"]}'),
        ([1.0, np.inf, -np.inf, np.nan], "[1.0,null,null,null]"),
        ({"a": np.arange(2), "b": np.float64(0.5)}, '{"a":[0,1],"b":0.5}'),
    ],
)
def test_results_are_strict_json(value: Any, text: str) -> None:
    assert strict_text(value) == text


# --- limits and invalid requests


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "Expecting"),
        (b"[" * 100_000, 413, "more than 65536 bytes"),
        (b"[" * 60_000, 400, "nested"),
        (b"\xff", 400, "UTF-8"),
        (b'{"request": {"nodes": NaN}}', 400, "NaN is not JSON"),
        ([], 400, "body must be object"),
        ({}, 400, "body needs the field request"),
        ({"request": {}}, 400, "body.request needs the field nodes"),
        ({"request": JOB, "shap": 1}, 400, "did you mean 'shape'"),
        ({"request": JOB | {"volum": 1}}, 400, "did you mean 'volume'"),
        ({"request": JOB | {"nodes": True}}, 400, "must be integer, got True"),
        ({"request": JOB | {"nodes": 0}}, 400, "nodes must be at least 1"),
        ({"request": JOB | {"nodes": 10**30}}, 400, "nodes"),
        ({"request": JOB | {"volume": -1}}, 400, "volume"),
        ({"request": JOB | {"where": "pirce < 1"}}, 400, "pirce"),
        ({"request": JOB | {"share": {"cores": 2}}}, 400, "share"),
        ({"request": JOB, "shape": "round"}, 400, "square, ragged; got 'round'"),
        ({"request": JOB, "criterion": "\ud800"}, 400, "half of a character"),
        ({"request": JOB, "criterion": "a\0"}, 400, "NUL"),
        ({"request": JOB, "criterion": "nope"}, 400, "nope"),
    ],
)
def test_invalid_bodies_are_refused(
    tmp_path: Path, body: Any, status: int, words: str
) -> None:
    async def test(client: Client) -> None:
        answer = await client("POST", "/v1/find", body, "rob")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.status == answer.json["status"] == status, answer
        assert words in answer.json["detail"]

    run(tmp_path, test)


def test_other_types_of_body_are_refused(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        body = {"request": JOB}
        answer = await client(
            "POST", "/v1/find", body, "rob", content_type="text/plain"
        )
        assert answer.status == 415

    run(tmp_path, test)


def test_the_rate_of_each_user_is_limited(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        statuses = [(await client("GET", "/v1", None, "rob")).status for _ in range(5)]
        assert statuses == [200, 200, 429, 429, 429]
        assert (await client("GET", "/v1", None, "ann")).status == 200

    run(tmp_path, test, rate=2)


def test_the_work_of_a_search_is_limited(tmp_path: Path) -> None:
    body = {"request": {"nodes": 9, "volume": 4, "budget": 200}, "criterion": "gain"}

    async def test(client: Client) -> None:
        for path in ("/v1/find", "/v1/bookings"):
            for more in ({}, {"max_work": 10**9}):
                answer = await client("POST", path, body | more, "ann")
                assert answer.json["window"]["proven"] is False

    rng = np.random.default_rng(1)
    values = {name: rng.integers(1, 99, 30) / 7 for name in ("price", "gain")}
    slots = sk.make_slots(node=range(30), start=0, end=24, performance=1, **values)
    run(tmp_path, test, slots, work=1)


def test_the_work_of_an_explanation_is_limited(tmp_path: Path) -> None:
    """Without a limit, the searches of this explanation would take minutes."""
    limits = ["sum(gb) >= 2.5000001", "sum(gb) <= 2.50000010001"]
    body = {"request": {"nodes": 11, "volume": 10, "deadline": 30, "limits": limits}}

    async def test(client: Client) -> None:
        for more in ({}, {"max_work": 10**9}, {"max_work": 10}):
            answer = await client("POST", "/v1/explain", body | more, "rob")
            why = answer.json["explanation"]
            assert (why["undecided"], why["complete"]) == (True, False)
            assert why["text"].startswith("It is not decided")

    slots = sk.make_slots(
        node=range(70),
        start=0,
        end=np.where(np.arange(70) < 40, 12, 24),
        performance=1,
        price=1,
        gb=np.random.default_rng(1).random(70),
    )
    run(tmp_path, test, slots, work=5_000)


def test_waiting_changes_are_limited(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        body = {"request": {"nodes": 1, "volume": 1}}
        with sk.SlotPool.open(tmp_path / "site.db").turn():  # the service waits
            jobs = [
                asyncio.create_task(client("POST", "/v1/bookings", body, "ann"))
                for _ in range(20)
            ]
            await asyncio.sleep(0.2)
        statuses = [answer.status for answer in await asyncio.gather(*jobs)]
        assert set(statuses) == {201, 503}

    run(tmp_path, test, waiting=3)


def test_a_burst_opens_no_more_streams_than_are_allowed(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for _ in range(2):  # streams that have ended are not counted
            jobs = {
                asyncio.create_task(client("GET", "/v1/events", None, "rob"))
                for _ in range(9)
            }
            refused: set[Any] = set()
            while len(refused) < 7:
                more, jobs = await asyncio.wait(
                    jobs, return_when=asyncio.FIRST_COMPLETED
                )
                refused |= more
            assert {each.result().status for each in refused} == {503}
            client.app.end_streams()
            assert [answer.status for answer in await asyncio.gather(*jobs)] == [
                200
            ] * 2
            client.app._ending = False

    run(tmp_path, test, streams=2)


def test_a_long_list_of_calls_comes_in_parts(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for _ in range(3):
            await client("POST", "/v1/bookings", {"request": JOB}, "ann")
        first = (await client("GET", "/v1/calls", None, "root")).json
        since = first["calls"][-1]["last"]
        rest = (await client("GET", f"/v1/calls?since={since}", None, "root")).json
        assert (first["complete"], rest["complete"]) == (False, True)
        calls = first["calls"] + rest["calls"]
        assert [call["last"] for call in calls] == [1, 2, 3]

    run(tmp_path, test, calls=2)


# --- arbitrary requests


def test_arbitrary_requests_are_answered(tmp_path: Path) -> None:
    statuses = asyncio.run(fuzz(tmp_path, 300))
    assert {200, 400, 403} <= statuses.keys()
