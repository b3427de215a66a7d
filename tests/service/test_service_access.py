"""Tests of the service: who may do what."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from service import JOB, ROLES, Client, run, stream_of

from slotkern.service.app import Service
from slotkern.service.users import ROLES as ORDER

TABLE = stream_of({"nodes": [2], "volume": [4]})
CHARGED = stream_of({"nodes": [2], "volume": [4], "account": ["zoe"]})

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
    ("POST", "/v1/find/many?criterion=cost", TABLE, "read", 200),
    ("POST", "/v1/schedule", TABLE, "book", 200),
    ("POST", "/v1/schedule?owner=zoe", TABLE, "administer", 200),
    ("POST", "/v1/schedule", CHARGED, "administer", 200),
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


def test_a_second_authorization_header_is_refused(tmp_path: Path) -> None:
    async def test(client: Client) -> None:
        for first, second in (("rob", "ann"), ("ann", "ann"), ("ann", "")):
            token = client.tokens.get(second, "wrong")
            more = (b"authorization", f"Bearer {token}".encode())
            app: Any = client.app

            async def doubled(
                scope: Any, *how: Any, app: Any = app, more: Any = more
            ) -> None:
                await app(scope | {"headers": [*scope["headers"], more]}, *how)

            twice: Any = doubled
            answer = await Client(twice, client.tokens)("GET", "/v1", None, first)
            assert answer.status == 401
            assert "2 Authorization headers" in answer.json["detail"]

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
