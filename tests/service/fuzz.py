"""Arbitrary requests to a service: none may make the program fail.

``python tests/service/fuzz.py COUNT`` sends COUNT requests; the tests send a few.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import random
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from service import JOB, ROLES, Answer, running, stream_of

from slotkern.machine.jobs import COLUMNS
from slotkern.service.operations import OPERATIONS

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(0, 12),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["cost", "2h", "2026-12-01", "square", "price <= 1", "t", "ann"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


#: Cells of a column of a table of jobs.
CELLS = st.sampled_from(
    [
        st.integers(0, 9),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(max_size=12),
        st.sampled_from(["1", "2h", "2026-12-01", "price <= 1", "a\0", "INFINITE"]),
        st.booleans(),
        st.datetimes(),
        st.datetimes(timezones=st.just(datetime.UTC)),
        st.dates(),
        st.timedeltas(),
        st.lists(st.integers(0, 9), max_size=2),
        st.nothing(),
    ]
)


@st.composite
def tables(draw: Any) -> bytes:
    """Draw a table of jobs as a stream of Arrow, whose columns mostly are right."""
    count = draw(st.integers(0, 4))
    names = st.sampled_from([*COLUMNS, "share.cores", "uses.lic", "after", "odd"])
    found: dict[str, Any] = {}
    for name in draw(st.lists(names, max_size=3, unique=True)):
        cells = st.none() | draw(CELLS)
        values = draw(st.lists(cells, min_size=count, max_size=count))
        try:
            found[name] = pa.array(values)
        except (pa.ArrowException, OverflowError):  # a date that Arrow does not have
            found[name] = pa.nulls(count)
        if found[name].type == pa.string() and draw(st.booleans()):
            found[name] = found[name].dictionary_encode()
    for name in ("nodes", "volume"):
        if draw(st.integers(0, 9)):
            found[name] = [2] * count
    options = draw(st.sampled_from([{}, {}, {}, {"compression": "zstd"}]))
    return stream_of(found, **options)


#: Requests that are made of the values of one example: drawing takes most of the time.
TOGETHER = 50
#: Requests after which another service begins: its pool is full, or its time is over.
FRESH = 2500
#: Numbers of arbitrary fields: one wrong value among them refuses a request.
COUNTS = (0, 0, 0, 1, 1, 2, 3, 4)


@st.composite
def examples(draw: Any) -> tuple[list[Any], list[bytes], int]:
    """Draw values, tables, and a seed that combines them to requests."""
    values = draw(st.lists(VALUES, min_size=1, max_size=25))
    streams = draw(st.lists(tables(), min_size=1, max_size=3))
    return values, streams, draw(st.integers(0, 2**32))


def request_of(
    rng: random.Random, values: list[Any], streams: list[bytes]
) -> tuple[str, str, bytes | None, str]:
    """Return an operation and a body whose fields have mostly the right names.

    Bodies are JSON with NaN and Infinity, or tables of Arrow with the other fields in
    the query. Every tenth has some other bytes.
    """
    operation = rng.choice(OPERATIONS)
    data: bytes | None = None
    query = ""
    if operation.fields:
        names = [*operation.fields, "odd"]
        count = rng.choice(COUNTS)
        body = {rng.choice(names): rng.choice(values) for _ in range(count)}
        if "request" in operation.fields and rng.randrange(10):
            fields = [*operation.fields["request"]["properties"]]
            count = rng.choice(COUNTS)
            more = {rng.choice(fields): rng.choice(values) for _ in range(count)}
            body["request"] = JOB | more
        data = json.dumps(body).encode()
        if operation.takes_table and rng.randrange(2):
            body.pop("jobs", None)
            data = rng.choice(streams)
            query = f"?{urlencode(body, errors='replace')}" if body else ""
        if not rng.randrange(10):
            data = changed(data, rng.randrange(2**32))
    number = rng.choice([rng.randrange(50), rng.randrange(2**66)])
    path = operation.path.replace("{id}", str(number))
    return operation.method, path + query, data, rng.choice([*ROLES])


def changed(data: bytes, seed: int) -> bytes:
    """Return a text in which up to three bytes have other values."""
    rng, found = random.Random(seed), bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


async def fuzz(folder: Path, count: int) -> Counter[int]:
    """Send requests to a new service; return how often each status was the answer."""
    statuses: Counter[int] = Counter()
    async with running(folder, rate=1e9) as client:
        loop = asyncio.get_running_loop()

        async def answers(asked: list[Any]) -> list[Answer]:
            """Send requests at the same time."""
            return await asyncio.gather(*(client(*request) for request in asked))

        @settings(
            max_examples=-(-count // TOGETHER),
            deadline=None,
            database=None,
            suppress_health_check=[*HealthCheck],
        )
        @given(examples())
        def check(example: tuple[list[Any], list[bytes], int]) -> None:
            *parts, seed = example
            rng = random.Random(seed)
            asked = [request_of(rng, *parts) for _ in range(TOGETHER)]
            call = asyncio.run_coroutine_threadsafe(answers(asked), loop)
            for request, answer in zip(asked, call.result(60), strict=True):
                assert answer.status < 500, (request, answer)
                statuses[answer.status] += 1

        await asyncio.to_thread(check)
        report = client.app.pool.check()
        assert report, report
    return statuses


def main() -> None:
    """Send the given number of requests to several services, and print the statuses."""
    count, statuses = int(sys.argv[1]), Counter[int]()
    while statuses.total() < count:
        with TemporaryDirectory() as folder:
            some = min(FRESH, count - statuses.total())
            statuses += asyncio.run(fuzz(Path(folder), some))
        print(statuses.total(), dict(statuses), flush=True)


if __name__ == "__main__":
    main()
