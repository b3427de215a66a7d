"""Record the texts of ``tests/clusters/texts`` on a private Slurm with accounting.

    [SLOTKERN_SLURM=PREFIX] python tests/support/slurm_texts.py FOLDER

Needs a user root, and the programs ``slurmdbd`` and ``mariadbd``. A busy cluster of 12
nodes is printed by each command whose output is read; jobs that end are waited for,
which takes two minutes. Names of users, hosts and folders are replaced.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from private_slurm import SEARCH, PrivateSlurm, free_ports

_NODE_FIELDS = "%N|%T|%c|%m|%w|%b|%G|%R|%a|%l|%E"
_JOB_FIELDS = "%i|%T|%N|%S|%e|%u|%P|%Y"
_EPOCH = {"SLURM_TIME_FORMAT": "%s"}
#: The command and the variables of each text.
COMMANDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "sinfo.txt": (("sinfo",), {}),
    "sinfo-long.txt": (("sinfo", "-N", "-l"), {}),
    "sinfo-fields.txt": (("sinfo", "-a", "-N", "-o", _NODE_FIELDS), {}),
    "nodes.txt": (("scontrol", "-o", "show", "node"), {}),
    "squeue.txt": (("squeue",), {}),
    "squeue-long.txt": (("squeue", "-l"), {}),
    "squeue-epoch.txt": (("squeue", "-a", "-r", "-o", _JOB_FIELDS), _EPOCH),
    "reservations.txt": (("scontrol", "show", "reservation"), {}),
    "reservations-epoch.txt": (("scontrol", "-o", "show", "reservation"), _EPOCH),
    "sinfo.json": (("sinfo", "--json"), {}),
    "nodes.json": (("scontrol", "show", "nodes", "--json"), {}),
    "squeue.json": (("squeue", "--json"), {}),
}
_SACCT = "JobID,JobIDRaw,User,Account,Partition,QOS,Submit,Start,End,State,AllocCPUS"
_SACCT += ",ReqCPUS,Timelimit"
NODES = {f"a0{k}": "CPUs=4 Weight=10 Feature=cpu,slow" for k in range(1, 9)} | {
    f"b0{k}": "CPUs=8 Weight=50 Feature=cpu,fast,avx512" for k in range(1, 5)
}
PARTITIONS = """
PartitionName=batch Nodes=a[01-08] Default=YES MaxTime=7-0 State=UP
PartitionName=fast Nodes=b[01-04] MaxTime=1-0 State=UP
PartitionName=all Nodes=a[01-08],b[01-04] MaxTime=7-0 State=UP
"""
#: Patterns of facts of the recording host, and their replacements.
_NEUTRAL = (
    (r"\broot\b", "anna"),
    (r"\bnobody\b", "dubois"),
    (r"\bnogroup\b", "users"),
    (r"OS=.*? (?=RealMemory)", "OS=Linux 6.1.0 #1 SMP @0  "),
    (r'("operating_system": )"[^"]*"', r'\1"Linux 6.1.0 #1 SMP @0"'),
    (r"BootTime=\S+", "BootTime=2026-11-27T03:06:45"),
    (r"CPULoad=\S+", "CPULoad=0.20"),
    (r"FreeMem=\S+", "FreeMem=3000"),
    # In JSON a number, or an object with the number.
    (r'("boot_time": (?:\{[^{}]*?"number": )?)\d+', r"\g<1>1795748805"),
    (r'("cpu_load": (?:\{[^{}]*?"number": )?)\d+', r"\g<1>20"),
    (r'("load": \{"minimum": )\d+(, "maximum": )\d+', r"\g<1>20\g<2>20"),
    (r'("free_mem(?:ory)?": (?:\{[^{}]*?"number": )?)\d+', r"\g<1>3000"),
    (r'("free": \{"minimum": \{[^{}]*?"number": )\d+', r"\g<1>3000"),
    (r'("free": .*?"maximum": \{[^{}]*?"number": )\d+', r"\g<1>3000"),
)


class Accounting:
    """A database and a slurmdbd in a folder, for the output of ``sacct``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = free_ports(64)[-2:]  # the first ones are those of the cluster
        self.daemons: list[subprocess.Popen[bytes]] = []

    def start(self, sock: Path) -> None:
        """Start both daemons; `sock` is the socket of the private munged."""
        data = self.folder / "data"
        options = (f"--datadir={data}", "--user=root")
        program = shutil.which("mariadb-install-db", path=SEARCH) or ""
        subprocess.run(
            [program, "--no-defaults", *options], check=True, capture_output=True
        )
        self._daemon(
            *("mariadbd", "--no-defaults", *options, "--skip-grant-tables"),
            *("--bind-address=127.0.0.1", f"--port={self.ports[0]}"),
            f"--socket={self.folder / 'db.sock'}",
        )
        conf = self.folder / "slurmdbd.conf"
        conf.write_text(
            f"AuthType=auth/munge\nAuthInfo=socket={sock}\nDbdHost=localhost\n"
            f"DbdAddr=127.0.0.1\nDbdPort={self.ports[1]}\nSlurmUser=root\n"
            f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\n"
            f"StoragePort={self.ports[0]}\nStorageUser=root\nStorageLoc=acct\n"
            f"PidFile={self.folder}/dbd.pid\n"
        )
        conf.chmod(0o600)
        self._listen(self.ports[0])
        self._daemon("slurmdbd", "-D")
        self._listen(self.ports[1])

    @property
    def lines(self) -> str:
        """The lines of ``slurm.conf``."""
        return (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={self.ports[1]}\n"
            f"AccountingStoragePass={self.folder / 'munge.sock'}\n"
        )

    def _daemon(self, *words: str) -> None:
        program = shutil.which(words[0], path=SEARCH) or words[0]
        with (self.folder / f"{words[0]}.log").open("wb") as log:
            variables = {"PATH": SEARCH, "SLURM_CONF": str(self.folder / "slurm.conf")}
            self.daemons.append(
                subprocess.Popen(
                    [program, *words[1:]], env=variables, stdout=log, stderr=log
                )
            )

    def _listen(self, port: int) -> None:
        for _ in range(600):
            with socket.socket() as each:
                if each.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"nobody listens on port {port}; see {self.folder}")

    def stop(self) -> None:
        for each in reversed(self.daemons):
            each.terminate()
            each.wait()


