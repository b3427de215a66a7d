"""A service in the process of the test, and a client of its ASGI application."""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import slotkern as sk
from slotkern.service.app import Service
from slotkern.service.backend import ServiceLimits
from slotkern.service.tables import ARROW
from slotkern.service.users import add_user, read_users

_CONTINUATION = b"\xff" * 4  # the first bytes of a stream of Arrow
ROLES = {"rob": "read", "ann": "book", "bea": "book", "root": "administer"}
JOB = {"nodes": 2, "volume": 4}
SLOTS = sk.make_slots(node=range(8), start=0, end=24, performance=1, price=1)


class Answer(NamedTuple):
    """A response; `json` is None for other types."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The object of the body."""
        assert "json" in self.headers["content-type"], self
        return json.loads(self.body)


class Client:
    """Sends requests to a service without a network."""

    def __init__(self, app: Service, tokens: dict[str, str]) -> None:
        self.app, self.tokens = app, tokens

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        user: str | None = None,
        **headers: str,
    ) -> Answer:
        """Send a request; a body of bytes as it is, any other as JSON.

        Bytes that begin as a stream of Arrow get its type.
        """
        kind = "application/json"
        if isinstance(body, bytes) and body[:4] == _CONTINUATION:
            kind = ARROW
        given = {"content-type": kind}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        if user is not None:
            given["authorization"] = f"Bearer {self.tokens[user]}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        pieces = [{"type": "http.request", "body": b"" if body is None else data}]
        sent: list[Any] = []

        async def receive() -> Any:
            return pieces.pop() if pieces else await asyncio.sleep(60)

        async def send(message: Any) -> None:
            sent.append(message)

        target, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": target,
            "raw_path": target.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self.app(scope, receive, send)
        raw = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], raw, body)


def stream_of(table: Any, **options: Any) -> bytes:
    """Return a table, or its columns, as a stream of Arrow."""
    table, sink = pa.table(table), io.BytesIO()
    how = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(sink, table.schema, options=how) as stream:
        stream.write_table(table)
    return sink.getvalue()


def make_ledger(folder: Path, slots: Any = SLOTS) -> sk.SharedPool:
    """Share slots or a pool; by default 8 equal nodes that are free for 24 hours."""
    pool = slots if isinstance(slots, sk.SlotPool) else sk.SlotPool(slots)
    return pool.share(folder / "site.db")


def make_users(folder: Path) -> tuple[Path, dict[str, str]]:
    """Write the file of users; return it and their tokens."""
    path = folder / "users.toml"
    return path, {name: add_user(path, name, role) for name, role in ROLES.items()}


@asynccontextmanager
async def running(
    folder: Path, slots: Any = SLOTS, **limits: Any
) -> AsyncIterator[Client]:
    """Run a service of `make_ledger` in the loop of the test."""
    path, tokens = make_users(folder)
    with make_ledger(folder, slots) as pool:
        app = Service(pool, read_users(path), ServiceLimits(**limits))
        done = asyncio.Event()
        states: asyncio.Queue[Any] = asyncio.Queue()
        states.put_nowait({"type": "lifespan.startup"})
        started = asyncio.Event()

        async def send(message: Any) -> None:
            assert not message["type"].endswith("failed"), message
            (started if "startup" in message["type"] else done).set()

        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        task = asyncio.create_task(app(scope, states.get, send))
        await started.wait()
        try:
            yield Client(app, tokens)
        finally:
            states.put_nowait({"type": "lifespan.shutdown"})
            await done.wait()
            await task


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


class Serving(NamedTuple):
    """The address of a service, and the tokens of its users."""

    address: tuple[str, int]
    tokens: dict[str, str]


@contextmanager
def started(folder: Path) -> Iterator[Serving]:
    """Run ``slotkern serve`` of `make_ledger` on a free port of this host."""
    make_ledger(folder).close()
    users, tokens = make_users(folder)
    command = ["serve", str(folder / "site.db"), "--tokens", str(users)]
    process = subprocess.Popen(
        [sys.executable, "-m", "slotkern", *command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1):(\d+), 4 users", line)
        assert found, line + process.stderr.read()
        yield Serving((found[1], int(found[2])), tokens)
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert not errors, errors
