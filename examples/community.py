"""Runs a community of schedulers as processes, one per node, over loopback TCP.

    python examples/community.py [--nodes 6] [--jobs 30] [--kill 2] [--no-restart]

Every node drives the compiled protocol core with asyncio streams; jobs sleep. After
half of the submissions some nodes are killed (SIGKILL) and, without --no-restart,
restarted. A node writes each change of the jobs it holds to a journal on disk before it
sends a message about it, so the journal suffices to recover. At the end every job was
done once or is reported: a job that was interrupted is not run a second time.

A message is one line of JSON: the fields of `slotkern._kernels.community.Message`,
and "is", the processors and the length of the job. Other lines are dropped; the
protocol tolerates lost messages.
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

from slotkern._kernels.community import KINDS, Agent, Message

HOST = "127.0.0.1"
WINDOW, RESEND, RESCHEDULE, RETRY = 0.3, 0.5, 1.0, 1.0
PROCESSORS = (1, 2, 4)
NEIGHBOURS = 3  # number of nodes that a node asks for offers


class Journal:
    """The persistent state of a node: lines of JSON that are synced to disk."""

    def __init__(self, path: Path) -> None:
        self.past = read_journal(path)
        self.file = path.open("ab")
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            self.file.write(b"\n")  # ends a line that a killed node did not finish

    def write(self, *records: dict[str, Any]) -> None:
        """Append records, and return when they are on disk."""
        for record in records:
            self.file.write(json.dumps(record).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Return the records of a journal, without incomplete lines."""
    records = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(ValueError):
            records.append(json.loads(line))
    return records


