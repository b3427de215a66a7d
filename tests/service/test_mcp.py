"""Tests of `slotkern mcp` with the client of the package mcp, over standard input."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from service import JOB, SLOTS, make_ledger

import slotkern as sk
from slotkern.search.records import window_record
from slotkern.service.mcp import TOOLS
from slotkern.service.operations import OPERATIONS

mcp = pytest.importorskip("mcp")

READS = {"state", "find", "find_many", "front", "alternatives", "explain", "forecast"}
READS |= {"bookings"}
WRITES = {"book", "hold", "schedule", "confirm", "release"}


def with_client(test: Callable[[Any], Awaitable[Any]], *words: object) -> Any:
    """Run a test with the client of a new server: ``slotkern mcp WORDS``."""
    command = ["-m", "slotkern", "mcp", *map(str, words)]
    server = mcp.StdioServerParameters(command=sys.executable, args=command)

    async def main() -> Any:
        async with mcp.Client(server) as client:
            return await test(client)

    return asyncio.run(main())


async def result(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the object of a tool, which is also its text."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    assert json.loads(answer.content[0].text) == answer.structured_content
    return answer.structured_content  # type: ignore[no-any-return]


async def refusal(client: Any, tool: str, **arguments: Any) -> str:
    """Return the reason why a tool refuses its arguments."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer
    assert len(answer.content) == 1
    return answer.content[0].text  # type: ignore[no-any-return]


def test_half_of_a_character_in_a_column_is_replaced(tmp_path: Path) -> None:
    slots = sk.make_slots(
        node=[0, 1], start=0, end=24, performance=1, price=1, rack=["a\ud800", "b"]
    )
    make_ledger(tmp_path, slots).close()

    async def test(client: Any) -> None:
        booked = await result(client, "book", request=JOB)
        assert [each["rack"] for each in booked["window"]["slots"]] == ["a\ufffd", "b"]

    with_client(test, tmp_path / "site.db", "--write")


