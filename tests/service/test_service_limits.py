"""Tests of the service: invalid requests, limits, and arbitrary requests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service import JOB, Client, run

import slotkern as sk
from fuzz import fuzz
from slotkern.search.records import strict_text
from slotkern.service.problems import Problem
from slotkern.service.replies import respond_problem


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


def nested(around: bytes, depth: int) -> bytes:
    """Return a body with a value of many levels."""
    head, tail = around.split(b"%b")
    return b'{"request":' + head * depth + b'"\\u0041"' + tail * depth + b"}"


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
        ({"request": JOB, "criterion": "a\\\0"}, 400, "NUL"),
        ({"request": JOB, "criterion": "nope"}, 400, "nope"),
        *((nested(b"[%b]", depth), 400, "nested") for depth in (60, 500, 978, 990)),
        *((nested(b'{"a":%b}', depth), 400, "nested") for depth in (60, 500, 978)),
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


def test_a_backslash_before_u0000_is_no_nul(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for name in ("a\\u0000", "a\\\\u0000"):
            body = {"request": JOB, "name": name}
            answer = await client("POST", "/v1/bookings", body, "ann")
            assert (answer.status, answer.json["name"]) == (201, name)

    run(tmp_path, test)


def test_a_refusal_with_half_of_a_character_is_sent() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(respond_problem(Problem(400, "a\ud800\u00e9"))({}, None, send))
    assert json.loads(sent[1]["body"])["detail"] == "a\ud800\u00e9"
    assert "\u00e9".encode() in sent[1]["body"]


def test_a_request_is_refused_if_the_service_ends_before_its_body(
    tmp_path: Path,
) -> None:
    async def test(client: Client) -> None:
        app: Any = client.app

        async def half(scope: Any, _receive: Any, send: Any) -> None:
            pieces = [{"type": "http.request", "body": b"{", "more_body": True}]

            async def receive() -> Any:
                return pieces.pop() if pieces else await asyncio.sleep(60)

            await app(scope, receive, send)

        slow: Any = half
        asked = Client(slow, client.tokens)("POST", "/v1/find", {}, "rob")
        task = asyncio.create_task(asked)
        await asyncio.sleep(0.1)
        task.cancel()
        answer = await task
        assert answer.status == 503
        assert answer.json["detail"] == "the service ends before the body"

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


def test_arbitrary_requests_are_answered(tmp_path: Path) -> None:
    statuses = asyncio.run(fuzz(tmp_path, 300))
    assert {200, 400, 403} <= statuses.keys()