def replay_journal(records: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return state, hop and description of each job, as of the end of a journal."""
    jobs: dict[int, dict[str, Any]] = {}
    for record in records:
        if "job" not in record:
            continue
        job = jobs.setdefault(record["job"], {"state": "", "hop": 0, "known": 0})
        job |= {key: record[key] for key in ("is", "to") if key in record}
        what = record["event"]
        if what == "given" and (job["state"], job["hop"]) != ("giving", record["hop"]):
            continue  # confirms an earlier hop
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
        self.rng = random.Random(node + 1000 * lives)
        self.jobs: dict[int, dict[str, Any]] = {}
        past = self.journal.past
        self.submitted = {each["job"] for each in past if each["event"] == "submitted"}
        self.writers: dict[int, asyncio.StreamWriter] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.journal.write({"event": "life"})

    # --- events

    async def live(self) -> None:
        """Serve connections and reschedule periodically until the process ends."""
        server = await asyncio.start_server(self.listen, HOST, self.ports[self.node])
        self.recover()
        async with server:
            while True:
                await asyncio.sleep(RESCHEDULE * self.rng.uniform(0.9, 1.1))
                self.perform(self.agent.reschedule(time.monotonic()))

    def recover(self) -> None:
        """Continue with the jobs in the journal of earlier runs of this node."""
        for job, was in replay_journal(self.journal.past).items():
            self.describe(job, was["is"])
            self.agent.record_hop(job, was["known"])
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
        """Handle the messages of one connection."""
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                with suppress(ValueError, KeyError, TypeError):
                    self.handle(json.loads(line), writer)
                await writer.drain()
        writer.close()

    def handle(self, fields: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Process one message: a submission, or a message of the protocol."""
        job, what = fields["job"], fields["is"]
        self.describe(job, what)
        if fields["kind"] == "submit":
            if job not in self.submitted:
                self.submitted.add(job)
                self.journal.write({"event": "submitted", "job": job, "is": what})
                self.perform(self.agent.submit(job))
            writer.write(json.dumps({"submitted": job}).encode() + b"\n")
        else:
            self.perform(self.agent.receive(message_of(fields), time.monotonic()))

    def describe(self, job: int, what: list[float]) -> None:
        """Store processors and length of a job, and pass them to the core."""
        processors, length = what
        self.jobs[job] = {"is": what, "length": length, "processors": int(processors)}
        self.agent.describe(job, int(processors), max(length, 1e-3))

    # --- actions that the core requests

    def perform(self, actions: list[Any]) -> None:
        """Write the records of all actions to the journal, then perform the actions."""
        records = [record for each in actions for record in self.records(each)]
        if records:
            self.journal.write(*records)
        for what, *rest in actions:
            if what == "send":
                self.send(rest[0])
            elif what == "discover":
                others = [n for n in range(len(self.ports)) if n != self.node]
                near = self.rng.sample(others, min(NEIGHBOURS, len(others)))
                self.perform(self.agent.contact(rest[0], near))
            elif what == "decide":
                self.later(WINDOW, self.agent.decide, rest[0])
            elif what == "resend":
                self.later(RESEND, self.agent.resend, rest[0])
            elif what == "suspended":
                self.later(RETRY, self.agent.retry, rest[1])
        self.start_ready_jobs()

    def records(self, action: Any) -> list[dict[str, Any]]:
        """Return the records that must be on disk before an action is performed."""
        what, *rest = action
        if what == "came":
            job, hop, _ = rest
            what = self.jobs[job]["is"]
            return [{"event": "came", "job": job, "hop": hop, "is": what}]
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
        """Call a method of the core after some seconds, and perform its actions."""
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, lambda: self.perform(call(ticket)))

    def send(self, message: Any) -> None:
        """Send a message; one to this node itself is delivered by the event loop."""
        if message.receiver == self.node:
            loop = asyncio.get_running_loop()
            loop.call_soon(
                lambda: self.perform(self.agent.receive(message, time.monotonic()))
            )
            return
        fields = message._asdict() | {"is": self.jobs[message.job]["is"]}
        self.start(self.post(message.receiver, json.dumps(fields).encode() + b"\n"))

    async def post(self, to: int, line: bytes) -> None:
        """Try once to send a line; on an error the message is lost."""
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
        """Run a coroutine in the background and keep a reference to its task."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # --- the local scheduler: first come first served

    def start_ready_jobs(self) -> None:
        """Start jobs from the head of the queue while enough processors are free."""
        while self.agent.waiting:
            job, _, entered = self.agent.waiting[0]
            if self.jobs[job]["processors"] > self.free:
                return
            self.agent.start(job)
            self.free -= self.jobs[job]["processors"]
            self.journal.write({"event": "started", "job": job})
            self.start(self.run(job, time.monotonic() - entered))

    async def run(self, job: int, waited: float) -> None:
        """Run a job, here by sleeping; `waited`: its seconds in the queue."""
        await asyncio.sleep(self.jobs[job]["length"])
        self.journal.write({"event": "done", "job": job})
        self.free += self.jobs[job]["processors"]
        self.agent.ended(waited)
        self.start_ready_jobs()


def message_of(fields: dict[str, Any]) -> Any:
    """Return a message of the core; raises ValueError, KeyError or TypeError."""
    if fields["kind"] not in KINDS:
        raise ValueError(fields["kind"])
    found = {name: fields[name] for name in Message._fields}
    for name in ("negotiation", "promise", "times"):
        found[name] = tuple(found[name])
    return Message(**found)


# --- the parent process: start nodes, submit jobs, kill nodes, count


def free_ports(count: int) -> list[int]:
    """Return free TCP ports of the loopback interface."""
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
    """Start the process of one node."""
    command = [sys.executable, __file__, "--node", str(node), "--folder", str(folder)]
    command += ["--ports", ",".join(map(str, ports))]
    # The node exits when this pipe closes, that is, when the parent process ends.
    return await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)


def end_with_parent() -> None:
    """Wait until the parent process closes standard input, then exit."""
    sys.stdin.read()
    os._exit(1)


async def submit_job(port: int, job: int, what: list[float]) -> None:
    """Submit a job to a node repeatedly until the node confirms its journal entry."""
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
    """Return from the journals the state of every job and how often it was run."""
    states: dict[int, str] = {}
    started: Counter[int] = Counter()
    done: Counter[int] = Counter()
    for node in range(nodes):
        records = read_journal(folder / f"node-{node}.jsonl")
        started.update(each["job"] for each in records if each["event"] == "started")
        done.update(each["job"] for each in records if each["event"] == "done")
        for job, was in replay_journal(records).items():
            if was["state"] != "given":
                # A job that was given away belongs to the node that accepted it.
                state = f"{was['state']} on node {node}"
                if was["state"] != "giving" or job not in states:
                    states[job] = state
    return {"states": states, "started": started, "done": done}


async def play(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the community, kill nodes, wait until all jobs are done, and report."""
    nodes, rng = options.nodes, random.Random(options.seed)
    ports = free_ports(nodes)
    alive: dict[int, asyncio.subprocess.Process] = {}
    try:
        for node in range(nodes):
            alive[node] = await spawn(node, ports, folder)
        for job in range(options.jobs):
            what = [rng.choice([1, 1, 2]), rng.uniform(0.1, 0.1 + options.length)]
            home = sorted(alive)[job % len(alive)]
            await submit_job(ports[home], job, what)
            if job == options.jobs // 2 and options.kill:
                await asyncio.sleep(
                    1
                )  # now some jobs run, some wait, some are being negotiated
                killed = rng.sample(sorted(alive), options.kill)
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
            holders = [int(state.rpartition(" ")[2]) for state in open_]
            if not any(node in alive for node in holders):
                break
            await asyncio.sleep(0.3)
    finally:
        for process in alive.values():
            process.terminate()
            await process.wait()
    found = count(folder, nodes)
    states = Counter(state.partition(" on")[0] for state in found["states"].values())
    return {
        "jobs": len(found["states"]),
        "states": dict(states),
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
    parser.add_argument(
        "--length", type=float, default=1.0, help="longest job, seconds"
    )
    parser.add_argument("--kill", type=int, default=2, help="number of nodes")
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
