"""Tests of the service: many jobs in one request, and tables of Arrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from service import ARROW, JOB, Client, run, stream_of

import slotkern as sk
from slotkern.search.records import window_record


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
        for hold in (None, "1h"):
            body = {"request": JOB, "name": "ice", "hold": hold}
            assert (await client("POST", "/v1/bookings", body, "ann")).status == 201
        listed = (await client("GET", "/v1/bookings", None, "rob")).json["bookings"]
        answer = await client("GET", "/v1/bookings", None, "rob", accept=ARROW)
        assert answer.headers["content-type"] == ARROW
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
        answer = await client("GET", empty, None, "rob", accept=ARROW)
        assert pa.ipc.open_stream(answer.body).read_all().num_rows == 0
        answer = await client("GET", "/v1", None, "rob", accept=ARROW)
        assert answer.status == 406

    run(tmp_path, test)


# --- tables of jobs


def test_a_table_of_jobs_is_scheduled_as_a_file_of_jobs_is(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "name": pa.array(["a", "b", None, "d"]).dictionary_encode(),
        "nodes": pa.array([2, 9, 8, 1], pa.uint8()),
        "volume": [4.0, 1.0, None, 3.0],
        "walltime": [None, None, 2, None],
        "where": pa.array([None, None, "price <= 1", ""], pa.large_string()),
        "deadline": pa.nulls(4),
    }
    table = pa.table(columns)
    body, path = stream_of(table.slice(0, 3)), "/v1/schedule?token=night&owner=ann"

    async def test(client: Client) -> None:
        pool = client.app.pool
        plain = pool.copy()
        expected = plain.schedule(table.slice(0, 3))
        found = (await client("POST", path, body, "ann")).json
        assert [job["reason"] for job in found["jobs"]] == expected.reasons
        assert [job["id"] for job in found["jobs"]] == [1, None, 2]
        assert [job["name"] for job in found["jobs"]] == ["a", "b", None]
        starts = [job["window"] and job["window"]["start"] for job in found["jobs"]]
        assert starts == [window and window.start for window in expected]
        again = await client("POST", path, body, "ann", accept=ARROW)
        rows = pa.ipc.open_stream(again.body).read_all()
        assert rows["id"].to_pylist() == [1, None, 2]
        other = await client("POST", path, stream_of(table), "ann")
        assert other.status == 422  # the token of another table
        assert pool.version == 2
        how = "criterion=cost&shape=ragged&max_work=1000"
        many = await client("POST", f"/v1/find/many?{how}", stream_of(table), "rob")
        windows = [
            pool.find(job, "cost", shape="ragged")
            for job in (sk.Request(2, 4), sk.Request(9, 1), sk.Request(8, walltime=2))
        ]
        starts = [
            each["window"] and each["window"]["start"] for each in many.json["windows"]
        ]
        assert starts[:3] == [window and window.start for window in windows]

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "has no column 'nodes'"),
        ({"nodes": [1]}, "neither a column 'volume' nor 'walltime'"),
        ({"nodes": [1], "volum": [1]}, "unknown column 'volum'"),
        ({"nodes": [1, 0], "volume": [1, 1]}, "body, row 1: nodes must be at least 1"),
        ({"nodes": ["1", "x"], "volume": [1, 1]}, "row 1, column 'nodes': 'x' is no"),
        ({"nodes": [1, 1.5], "volume": [1, 1]}, "row 1, column 'nodes': 1.5 is no int"),
        ({"nodes": [1, 1], "volume": [1, None]}, "row 1, column 'volume': is empty"),
        ({"nodes": [True], "volume": [1]}, "column 'nodes': True is no number"),
        ({"nodes": [1, 1], "volume": 2 * [1], "name": ["a", "a"]}, "row 1, column 'n"),
        ({"nodes": [1], "volume": [1], "after": ["a"]}, "jobs of several parts"),
        ({"nodes": [1], "volume": [1], "where": ["pirce<1"]}, "body, row 0: where 'pi"),
        ({"nodes": [1], "volume": [1], "earliest": ["1999"]}, "body, row 0: earliest"),
        (
            {"nodes": [1], "volume": [1], "deadline": pa.array([2**31 - 1], "date32")},
            "body: column 'deadline': Casting from date32",
        ),
        ({"nodes": [1], "volume": [1], "limits": [["a"]]}, "'limits' is of type list"),
        ({"nodes": [1], "volume": [1], "where": [b"a"]}, "'where' is of type binary"),
        (
            {"nodes": [1], "volume": [1], "name": ["a\0"]},
            "row 0: column 'name': the",
        ),
        (
            {"nodes": [1, 1], "volume": [1, 1], "where": ["a", "b" * 5000]},
            "row 1: column 'where': the text has 5,000 characters, and at most 4,096",
        ),
    ],
)
def test_invalid_tables_of_jobs_are_refused(
    tmp_path: Path, columns: dict[str, Any], words: str
) -> None:
    async def test(client: Client) -> None:
        for path in ("/v1/schedule", "/v1/find/many"):
            answer = await client("POST", path, stream_of(columns), "ann")
            assert answer.status == 400, answer
            assert words in answer.json["detail"]
        assert client.app.pool.version == 0

    run(tmp_path, test)


def test_tables_that_need_much_memory_are_refused(tmp_path: Path) -> None:
    """A few bytes may describe many rows, much text, or compressed buffers."""
    one = {"nodes": [1], "volume": [1]}
    few = {"nodes": [1] * 9, "volume": [1] * 9}
    nothing = pa.table({"nodes": pa.nulls(10**7), "volume": pa.nulls(10**7)})
    offsets = np.tile(np.array([0, 4000], "<i4"), 500).tobytes()
    shared = pa.Array.from_buffers(
        pa.string(), 999, [None, pa.py_buffer(offsets), pa.py_buffer(b"x" * 4000)]
    )
    words = pa.DictionaryArray.from_arrays(np.zeros(999, "i1"), ["x" * 4000])
    wide = pa.table({"nodes": [1] * 999} | {f"w{i}": words for i in range(9)})
    old = {"metadata_version": pa.ipc.MetadataVersion.V4}
    cases = [
        (stream_of(few), 200, None),
        (stream_of(one | {"where": pa.nulls(1)}), 200, None),
        (stream_of({"nodes": [1] * 1001, "volume": [1] * 1001}), 413, "1001 jobs"),
        (stream_of(nothing), 413, "10000000 jobs"),
        (stream_of(wide), 413, "up to the column 'w2', would take 47,952,000 bytes"),
        (stream_of(few, compression="zstd"), 400, "the stream is compressed"),
        (stream_of(few, compression="lz4"), 400, "the stream is compressed"),
        (stream_of(few, **old), 400, "the stream is compressed or older"),
        (stream_of({"nodes": shared}), 400, "no table of Arrow"),
        (stream_of(few)[:-30], 400, "no table of Arrow"),
        (2 * stream_of(few), 400, f"{len(stream_of(few))} bytes follow the table"),
        (b"\xff" * 4 + b"x" * 99, 400, "no table of Arrow"),
        (b"\xff" * 4 + b"x" * 2**16, 413, "more than 65536 bytes"),
    ]

    async def test(client: Client) -> None:
        for body, status, words in cases:
            answer = await client("POST", "/v1/find/many", body, "rob")
            assert answer.status == status, (answer, words)
            assert words is None or words in answer.json["detail"], answer
        for query in (
            *("x=1", "jobs=1", "max_work=two", "shape=round", "criterion=%00"),
            "shape=square&shape=ragged",
        ):
            answer = await client("POST", f"/v1/find/many?{query}", cases[0][0], "rob")
            assert answer.status == 400, query
            assert "the query" in answer.json["detail"], answer
        answer = await client("POST", "/v1/find/many?shape=square", {"jobs": []}, "rob")
        assert answer.status == 400  # with JSON, all fields are in the body
        answer = await client("POST", "/v1/find", cases[0][0], "rob")
        assert answer.status == 415

    run(tmp_path, test)
