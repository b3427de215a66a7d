"""A request to an operation of a service, with the helpers of all operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import slotkern as sk
from slotkern._kernels.request import Request
from slotkern.search.records import (
    JsonText,
    list_text,
    request_record,
    window_text,
)
from slotkern.service.backend import Backend
from slotkern.service.inputs import build_request
from slotkern.service.problems import Problem
from slotkern.service.tables import JobTable
from slotkern.service.users import User

__all__ = ["Exchange"]


@dataclass
class Exchange:
    """A request to an operation.

    Attributes
    ----------
    body : dict
        The checked fields of the body.
    booking : int
        The id in the path.
    query : mapping of str to str
    table : JobTable or None
        The jobs, if the body is a table: then the fields of `body` were in the query.
    version : int
        That of the pool when the request came: the answer has all entries up to it, so
        that a client can read the events after it without a gap.
    status : int
        The status of the response.
    stored : bool
        True after a change was stored: a later error must not look like a refusal.
    """

    app: Backend
    user: User
    body: dict[str, Any]
    booking: int = 0
    query: Mapping[str, str] = field(default_factory=dict)
    table: JobTable | None = None
    version: int = field(init=False)
    status: int = 200
    stored: bool = False

    def __post_init__(self) -> None:
        self.version = self.app.pool.version

    @property
    def request(self) -> Request:
        """The request of the body, with the name of the job."""
        return build_request(self.body["request"], self.body.get("name"))

    async def change(self, change: Callable[[sk.SharedPool], Any]) -> Any:
        """Change the ledger in the name of the user; return the result."""
        found = await self.app.change(self.user, change)
        self.stored = True
        return found

    def work(self) -> int:
        """Return the work that a search may do: less than the limit if asked for."""
        limit = self.app.limits.work
        return min(int(self.body.get("max_work", limit)), limit)

    def windows(self) -> int:
        """Return the number of windows that a search may return."""
        limit = self.app.limits.windows
        return min(int(self.body.get("most", limit)), limit)

    def heading(self, criterion: str, request: Request) -> dict[str, Any]:
        """Return the first members of an answer, as the command line prints them."""
        shape = self.body.get("shape", "square")
        heading: dict[str, Any] = {"slotkern": sk.__version__}
        heading |= {"version": self.version, "criterion": criterion}
        return heading | {"shape": shape, "request": request_record(request)}

    async def explanation(self, request: Request) -> dict[str, Any]:
        """Return why a request has no window."""
        pool, shape = self.app.pool, self.body.get("shape", "square")
        how: Any = {"shape": shape, "max_work": self.work()}
        why = await self.app.search(lambda: sk.explain(pool, request, **how))
        return why.to_dict() | {"text": str(why)}  # type: ignore[no-any-return]

    def window(self, window: Any) -> JsonText:
        """Return a window as the command line prints it, as JSON."""
        return window_text(self.app.pool, self.app.pool.origin, window)

    def windows_text(self, windows: Iterable[Any]) -> JsonText:
        """Return a list of windows."""
        return list_text(map(self.window, windows))

    def jobs(self) -> list[Request]:
        """Return the requests of the jobs of the body, with their names."""
        if self.table is not None:
            return self.table.requests
        jobs = self.body["jobs"]
        most = self.app.limits.jobs
        if len(jobs) > most:
            raise Problem(
                413, f"the body has {len(jobs)} jobs; at most {most} are allowed"
            )
        found = []
        for i, job in enumerate(jobs):
            try:
                fields = {name: value for name, value in job.items() if name != "name"}
                found.append(build_request(fields, job.get("name")))
            except (ValueError, TypeError) as error:
                raise Problem(400, f"{self.place(i)}: {error}") from None
        return found

    def place(self, i: int) -> str:
        """Return where a job is in the body, for errors."""
        return f"jobs[{i}]" if self.table is None else f"body, row {i}"

    @contextmanager
    def located(self) -> Iterator[None]:
        """Replace ``requests[i]`` at the start of an error by its place in the body."""
        try:
            yield
        except (ValueError, TypeError) as error:
            match = re.match(r"requests\[([0-9]+)\](.*)", str(error), re.S)
            if match is None:
                raise
            raise Problem(400, f"{self.place(int(match[1]))}{match[2]}") from None

    def record(self, booking: sk.Booking) -> dict[str, Any]:
        """Return a booking as an object with its id, owner, name, window and hold."""
        expires = booking.expires
        return {
            "id": booking.id,
            "owner": booking.owner,
            "name": booking.window.name,
            "expires": None if expires is None else expires.isoformat(),
            "repeated": booking.repeated,
            "window": self.window(booking.window),
        }
