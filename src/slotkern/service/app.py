"""The ASGI application of a service: authentication, routes, events and the page."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import slotkern as sk
from slotkern.files.arrow import pyarrow
from slotkern.foundation.checks import quote
from slotkern.foundation.extras import extra
from slotkern.ledger.codec import entry_record
from slotkern.search.records import object_text
from slotkern.service.access import Access
from slotkern.service.backend import Backend, ServiceLimits
from slotkern.service.exchange import Exchange
from slotkern.service.inputs import (
    checker,
    fields_of_query,
    integer_of,
    object_schema,
    parse,
    refuse_unknown,
    version_of,
)
from slotkern.service.openapi import document
from slotkern.service.operations import OPERATIONS, Operation
from slotkern.service.problems import Problem, problem_of
from slotkern.service.replies import HEADERS, Reply, respond_problem
from slotkern.service.tables import ARROW, read_job_table
from slotkern.service.users import User
from slotkern.service.writer import Overloaded

with extra():
    from starlette.applications import Starlette
    from starlette.datastructures import QueryParams
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send

__all__ = ["Service"]

#: Seconds between two comments of a quiet stream, so that proxies keep it open, and
#: between two pages that a browser loads.
_KEEP_ALIVE, _REFRESH = 15.0, 2.0
_ARROW = ARROW.encode()

Endpoint = Callable[[Request], Awaitable[Any]]
Run = Callable[[Scope, Receive], Awaitable[Reply]]


class Service(Backend):
    """The ASGI application of an open ledger, which its owner closes.

    Parameters
    ----------
    pool : SharedPool
    users : mapping of str to User
        By the digests of their tokens; see `read_users`.
    limits : ServiceLimits
    """

    def __init__(
        self, pool: sk.SharedPool, users: Mapping[str, User], limits: ServiceLimits
    ) -> None:
        super().__init__(pool, limits)
        self._access = Access(users, limits.rate)
        self._streams: set[object] = set()
        self._ending = False
        self._page = (-1, b"")  # the version of a page, and the page
        self._page_lock = asyncio.Lock()
        runs = [(each, self._endpoint(each)) for each in OPERATIONS]
        # Paths without an id need neither a search among the routes nor a middleware.
        self._direct = {
            (each.method, each.path): run for each, run in runs if "{" not in each.path
        }
        routes = [_route(each, run) for each, run in runs]
        routes += [
            Route(path, self._guarded(function, "read" if path != "/healthz" else None))
            for path, function in {
                "/healthz": self._health,
                "/v1/events": self._events,
                "/v1/page": self._show_page,
                "/v1/openapi.json": self._document,
            }.items()
        ]
        self._app = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _http_problem},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; all but the health check need a token."""
        if scope["type"] == "http" and scope["path"] != "/healthz":
            given = [v for name, v in scope["headers"] if name == b"authorization"]
            try:
                scope["user"] = self._access.admit(scope["method"], given)
            except Problem as problem:
                await respond_problem(problem)(scope, receive, send)
                return
            run = self._direct.get((scope["method"], scope["path"]))
            if run is not None and not scope.get("root_path"):
                await (await run(scope, receive))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        async with self.running():
            yield

    # --- endpoints

    def _guarded(self, function: Endpoint, role: str | None) -> Endpoint:
        """Return an endpoint that checks the role and answers errors."""

        async def endpoint(request: Request) -> Any:
            try:
                if role is not None:
                    _require_role(request.user, role)
                response = await function(request)
            except Exception as error:
                return _refuse(error, request.scope)
            response.raw_headers += HEADERS
            return response

        return endpoint

    def _endpoint(self, operation: Operation) -> Run:
        """Return the function that answers the requests for an operation."""
        check_body = checker(
            "body", object_schema(operation.fields, operation.required)
        )

        async def run(scope: Scope, receive: Receive) -> Reply:
            call: Exchange | None = None
            try:
                user = scope["user"]
                _require_role(user, operation.role)
                headers = dict([*scope["headers"]][::-1])  # the first of each name
                body, table = {}, None
                query = _query_of(scope["query_string"])
                if operation.fields:
                    kind = _kind_of(headers, operation)
                    data = await self._body(receive)
                    if kind == ARROW:
                        body = fields_of_query(query, operation.table_query)
                        most, query = self.limits.jobs, {}
                        table = await asyncio.to_thread(read_job_table, data, most)
                    else:
                        body = parse(data)
                        check_body(body)
                word = scope.get("path_params", {}).get("id")
                number = 0 if word is None else integer_of(word)
                if number is None:
                    raise Problem(404, f"no such booking: {word}")
                refuse_unknown("the query", query, operation.query)
                call = Exchange(self, user, body, number, query, table)
                if _ARROW in headers.get(b"accept", b""):
                    return await _arrow(operation, call)
                text = object_text(await operation.run(call)).text
                return Reply(call.status, text.encode(), b"application/json")
            except Exception as error:
                return _refuse(error, scope, call is not None and call.stored)

        return run

    async def _body(self, receive: Receive) -> bytes:
        most, data = self.limits.body, bytearray()
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:  # at the end of the grace
                raise Overloaded("the service ends before the body") from None
            if message["type"] == "http.disconnect":
                raise Problem(400, "the client has gone before its body ended")
            data += message.get("body", b"")
            if len(data) > most:
                raise Problem(413, f"the body has more than {most} bytes")
            if not message.get("more_body", False):
                return bytes(data)

    async def _health(self, _request: Request) -> Response:
        fault = self._writer.fault
        status = "ok" if fault is None else "the ledger cannot be read"
        return JSONResponse({"status": status}, 200 if fault is None else 503)

    async def _document(self, _request: Request) -> Response:
        return JSONResponse(document())

    async def _events(self, request: Request) -> Response:
        """Stream the entries after Last-Event-ID, or ?since=, or as they come."""
        given = request.headers.get("last-event-id", request.query_params.get("since"))
        last = self.pool.version if given is None else version_of(given)
        with ExitStack() as stack:
            self._count_stream(stack)
            try:
                first = await asyncio.to_thread(self.pool.entries_after, last)
            except LookupError as error:
                raise Problem(410, str(error)) from None
            return _EventStream(self._stream(last, first), stack.pop_all())

    def _count_stream(self, stack: ExitStack) -> None:
        """Count a stream until `stack` is closed; `Overloaded` if too many are open."""
        if len(self._streams) >= self.limits.streams:
            raise Overloaded("too many streams of events are open")
        stream = object()
        self._streams.add(stream)
        stack.callback(self._streams.remove, stream)

    async def _stream(self, last: int, entries: list[Any]) -> AsyncGenerator[str, None]:
        while not self._ending:
            for entry in entries:
                data = json.dumps(entry_record(entry))
                yield f"id: {entry.version}\nevent: entry\ndata: {data}\n\n"
                last = entry.version
            changed = self._writer.changed
            entries = await asyncio.to_thread(self.pool.entries_after, last)
            if not entries and not self._ending:
                try:
                    await asyncio.wait_for(changed.wait(), _KEEP_ALIVE)
                except TimeoutError:
                    yield ": \n\n"

    def end_streams(self) -> None:
        """End the streams of events, which would keep the server from its end."""
        self._ending = True
        self._writer.changed.set()

    async def _show_page(self, _request: Request) -> Response:
        """Return the page of the newest version, made once for all readers."""
        async with self._page_lock:
            version, pool = self.pool.version, self.pool
            if self._page[0] != version:
                title = f"version {version}"
                made = await self.search(
                    lambda: sk.view(pool, title=title).encoded(_REFRESH)
                )
                self._page = version, made
            page = self._page[1]
        return Response(page, media_type="text/html")