class RecordedSlurm(PrivateSlurm):
    """The private Slurm of the texts."""

    def __init__(self, folder: Path, accounting: Accounting | None = None) -> None:
        more = "DefMemPerCPU=100\n" + (accounting.lines if accounting else "")
        nodes = {name: f"RealMemory=4000 {rest}" for name, rest in NODES.items()}
        super().__init__(folder, nodes, PARTITIONS, more)
        self.accounting = accounting

    def before_controller(self, sock: Path) -> None:
        """Start the accounting, which needs munged and which slurmctld needs."""
        if self.accounting:
            self.accounting.start(sock)

    def submit(self, *words: str, seconds: int = 86400) -> str:
        """Submit a job that sleeps for these seconds; return its number."""
        is_given = words[-1].startswith(("--wrap=", "/"))
        job = () if is_given else (f"--wrap=sleep {seconds}",)
        common = ("sbatch", "--parsable", "-o/dev/null", "-D/tmp")
        return self.run(*common, *words, *job).strip()

    def wait_for(self, state: str, *jobs: str) -> None:
        """Wait until jobs have a state."""
        self._wait(
            lambda: (
                set(
                    self._try(
                        "squeue", "-h", "-tall", "-j", ",".join(jobs), "-o%T"
                    ).split()
                )
                == {state}
            ),
            120,
            f"{state} of {', '.join(jobs)}",
        )

    def fill(self) -> None:
        """Make the cluster busy, and wait until Slurm has planned what waits."""
        now = int(time.time())
        for name, start, nodes, flags in (
            ("upkeep", 86400, "a[01-04]", "MAINT"),
            ("course", 7200, "a[05-06]", "WEEKLY"),
            ("now", 0, "a07", "MAINT,IGNORE_JOBS"),
        ):
            self.run(
                *("scontrol", "create", "reservation", f"ReservationName={name}"),
                *(f"StartTime=uts{now + start}", "Duration=60", f"Nodes={nodes}"),
                *("Users=root", f"Flags={flags}"),
            )
        for node, state, reason in (
            ("a08", "down", "bad disk, State=IDLE x"),
            ("b04", "drain", "memory test"),
        ):
            self.run(
                *("scontrol", "update", f"NodeName={node}", f"State={state}"),
                f"Reason={reason}",
            )
        running = [
            self.submit(*words)
            for words in (
                ("-Jocean model", "-N2", "--exclusive", "-t30", "-wa[01-02]"),
                ("-Jsmall", "-n1", "-t10", "-wa03"),
                ("-Jwide", "-N2", "--exclusive", "-t1-0", "-pfast", "-wb[01-02]"),
                ("-Jarr", "-N1", "--exclusive", "-t20", "-a1-3"),
            )
        ]
        self.wait_for("RUNNING", *running)
        self.submit("-Jlater", "-N4", "-t60", "-pfast", "-a1-9")
        self.submit("-Jnext", "--uid=nobody", "-N2", "-n8", "-t60")
        # The backfill scheduler plans the nodes of this job.
        self._wait(
            lambda: "a[" in self.run("squeue", "-h", "-tPD", "-o%Y"), 120, "a plan"
        )
        self._wait(
            lambda: "maint" in self.run("sinfo", "-h", "-na07", "-o%T"), 120, "a07"
        )

    def record(self) -> dict[str, str]:
        """Return the text of each command that this version has."""
        has_json = "--json" in self.run("scontrol", "--help")
        return {
            name: self.run(*words, TZ="UTC", LC_ALL="C", **variables)
            for name, (words, variables) in COMMANDS.items()
            if has_json or name != "nodes.json"
        }

    def end_jobs(self) -> str:
        """Let jobs end in each way, and return the output of ``sacct``."""
        script = self.folder / "steps.sh"
        script.write_text("#!/bin/sh\nsrun sleep 3\nsrun -n1 sleep 1\n")
        script.chmod(0o755)
        place = ("-pfast", "-wb03", "-t30")
        done = self.submit(*place, "-N1", "-n4", str(script))
        failed = self.submit(*place, "--wrap=exit 3")
        ended = self.submit(*place, "-n2", "-t1")
        waiting = self.submit("--uid=nobody", "-N4", "-t30", "-pfast")
        self.submit("--uid=nobody", "-N4", "-pfast")  # without a limit of its own
        stopped = self.submit(*place, "--uid=nobody", "-n2")
        self.wait_for("RUNNING", stopped)
        self.run("scancel", waiting, stopped)
        self.wait_for("COMPLETED", done)
        self.wait_for("FAILED", failed)
        self.wait_for("TIMEOUT", ended)
        time.sleep(5)  # until the accounting has all
        return self.run("sacct", "-a", "-P", "-o", _SACCT, TZ="UTC", LC_ALL="C")


