"""Measure a service: finds and durable bookings a second, with latencies.

``python benchmarks/service.py [--seconds 5] [--connections 1 32 128]`` starts
``slotkern serve`` with a ledger of 1,000 equal nodes, and this process as its load
generator on the same host. Each connection sends a request when the one before was
answered; each job asks for 5 nodes as early as possible, and a booking has a token.
The CPU time is that of the server alone, for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import slotkern as sk
from slotkern.service.users import add_user

JOB = {"nodes": 5, "volume": 4}


class Connection(asyncio.Protocol):
    """A connection that asks again until the end, and notes the latencies."""

    def __init__(self, requests: Iterator[bytes], end: float, times: list[float]):
        self.requests, self.end, self.times = requests, end, times
        self.closed = asyncio.get_running_loop().create_future()
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        """Send the next request."""
        self.since = time.perf_counter()
        self.transport.write(next(self.requests))

    def data_received(self, data: bytes) -> None:
        """Note the time of a complete response."""
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if not found or len(body) < int(length[1]):
            return
        now = time.perf_counter()
        if not head.startswith(b"HTTP/1.1 20"):
            raise SystemExit(self.data.decode())
        self.times.append(now - self.since)
        self.data = b""
        if now < self.end:
            self.ask()
        else:
            self.transport.close()
            self.closed.set_result(None)


def requests(path: str, token: str, numbers: Iterator[int]) -> Iterator[bytes]:
    """Yield requests; those of bookings with a token each."""
    for number in numbers:
        content = {"request": JOB, "criterion": "start"}
        if path.endswith("bookings"):
            content["token"] = str(number)
        body = json.dumps(content).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        yield head.encode() + body


async def measure(
    port: int, path: str, token: str, connections: int, seconds: float
) -> list[float]:
    """Return the latencies in seconds."""
    times: list[float] = []
    loop, end = asyncio.get_running_loop(), time.perf_counter() + seconds
    ask = requests(path, token, count(time.time_ns()))
    made = [
        await loop.create_connection(
            lambda: Connection(ask, end, times), "127.0.0.1", port
        )
        for _ in range(connections)
    ]
    await asyncio.gather(*(connection.closed for _, connection in made))
    return times


def cpu_of(process: int) -> float:
    """Return the CPU seconds of a process and its threads so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line for each path and number of connections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 32, 128])
    given = parser.parse_args()
    slots = sk.make_slots(node=range(1000), start=0, end=1e9, performance=1, price=1)
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        ledger, users = Path(folder, "site.db"), Path(folder, "users.toml")
        sk.SlotPool(slots).share(ledger).close()
        token = add_user(users, "load", "book")
        command = ["serve", str(ledger), "--tokens", str(users)]
        command += ["--port", "0", "--rate", "1e9"]
        server = subprocess.Popen(
            [sys.executable, "-m", "slotkern", *command],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            port = int(re.search(r":(\d+),", server.stdout.readline())[1])
            for path in ("/v1/find", "/v1/bookings"):
                for connections in given.connections:
                    load, cpu = os.getloadavg()[0], cpu_of(server.pid)
                    work = measure(port, path, token, connections, given.seconds)
                    times = np.array(asyncio.run(work)) * 1e3
                    cpu = (cpu_of(server.pid) - cpu) / len(times) * 1e6
                    p50, p99 = np.percentile(times, [50, 99])
                    print(
                        f"{path} {connections:4} connections: "
                        f"{len(times) / given.seconds:8,.0f}/s, p50 {p50:.2f} ms, "
                        f"p99 {p99:.2f} ms, longest {times.max():.1f} ms, "
                        f"CPU {cpu:.0f} us, load {load:.1f}",
                        flush=True,
                    )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