def _require_role(user: User, role: str) -> None:
    if not user.has_role(role):
        raise Problem(403, f"this needs the role {role}, not {user.role}")


def _refuse(error: Exception, scope: Scope, stored: bool = False) -> Reply:
    what = f"{scope['method']} {scope['path']}"
    return respond_problem(problem_of(error, what, stored))


def _query_of(query: bytes) -> dict[str, str]:
    """Return the fields of a query; ValueError if one occurs twice."""
    found: dict[str, str] = {}
    if not query:
        return found
    for name, text in QueryParams(query).multi_items():
        if name in found:
            raise ValueError(f"the query has the field {quote(name)} twice")
        found[name] = text
    return found


def _kind_of(headers: Mapping[bytes, bytes], operation: Operation) -> str:
    """Return the type of a body; 415 for one that the operation does not take."""
    given = headers.get(b"content-type", b"")
    if given == b"application/json":
        return "application/json"
    kind = given.decode("latin-1").partition(";")[0].strip().lower()
    allowed = ["application/json"] + [ARROW] * operation.takes_table
    if kind not in allowed:
        raise Problem(415, f"the body must be {' or '.join(allowed)}, got {kind!r}")
    return kind


async def _arrow(operation: Operation, call: Exchange) -> Reply:
    """Return the table of an operation as a stream of Arrow."""
    if operation.table is None:
        raise Problem(406, f"{operation.path} has no table, only application/json")
    table, sink = await operation.table(call), io.BytesIO()
    with pyarrow("ipc").new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Reply(200, sink.getvalue(), _ARROW)


class _EventStream(StreamingResponse):
    """A stream of events that closes `stack` at its end, also if it never began."""

    def __init__(self, content: AsyncGenerator[str, None], stack: ExitStack) -> None:
        super().__init__(content, media_type="text/event-stream")
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack, suppress(asyncio.CancelledError):  # at the end of the grace
            await super().__call__(scope, receive, send)


def _route(operation: Operation, run: Run) -> Route:
    async def endpoint(request: Request) -> Any:
        return await run(request.scope, request.receive)

    return Route(operation.path, endpoint, methods=[operation.method])


async def _http_problem(_request: Request, error: Exception) -> Any:
    """Return the response to an unknown path or method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return respond_problem(Problem(error.status_code, error.detail, headers))
