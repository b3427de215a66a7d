"""A community of schedulers that runs for real: one process a node, over loopback TCP.

    python examples/community.py [--nodes 6] [--jobs 30] [--kill 2] [--no-restart]

Every node drives the compiled protocol core with asyncio streams; jobs sleep. Midway
some nodes are killed (SIGKILL) and, unless told otherwise, started again. A node writes
down what it holds before it says so to anybody: that is all it needs to go on. At the
end every job has been done once, or is reported: one that was cut off in the middle is
not run a second time.

A message is one line of JSON: the fields of `slotkern._community.Message`, and what the
job is. Lines that are no such message are dropped, as a network may drop any of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from slotkern._community import KINDS, Agent, Message

HOST = "127.0.0.1"
WINDOW, RESEND, RESCHEDULE, RETRY = 0.3, 0.5, 1.0, 1.0
PROCESSORS = (1, 2, 4)
ASK = 3  # neighbours


class Journal:
    """What a node must not forget: lines of JSON, on the disk before they count."""

    def __init__(self, path: Path) -> None:
        self.past = read_journal(path)
        self.file = path.open("ab")
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            self.file.write(b"\n")  # the line in which the node died

    def write(self, *records: dict[str, Any]) -> None:
        for record in records:
            self.file.write(json.dumps(record).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records of a journal; a line that was cut off never counted."""
    records = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError):
            records.append(json.loads(line))
    return records


