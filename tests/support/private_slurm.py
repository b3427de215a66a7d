"""A private Slurm of simulated nodes on the loopback interface, for tests.

The daemons run as the current user in one folder, with a key and ports of their own.
Nothing is installed: `missing_programs` names what is not there. ``SLOTKERN_SLURM`` is
the prefix of an installed Slurm, the folder of its bin and sbin, that is used instead
of that of the PATH.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "mungekey", "sinfo", "squeue", "sbatch")
#: The user of the daemons and of reservations.
USER = "root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")
#: The folders of the programs, those of the chosen Slurm first.
_PREFIX = os.environ.get("SLOTKERN_SLURM", "")
_CHOSEN = [f"{_PREFIX}/{name}" for name in ("bin", "sbin")] if _PREFIX else []
SEARCH = os.pathsep.join([*_CHOSEN, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
#: The nodes of the tests, and the rest of their lines in ``slurm.conf``.
NODES = {
    f"{letter}{k}": f"CPUs=4 RealMemory=1000 Feature={feature}"
    for letter, feature, count in (("a", "slow", 6), ("b", "quick", 3))
    for k in range(1, count + 1)
}
PARTITIONS = """
PartitionName=batch Nodes=a[1-6] Default=YES MaxTime=7-0 State=UP
PartitionName=fast Nodes=b[1-3] MaxTime=1-0 State=UP
"""


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name, path=SEARCH) is None]


def free_ports(count: int) -> list[int]:
    """Return consecutive port numbers on which nobody listens."""
    for first in range(21000 + os.getpid() % 20000, 64000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()
        return list(range(first, first + count))
    raise RuntimeError("no free ports")


class PrivateSlurm:
    """Daemons of one cluster: by default 6 nodes in `batch`, 3 in `fast`.

    `nodes` are lines of ``slurm.conf`` by name, `more` are further lines of it.
    """

    def __init__(
        self,
        folder: Path,
        nodes: Mapping[str, str] = NODES,
        partitions: str = PARTITIONS,
        more: str = "",
    ) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.nodes, self.more = dict(nodes), f"{partitions}{more}"

    def run(self, *words: str, **variables: str) -> str:
        """Return the output of a program, which gets further variables."""
        program = shutil.which(words[0], path=SEARCH) or words[0]
        done = subprocess.run(
            (program, *words[1:]),
            env=self._environment() | variables,
            capture_output=True,
            text=True,
            timeout=30,
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("S", "_"))}
        return kept | {"SLURM_CONF": str(self.conf), "PATH": SEARCH}

    def _daemon(self, *words: str) -> None:
        log = (self.folder / f"{len(self.daemons)}.log").open("wb")
        program = shutil.which(words[0], path=SEARCH) or words[0]
        self.daemons.append(
            subprocess.Popen(
                [program, *words[1:]],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        )
        log.close()

    def _wait(
        self, ready: object, seconds: float = 60, awaited: str = "the daemons"
    ) -> None:
        until = time.monotonic() + seconds
        while not ready():  # type: ignore[operator]
            if time.monotonic() > until:
                raise RuntimeError(f"the private Slurm: waited in vain for {awaited}")
            time.sleep(0.05)

    def start(self) -> None:
        self.folder.chmod(0o755)
        key, sock = self.folder / "key", self.folder / "munge.sock"
        secret = self.folder / "munge"
        secret.mkdir(mode=0o700)
        subprocess.run(
            [shutil.which("mungekey", path=SEARCH) or "", "-c", "-k", str(key)],
            check=True,
        )
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self._write_conf(sock)
        self._daemon(
            *("munged", "-F", f"--key-file={key}", f"--socket={sock}"),
            *(f"--pid-file={secret / 'pid'}", f"--log-file={secret / 'log'}"),
            f"--seed-file={secret / 'seed'}",
        )
        self._wait(sock.exists)
        self.before_controller(sock)
        self._daemon("slurmctld", "-D", "-c")
        self._wait(lambda: "UP" in self._try("scontrol", "ping"))
        for name in self.nodes:
            self._daemon("slurmd", "-D", "-N", name)
        self.wait_until_idle()

    def before_controller(self, sock: Path) -> None:
        """Start what slurmctld needs and what needs munged: nothing."""

    def wait_until_idle(self) -> None:
        """Wait until all nodes are idle; resumed ones are ``idle*`` for seconds."""
        self._wait(lambda: set(self._try("sinfo", "-hN", "-o%T").split()) == {"idle"})

    def _try(self, *words: str) -> str:
        try:
            return self.run(*words)
        except RuntimeError:
            return ""

    def _write_conf(self, sock: Path) -> None:
        import pwd

        user = pwd.getpwuid(os.geteuid()).pw_name
        host = socket.gethostname().split(".")[0]
        ports = free_ports(len(self.nodes) + 1)
        lines = f"""
        ClusterName=private
        SlurmctldHost={host}(127.0.0.1)
        SlurmctldPort={ports[0]}
        SlurmUser={user}
        SlurmdUser={user}
        AuthType=auth/munge
        AuthInfo=socket={sock}
        CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
        StateSaveLocation={self.folder}/state
        SlurmdSpoolDir={self.folder}/spool/%n
        SlurmctldPidFile={self.folder}/slurmctld.pid
        SlurmdPidFile={self.folder}/slurmd-%n.pid
        ProctrackType=proctrack/linuxproc
        TaskPlugin=task/none
        JobAcctGatherType=jobacct_gather/none
        SwitchType=switch/none
        MpiDefault=none
        SelectType=select/cons_tres
        SelectTypeParameters=CR_CPU
        SchedulerParameters=bf_interval=1,sched_interval=1,bf_resolution=1,batch_sched_delay=0
        SlurmdParameters=config_overrides
        ReturnToService=2
        KillWait=1
        """
        lines += self.more + "".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            f"{rest}\n"
            for (name, rest), port in zip(self.nodes.items(), ports[1:], strict=True)
        )
        self.conf.write_text("\n".join(map(str.strip, lines.splitlines())) + "\n")
        (self.folder / "plugstack.conf").write_text("")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def stop(self) -> None:
        """End the jobs, then each daemon by its process id."""
        self._try("scancel", "--state=RUNNING")
        self._try("scancel", "--state=PENDING")
        time.sleep(0.3)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