def neutral(text: str, folder: Path) -> str:
    """Return a text without the facts of this host."""
    host = socket.gethostname()
    for old, new in ((str(folder), "/home/anna"), (host, "host")):
        text = text.replace(old, new)
    for old, new in _NEUTRAL:
        text = re.sub(old, new, text)
    return text


def one_record_a_line(whole: dict[str, Any]) -> str:
    """Return JSON with a line for each record of its lists."""
    parts = []
    for key, value in whole.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n".join(parts) + "}\n"


def main(target: Path) -> None:
    """Write all texts of the Slurm of this computer to a folder."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        accounting = Accounting(folder)
        slurm = RecordedSlurm(folder, accounting)
        try:
            slurm.start()
            for account, user in (("physics", "root"), ("chemistry", "nobody")):
                slurm.run("sacctmgr", "-i", "add", "account", account)
                slurm.run("sacctmgr", "-i", "add", "user", user, f"account={account}")
                default = ("set", f"defaultaccount={account}")
                slurm.run("sacctmgr", "-i", "modify", "user", user, *default)
            slurm.fill()
            texts = slurm.record()
            texts["sacct.txt"] = slurm.end_jobs()
        finally:
            slurm.stop()
            accounting.stop()
    for file, text in texts.items():
        if file.endswith(".json"):
            text = one_record_a_line(json.loads(text))
        (target / file).write_text(neutral(text, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