def remembered(records: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """What a node holds by its journal: for each job its state, hop and description."""
    jobs: dict[int, dict[str, Any]] = {}
    for record in records:
        if "job" not in record:
            continue
        job = jobs.setdefault(record["job"], {"state": "", "hop": 0, "known": 0})
        job |= {key: record[key] for key in ("is", "to") if key in record}
        what = record["event"]
        if what == "given" and (job["state"], job["hop"]) != ("giving", record["hop"]):
            continue  # of an earlier hop
        job["state"], job["hop"] = what, record.get("hop", job["hop"])
        if what == "came":
            job["known"] = record["hop"]
    return jobs


class Node:
    """One process: the core, its timers, its connections and its running jobs."""

    def __init__(self, node: int, ports: list[int], folder: Path) -> None:
        self.node, self.ports = node, ports
        self.journal = Journal(folder / f"node-{node}.jsonl")
        lives = sum(record["event"] == "life" for record in self.journal.past)
        self.free = PROCESSORS[node % len(PROCESSORS)]
        self.agent = Agent(
            node, self.free, seed=1, first_serial=lives * 2**20, promise_life=10.0
        )
        self.lots = random.Random(node + 1000 * lives)
        self.jobs: dict[int, dict[str, Any]] = {}
        past = self.journal.past
        self.handed_in = {each["job"] for each in past if each["event"] == "submitted"}
        self.writers: dict[int, asyncio.StreamWriter] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.journal.write({"event": "life"})

    # --- what happens

    async def live(self) -> None:
        server = await asyncio.start_server(self.listen, HOST, self.ports[self.node])
        self.come_back()
        async with server:
            while True:
                await asyncio.sleep(RESCHEDULE * self.lots.uniform(0.9, 1.1))
                self.perform(self.agent.reschedule(time.monotonic()))

    def come_back(self) -> None:
        """Go on with what an earlier life held."""
        for job, was in remembered(self.journal.past).items():
            self.describe(job, was["is"])
            self.agent.know(job, was["known"])
            if was["state"] == "submitted":
                self.perform(self.agent.submit(job))
            elif was["state"] == "came":
                self.perform(self.agent.hold(job, was["hop"], time.monotonic()))
            elif was["state"] == "giving":
                self.perform(self.agent.hand_over(job, was["hop"], was["to"]))
            elif was["state"] == "started":
                self.journal.write({"event": "interrupted", "job": job})

    async def listen(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                with suppress(ValueError, KeyError, TypeError):
                    self.hear(json.loads(line), writer)
                await writer.drain()
        writer.close()

    def hear(self, told: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        job = told["job"]
        self.describe(job, told["is"])
        if told["kind"] == "submit":
            if job not in self.handed_in:
                self.handed_in.add(job)
                self.journal.write({"event": "submitted", "job": job, "is": told["is"]})
                self.perform(self.agent.submit(job))
            writer.write(json.dumps({"submitted": job}).encode() + b"\n")
        else:
            self.perform(self.agent.receive(message_of(told), time.monotonic()))

    def describe(self, job: int, what: list[float]) -> None:
        processors, length = what
        self.jobs[job] = {"is": what, "length": length, "processors": int(processors)}
        self.agent.describe(job, int(processors), max(length, 1e-3))

    # --- what is asked for

    def perform(self, asked: list[Any]) -> None:
        records = [record for each in asked for record in self.records(each)]
        if records:
            self.journal.write(*records)
        for what, *rest in asked:
            if what == "send":
                self.send(rest[0])
            elif what == "discover":
                others = [n for n in range(len(self.ports)) if n != self.node]
                near = self.lots.sample(others, min(ASK, len(others)))
                self.perform(self.agent.contact(rest[0], near))
            elif what == "decide":
                self.later(WINDOW, self.agent.decide, rest[0])
            elif what == "resend":
                self.later(RESEND, self.agent.resend, rest[0])
            elif what == "suspended":
                self.later(RETRY, self.agent.retry, rest[1])
        self.look()

    def records(self, asked: Any) -> list[dict[str, Any]]:
        """What must be on the disk before anybody hears of it."""
        what, *rest = asked
        if what == "came":
            job, hop, _ = rest
            told = self.jobs[job]["is"]
            return [{"event": "came", "job": job, "hop": hop, "is": told}]
        if what == "given":
            return [{"event": "given", "job": rest[0], "hop": rest[1]}]
        if what == "send" and rest[0].kind.startswith("assign"):
            message = rest[0]
            job, hop = message.job, message.hop
            if self.jobs[job].get("giving") != hop:
                self.jobs[job]["giving"] = hop
                to = message.receiver
                return [{"event": "giving", "job": job, "hop": hop, "to": to}]
        return []

    def later(self, seconds: float, call: Any, ticket: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, lambda: self.perform(call(ticket)))

    def send(self, message: Any) -> None:
        if message.receiver == self.node:
            loop = asyncio.get_running_loop()
            loop.call_soon(
                lambda: self.perform(self.agent.receive(message, time.monotonic()))
            )
            return
        told = message._asdict() | {"is": self.jobs[message.job]["is"]}
        self.start(self.post(message.receiver, json.dumps(told).encode() + b"\n"))

    async def post(self, to: int, line: bytes) -> None:
        """Try once: what does not arrive is lost."""
        with suppress(OSError):
            writer = self.writers.get(to)
            if writer is None or writer.is_closing():
                _, writer = await asyncio.open_connection(HOST, self.ports[to])
                self.writers[to] = writer
            writer.write(line)
            await writer.drain()
            return
        self.writers.pop(to, None)

    def start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # --- the local scheduler: first come first served

    def look(self) -> None:
        while self.agent.waiting:
            job, _, entered = self.agent.waiting[0]
            if self.jobs[job]["processors"] > self.free:
                return
            self.agent.start(job)
            self.free -= self.jobs[job]["processors"]
            self.journal.write({"event": "started", "job": job})
            self.start(self.run(job, time.monotonic() - entered))

    async def run(self, job: int, waited: float) -> None:
        await asyncio.sleep(self.jobs[job]["length"])
        self.journal.write({"event": "done", "job": job})
        self.free += self.jobs[job]["processors"]
        self.agent.ended(waited)
        self.look()


def message_of(told: dict[str, Any]) -> Any:
    """A message as the core takes it; ValueError, KeyError, TypeError if it is none."""
    if told["kind"] not in KINDS:
        raise ValueError(told["kind"])
    fields = {name: told[name] for name in Message._fields}
    for name in ("negotiation", "promise", "times"):
        fields[name] = tuple(fields[name])
    return Message(**fields)


# --- the other side: start nodes, hand in jobs, kill, count


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((HOST, 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


async def spawn(
    node: int, ports: list[int], folder: Path
) -> asyncio.subprocess.Process:
    command = [sys.executable, __file__, "--node", str(node), "--folder", str(folder)]
    command += ["--ports", ",".join(map(str, ports))]
    # It reads nothing there, but ends when the pipe does: whoever started it is gone.
    return await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


async def hand_in(port: int, job: int, what: list[float]) -> None:
    """Say it again until the node has written it down."""
    line = json.dumps({"kind": "submit", "job": job, "is": what}).encode() + b"\n"
    while True:
        with suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(line)
            answer = await asyncio.wait_for(reader.readline(), 5)
            writer.close()
            if answer:
                return
        await asyncio.sleep(0.1)


def count(folder: Path, nodes: int) -> dict[str, Any]:
    """What the journals say: the state of every job, and how often it was run."""
    states: dict[int, str] = {}
    started: Counter[int] = Counter()
    done: Counter[int] = Counter()
    for node in range(nodes):
        records = read_journal(folder / f"node-{node}.jsonl")
        started.update(each["job"] for each in records if each["event"] == "started")
        done.update(each["job"] for each in records if each["event"] == "done")
        for job, was in remembered(records).items():
            if was["state"] != "given":
                # A job that is given away is held by the node that it came to.
                held = f"{was['state']} on node {node}"
                if was["state"] != "giving" or job not in states:
                    states[job] = held
    return {"states": states, "started": started, "done": done}


async def play(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    nodes, lots = options.nodes, random.Random(options.seed)
    ports = free_ports(nodes)
    alive: dict[int, asyncio.subprocess.Process] = {}
    try:
        for node in range(nodes):
            alive[node] = await spawn(node, ports, folder)
        for job in range(options.jobs):
            what = [lots.choice([1, 1, 2]), lots.uniform(0.1, 0.1 + options.length)]
            home = sorted(alive)[job % len(alive)]
            await hand_in(ports[home], job, what)
            if job == options.jobs // 2 and options.kill:
                await asyncio.sleep(1)  # jobs run, wait, and are on their way by now
                killed = lots.sample(sorted(alive), options.kill)
                for node in killed:
                    alive[node].send_signal(signal.SIGKILL)
                    await alive.pop(node).wait()
                if options.restart:
                    for node in killed:
                        alive[node] = await spawn(node, ports, folder)
        deadline = time.monotonic() + options.patience
        while time.monotonic() < deadline:
            found = count(folder, nodes)
            ends = ("done", "interrupted")
            open_ = [s for s in found["states"].values() if not s.startswith(ends)]
            held = [int(state.rpartition(" ")[2]) for state in open_]
            if not any(node in alive for node in held):
                break
            await asyncio.sleep(0.3)
    finally:
        for process in alive.values():
            process.terminate()
            await process.wait()
    found = count(folder, nodes)
    words = Counter(state.partition(" on")[0] for state in found["states"].values())
    return {
        "jobs": len(found["states"]),
        "states": dict(words),
        "done": len(found["done"]),
        "started_twice": [job for job, n in found["started"].items() if n > 1],
        "done_twice": [job for job, n in found["done"].items() if n > 1],
        "not_done": {
            job: state
            for job, state in sorted(found["states"].items())
            if not state.startswith("done")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--length", type=float, default=1.0, help="of a job, seconds")
    parser.add_argument("--kill", type=int, default=2, help="how many nodes")
    parser.add_argument("--no-restart", dest="restart", action="store_false")
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--node", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.node is not None:
        ports = [int(port) for port in options.ports.split(",")]

        async def live() -> None:
            await Node(options.node, ports, options.folder).live()

        threading.Thread(target=end_with_parent, daemon=True).start()
        asyncio.run(live())
        return
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(play(options, Path(folder)))
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
