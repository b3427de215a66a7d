"""The check finds each kind of sabotage of a ledger, and none in a sound one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slotkern as sk
from slotkern.ledger.check import _chain, check_ledger
from slotkern.ledger.codec import Entry, chain
from tests.support.ledgers import new_ledger

JOB = sk.Request(2, 5)


def sample(folder: Path) -> Path:
    """Return a ledger with all kinds of entries."""
    pool = new_ledger(folder)
    pool.place(JOB, token="t")
    pool.place(JOB, hold="1h")
    pool.confirm(2)
    pool.schedule([JOB, JOB])
    pool.release(1)
    pool.disable([3], 60, 80)
    pool.reserve([2], 50, 90, owner="m", partly=True)
    pool.snapshot()
    pool.advance(1)
    pool.place(JOB, hold="1h")
    pool.enable([3])
    pool.remove_node(3)
    assert pool.check()
    pool.close()
    return folder / "site.db"


def rechained(connection: sqlite3.Connection) -> None:
    """Compute all chains again, as an attacker with the format would do."""
    chain = b""
    for call in connection.execute("SELECT * FROM calls ORDER BY last").fetchall():
        between = "SELECT * FROM entries WHERE version BETWEEN ? AND ? ORDER BY version"
        rows = connection.execute(between, (call[1], call[0])).fetchall()
        chain = _chain(chain, call, rows)
        connection.execute(
            "UPDATE calls SET chain = ? WHERE last = ?", (chain, call[0])
        )
    connection.execute("UPDATE head SET chain = ?", (chain,))


def copied(connection: sqlite3.Connection, kind: str, of: int, number: int) -> None:
    """Append a call with one entry of this kind, as a wrong program would."""
    (last,) = connection.execute("SELECT version FROM head").fetchone()
    columns = "owner, name, start, finish, nodes, cost, expires, body"
    connection.execute("DROP INDEX end_of_booking")
    connection.execute("DROP INDEX confirmation")
    if kind == "book":
        connection.execute(
            f"INSERT INTO entries SELECT ?, 'book', NULL, {columns} FROM entries "
            "WHERE version = ?",
            (last + 1, number),
        )
    else:
        connection.execute(
            "INSERT INTO entries(version, kind, of) VALUES (?, ?, ?)",
            (last + 1, kind, of),
        )
    connection.execute(
        "INSERT INTO calls SELECT ?, ?, at, client, what, NULL, NULL, NULL, x'' "
        "FROM calls WHERE last = ?",
        (last + 1, last + 1, last),
    )
    connection.execute("UPDATE head SET version = ?", (last + 1,))
    rechained(connection)


def sql(statement: str, chained: bool = True) -> Callable[[sqlite3.Connection], None]:
    def change(connection: sqlite3.Connection) -> None:
        connection.execute(statement)
        if chained:
            rechained(connection)

    return change


SABOTAGE: dict[str, tuple[Callable[[sqlite3.Connection], Any], str]] = {
    "double booking": (lambda c: copied(c, "book", 0, 4), "is booked twice"),
    "past booking": (lambda c: copied(c, "book", 0, 1), "starts before 1"),
    "double release": (lambda c: copied(c, "release", 1, 0), "which is not booked"),
    "double confirmation": (lambda c: copied(c, "confirm", 2, 0), "not be confirmed"),
    "early end": (lambda c: copied(c, "expire", 2, 0), "ends before its time"),
    "unknown kind": (lambda c: copied(c, "tariff", 0, 0), "'tariff' is unknown"),
    "missing entry": (
        sql("DELETE FROM entries WHERE version = 4"),
        "after version 3 are missing",
    ),
    "missing call": (
        sql("DELETE FROM calls WHERE last = 3", False),
        "after version 2 are missing",
    ),
    "changed byte": (
        sql(
            "UPDATE entries SET body = substr(body, 1, 20) || x'01' || "
            "substr(body, 22) WHERE version = 4",
            False,
        ),
        "the chain of digests breaks here",
    ),
    "changed owner": (
        sql("UPDATE entries SET owner = 'eve' WHERE version = 4", False),
        "the chain of digests breaks here",
    ),
    "changed owner and chain": (
        sql("UPDATE entries SET owner = 'eve' WHERE version = 4"),
        "has another chain",
    ),
    "changed column": (
        sql("UPDATE entries SET start = start + 1 WHERE version = 4"),
        "the columns differ",
    ),
    "lost end": (
        sql("UPDATE head SET version = version - 1", False),
        "the log ends at",
    ),
    "time that goes back": (
        sql("UPDATE calls SET at = 1 WHERE last = 3"),
        "its time is before",
    ),
    "short body": (
        sql("UPDATE entries SET body = substr(body, 1, 70) WHERE version = 4"),
        "not a body of a window",
    ),
    "broken snapshot": (
        sql("UPDATE snapshots SET body = x'00' WHERE version > 0", False),
        "cannot be read",
    ),
    "broken base": (
        sql("UPDATE snapshots SET body = x'' WHERE version = 0", False),
        "the snapshot 0 cannot be read",
    ),
    "half an addition": (
        sql("UPDATE entries SET kind = 'add', body = x'504B0304' WHERE version = 4"),
        "version 4 (add )",
    ),
    "no head": (sql("DELETE FROM head", False), "the head is missing"),
    "no base": (sql("DELETE FROM snapshots WHERE version = 0"), "no snapshot at"),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_is_found(name: str, tmp_path: Path) -> None:
    path = sample(tmp_path)
    change, text = SABOTAGE[name]
    connection = sqlite3.connect(path)
    change(connection)
    connection.commit()
    connection.close()
    report = check_ledger(path)
    assert not report
    assert text in str(report)


texts = st.none() | st.text(max_size=5)
integers = st.integers(-(2**62), 2**62)
numbers = st.none() | integers
floats = st.none() | st.integers(-9, 9) | st.floats()
rows = st.tuples(
    *(
        st.integers(1, 9),
        st.sampled_from(["book", "hold", "release", 'x-"\\']),
        numbers,
    ),
    *(texts, texts, floats, floats, numbers, floats, numbers),
    st.none() | st.binary(max_size=9),
)
asked = st.none() | st.binary(max_size=4)
requests = st.tuples(
    *(integers, integers, integers, integers, st.text(max_size=5), texts, asked, texts)
)


@given(st.binary(max_size=4), requests, rows)
def test_the_chain_is_that_of_the_check(before: bytes, call: Any, row: Any) -> None:
    entries = [Entry(*row), Entry(2, "book", None, "ann", "j", 0.1, 5e300, 2, 1e-7)]
    assert chain(before, call, entries) == _chain(before, (*call, b""), entries)


def test_a_damaged_page_is_found(tmp_path: Path) -> None:
    path = sample(tmp_path)
    data = bytearray(path.read_bytes())
    for at in range(4096 + 3, len(data), 4096):
        data[at] ^= 0xFF
    path.write_bytes(data)
    assert "SQLite" in str(check_ledger(path))


def test_closed_and_removed_nodes_are_judged(tmp_path: Path) -> None:
    pool = new_ledger(tmp_path)
    pool.disable([0], 0, 50)
    pool.remove_node(1)
    pool.place(sk.Request(1, 5, where="node == 2"))
    pool.close()
    connection = sqlite3.connect(tmp_path / "site.db")
    (body,) = connection.execute(
        "SELECT body FROM entries WHERE kind = 'book'"
    ).fetchone()
    at = 64 + len("start") + 8
    for node, text in ((0, "is closed"), (1, "was removed")):
        data = node.to_bytes(8, "little") + node.to_bytes(4, "little")
        connection.execute(
            "UPDATE entries SET body = ? WHERE kind = 'book'",
            (body[: at - 8] + data + body[at + 4 :],),
        )
        rechained(connection)
        connection.commit()
        assert text in str(check_ledger(tmp_path / "site.db"))
    connection.close()


def test_removed_nodes_of_snapshots_are_compared(tmp_path: Path) -> None:
    pool = new_ledger(tmp_path)
    pool.remove_node(1)
    pool.snapshot()
    pool.close()
    connection = sqlite3.connect(tmp_path / "site.db")
    connection.execute("UPDATE entries SET kind = 'note' WHERE kind = 'remove'")
    connection.commit()
    connection.close()
    report = str(check_ledger(tmp_path / "site.db"))
    assert "the snapshot 1 has other slots than the log" in report


def test_the_report_is_counted_and_limited(tmp_path: Path) -> None:
    path = sample(tmp_path)
    report = check_ledger(path)
    assert str(report) == f"sound: version {report.version}, 11 calls, " + (
        f"{report.bookings} bookings, {report.open} open"
    )
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET kind = 'odd' WHERE version > 1")
    for i in range(150):
        copied_row = (1000 + i, json.dumps({}))
        connection.execute(
            "INSERT INTO calls VALUES (?1, ?1, 0, 1, ?2, NULL, NULL, NULL, x'')",
            copied_row,
        )
    connection.commit()
    connection.close()
    report = check_ledger(path)
    assert len(report.violations) == 101
    assert report.violations[-1] == "more violations were not listed"