def test_a_ledger_is_searched_and_booked(tmp_path: Path) -> None:
    make_ledger(tmp_path).close()
    ledger = tmp_path / "site.db"

    async def test(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == READS | WRITES
        for name, tool in tools.items():
            assert tool.annotations.read_only_hint == (name in READS)
            assert tool.annotations.destructive_hint == (name == "release")
        found = await result(client, "find", request=JOB, criterion="cost")
        with sk.SlotPool.open(ledger, readonly=True) as pool:
            window = sk.find_window(pool, sk.Request(2, 4), "cost")
            assert found["window"] == window_record(pool, pool.origin, window)
        assert (await result(client, "front", request=JOB))["complete"]
        booked = await result(client, "book", request=JOB, name="a", token="t")
        again = await result(client, "book", request=JOB, name="a", token="t")
        assert (again["id"], again["repeated"]) == (booked["id"], True)
        held = await result(client, "hold", request=JOB, hold="1h")
        assert held["expires"] is not None
        assert (await result(client, "confirm", id=held["id"]))["expires"] is None
        listed = (await result(client, "bookings", owner="agent"))["bookings"]
        assert [each["id"] for each in listed] == [booked["id"], held["id"]]
        await result(client, "release", id=held["id"])
        queue = [{"nodes": 8, "walltime": 3}]
        forecast = await result(client, "forecast", request=JOB, queue=queue, runs=5)
        assert forecast["waiting"] == 1
        large = JOB | {"nodes": 9}
        why = (await result(client, "explain", request=large))["explanation"]["text"]
        assert "9 are asked for" in why
        assert await refusal(client, "book", request=large) == why

    with_client(test, ledger, "--write", "--user", "agent")
    with sk.SlotPool.open(ledger, readonly=True) as pool:
        owners = [(each.owner, each.window.name) for each in pool.open_bookings()]
    assert owners == [("agent", "a")]


def test_a_file_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "pool.npz"
    sk.SlotPool(SLOTS).save(path)
    before = path.read_bytes()

    async def test(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READS
        assert (await result(client, "state"))["role"] == "read"
        assert (await result(client, "find", request=JOB))["window"]["start"] == 0
        for tool in ("book", "hold"):
            why = await refusal(client, tool, request=JOB, hold=9)
            assert why == f"this server only reads: {tool} needs `slotkern mcp --write`"

    with_client(test, path)
    assert path.read_bytes() == before
    done = run("mcp", path, "--write")
    assert done.exit_code == 2
    assert "is not a ledger; `slotkern ledger create` makes one" in done.stderr


def test_a_ledger_is_read_while_others_write(tmp_path: Path) -> None:
    async def test(client: Any) -> None:
        assert (await result(client, "bookings"))["bookings"] == []
        with sk.SlotPool.open(tmp_path / "site.db") as pool:
            booked = pool.place(sk.Request(2, 4), owner="ann")
        assert booked is not None
        for _ in range(600):  # the server reads the entry within 50 ms
            if found := (await result(client, "bookings"))["bookings"]:
                break
            await asyncio.sleep(0.01)
        assert [each["id"] for each in found] == [booked.id]
        why = await refusal(client, "release", id=booked.id)
        assert why == "this server only reads: release needs `slotkern mcp --write`"

    make_ledger(tmp_path).close()
    with_client(test, tmp_path / "site.db", "--user", "ann")


#: Arguments that are refused, and the reason.
WRONG = [
    ("fnd", {}, "the tool must be one of .*; got 'fnd'; did you mean 'find'"),
    ("advance", {"now": 1}, "the tool must be one of .*; got 'advance'"),
    ("find", {}, "find needs the field request"),
    ("find", {"request": {}}, "find.request needs the field nodes"),
    ("find", {"request": JOB, "shap": 1}, "no field 'shap'.*did you mean 'shape'"),
    ("find", {"request": JOB | {"nodes": "2"}}, "find.request.nodes must be integer"),
    ("find", {"request": JOB, "criterion": "finsh"}, "did you mean 'finish'"),
    ("book", {"request": JOB, "name": "a\0"}, "NUL"),
    ("book", {"request": JOB, "hold": "1h"}, "book has no field 'hold'"),
    ("hold", {"request": JOB}, "hold needs the field hold"),
    ("hold", {"request": JOB, "hold": None}, "hold.hold must be number or string"),
    ("hold", {"request": JOB, "hold": "soon"}, "'soon'"),
    ("book", {"request": JOB, "owner": "ann"}, "may not book for ann"),
    ("release", {}, "release needs the field id"),
    ("release", {"id": 2**70}, f"booking {2**70} is not booked"),
    ("forecast", {"request": JOB, "queue": [{}]}, r"queue\[0\] needs the field nodes"),
]


def test_wrong_arguments_are_one_error(tmp_path: Path) -> None:
    make_ledger(tmp_path).close()

    async def test(client: Any) -> list[str]:
        found = [await refusal(client, tool, **given) for tool, given, _ in WRONG]
        assert (await result(client, "bookings"))["bookings"] == []
        return found

    reasons = with_client(test, tmp_path / "site.db", "--write")
    for (tool, given, pattern), reason in zip(WRONG, reasons, strict=True):
        assert re.search(pattern, reason), (tool, given, reason)
        assert "\n" not in reason


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ledger(tmp_path).close()
    for name in ("mcp", "anyio"):
        monkeypatch.setitem(sys.modules, name, None)
    done = run("mcp", tmp_path / "site.db")
    assert done.exit_code == 2
    assert done.stderr.endswith("this needs mcp: pip install 'slotkern[mcp]'\n")


def test_every_operation_but_administration_is_a_tool() -> None:
    from slotkern.service.mcp import TOOLS

    named = {each.name: each.role for each in OPERATIONS if each.role != "administer"}
    assert named.keys() | {"hold"} == TOOLS.keys()
    for name, tool in TOOLS.items():
        assert tool.arguments["additionalProperties"] is False
        assert tool.operation.name == ("book" if name == "hold" else name)


def test_the_page_lists_all_tools_and_arguments() -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "agents.md"
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)?) \| (.*?) \|", page.read_text(), re.M)
    listed = {tool: cell for cells, cell in rows for tool in re.findall(r"\w+", cells)}
    assert listed.keys() == TOOLS.keys() == READS | WRITES
    for name, tool in TOOLS.items():
        if name != "hold":  # as `book`
            arguments = set(tool.arguments["properties"])
            assert set(re.findall(r"`(\w+)`", listed[name])) == arguments, name
