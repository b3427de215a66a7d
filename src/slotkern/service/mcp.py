"""A ledger as tools of the Model Context Protocol, over standard input and output.

The tools are the operations of `OPERATIONS` that the role of the server may call: their
arguments are the fields of the body, of the query and of the path, with the same
schemas and the same checks. The tool ``hold`` is the operation ``book`` with its field
``hold``, and the tool ``book`` is the operation without it. An error is the result of a
call, with one sentence that names the field and the value.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import slotkern as sk
from slotkern.foundation.checks import one_of
from slotkern.foundation.extras import extra
from slotkern.search.records import SURROGATE, strict_json
from slotkern.service.backend import Backend, ServiceLimits
from slotkern.service.exchange import Exchange
from slotkern.service.inputs import (
    NUMBER,
    TEXT,
    Schema,
    check,
    described,
    object_schema,
    parse,
)
from slotkern.service.operations import OPERATIONS, Operation
from slotkern.service.problems import problem_of
from slotkern.service.users import User

with extra():
    from mcp import types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

__all__ = ["TOOLS", "Tool", "serve_stdio"]


class Tool(NamedTuple):
    """An operation as a tool, and the schema of its arguments."""

    operation: Operation
    arguments: Schema


def _tool(operation: Operation, without: str = "", needs: tuple[str, ...] = ()) -> Tool:
    """Return the tool of an operation, without one field or with more needed ones."""
    query = {name: described(TEXT, text) for name, text in operation.query.items()}
    fields = {**operation.fields, **query}
    fields.pop(without, None)
    required = (*operation.required, *needs)
    for name in needs:
        kinds = [kind for kind in fields[name]["type"] if kind != "null"]
        fields[name] = {**fields[name], "type": kinds}
    if "{id}" in operation.path:
        fields["id"] = described(NUMBER, "The id of a booking: see bookings.")
        required += ("id",)
    return Tool(operation, object_schema(fields, required))


def _tools() -> dict[str, Tool]:
    found = {}
    for operation in OPERATIONS:
        if operation.name == "book":
            booked = operation._replace(summary="Find and book a window.")
            found["book"] = _tool(booked, without="hold")
            held = operation._replace(summary="Find a window and hold it for a time.")
            found["hold"] = _tool(held, needs=("hold",))
        elif operation.role != "administer":
            found[operation.name] = _tool(operation)
    return found


#: All tools by name; those with the role "book" need a server that may write.
TOOLS = _tools()

_INSTRUCTIONS = (
    "slotkern finds windows: n nodes that are free at the same time, for a job that "
    "needs them for its walltime or volume. Times are numbers in the unit of the pool; "
    "if `state` returns a clock, dates and durations may be text. Money and "
    "work are in the units of the pool. "
)
_READS = "This server only reads."
_WRITES = "Bookings belong to {}; only these can be confirmed or released."


class _Tools(Backend):
    """The tools of an open ledger, for one user."""

    def __init__(self, pool: sk.SharedPool, user: User) -> None:
        super().__init__(pool, ServiceLimits())
        self._user = user

    async def list(self, _context: Any, _page: Any) -> types.ListToolsResult:
        """Return the tools that the user may call."""
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.operation.summary,
                    input_schema=dict(tool.arguments),
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.operation.role == "read",
                        destructive_hint=tool.operation.method == "DELETE",
                        open_world_hint=False,
                    ),
                )
                for name, tool in TOOLS.items()
                if self._user.has_role(tool.operation.role)
            ]
        )

    async def call(
        self, _context: Any, call: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Return the object of an operation, or an error with its reason."""
        try:
            found = await self._run(call.name, call.arguments or {})
        except Exception as error:
            reason = _encodable(str(problem_of(error, f"the tool {call.name}")))
            return types.CallToolResult(content=[_text(reason)], is_error=True)
        text = json.dumps(found, ensure_ascii=False)
        encodable = _encodable(text)
        if encodable != text:
            found = json.loads(encodable)
        answer = _text(encodable)
        return types.CallToolResult(content=[answer], structured_content=found)

    async def _run(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        tool = TOOLS[one_of("the tool", name, TOOLS)]
        operation = tool.operation
        if not self._user.has_role(operation.role):
            raise ValueError(
                f"this server only reads: {name} needs `slotkern mcp --write`"
            )
        arguments = parse(json.dumps(given).encode())
        check(name, arguments, tool.arguments)
        number = arguments.pop("id", 0)
        query = {key: arguments.pop(key) for key in operation.query if key in arguments}
        exchange = Exchange(self, self._user, arguments, number, query)
        try:
            found: dict[str, Any] = strict_json(await operation.run(exchange))
        except Exception as error:
            what = f"the call of {name}"
            raise problem_of(error, what, exchange.stored) from None
        return found


def _encodable(text: str) -> str:
    """Replace lone surrogates, which the messages of the protocol cannot have."""
    return SURROGATE.sub("\ufffd", text)


def _text(text: str) -> types.TextContent:
    return types.TextContent(text=text)


async def serve_stdio(pool: sk.SharedPool, writes: bool) -> None:
    """Serve the tools of an open ledger until standard input ends.

    Parameters
    ----------
    pool : SharedPool
        Its `user` owns the bookings.
    writes : bool
        Whether tools may change the ledger.
    """
    user = User(pool.user, "book" if writes else "read")
    tools = _Tools(pool, user)
    server: Server[Any] = Server(
        "slotkern",
        version=sk.__version__,
        instructions=_INSTRUCTIONS + (_WRITES.format(user.name) if writes else _READS),
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )
    async with tools.running(), stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
