"""Complete responses of a service, which cost less than those of a framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from slotkern.search.records import strict_text
from slotkern.service.problems import Problem

__all__ = ["HEADERS", "Reply", "respond_problem"]

#: The headers of all responses but redirects.
HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Reply:
    """A response as an ASGI application."""

    __slots__ = ("_body", "_headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        kind: bytes,
        more: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self.status, self._body = status, body
        length = b"%d" % len(body)
        self._headers = [(b"content-length", length), (b"content-type", kind)]
        self._headers += (*HEADERS, *more)

    async def __call__(
        self, _scope: Any, _receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """Send the response."""
        start = {"type": "http.response.start", "status": self.status}
        await send(start | {"headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})


def respond_problem(problem: Problem) -> Reply:
    """Return a response as RFC 9457 describes it."""
    text = strict_text({"status": problem.status, "detail": str(problem)})
    given = problem.headers or {}
    more = [(k.lower().encode(), v.encode("latin-1")) for k, v in given.items()]
    return Reply(problem.status, text.encode(), b"application/problem+json", more)
