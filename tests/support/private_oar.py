"""A private OAR of nodes without daemons on the loopback interface, for tests.

The server and its commands run as the user `oar` with a configuration and a database of
their own. Jobs do not start, because no node answers. OAR's wrappers read one fixed
configuration, so the tests run its programs through scripts in a folder of their own.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

import postgres
from private_slurm import USER, free_ports

LIBRARY = Path("/usr/lib/oar")
DATABASE = LIBRARY / "database"
PROGRAMS = ("oarsub", "oarstat", "oarnodes", "oardel", "oarnodesetting", "oarproperty")
#: Rules of the default configuration: root submits no jobs, two reservations a user.
_ADMISSION = ("%Prevent users oar and root%", "%number of advance reservations%")
GROUPS = {"batch": [f"a{k}" for k in range(1, 7)], "fast": ["b1", "b2", "b3"]}


def missing_oar() -> str:
    """Return why a private OAR cannot run; "" if it can."""
    if lacking := postgres.missing():
        return lacking
    names = (*PROGRAMS, "Almighty")
    if lacking := ", ".join(name for name in names if not (LIBRARY / name).exists()):
        return f"not installed: {lacking} (apt-get install oar-server oar-user)"
    return "" if os.geteuid() == 0 else "only root can run programs as the user oar"


class PrivateOar:
    """A server of 9 nodes, whose property `cluster` is batch or fast."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        import psycopg

        port = self.database.rsplit(":", 1)[1].partition("/")[0]
        with psycopg.connect(self.database, autocommit=True) as link:
            for name in ("oar", "oar_ro"):
                link.execute(f"create role {name} login superuser")
            link.execute("create database oar owner oar")
        url = f"postgresql://oar@127.0.0.1:{port}/oar"
        with psycopg.connect(url, autocommit=True) as link:
            for name in ("structure", "default_admission_rules"):
                link.execute((DATABASE / f"pg_{name}.sql").read_text())
            link.execute((DATABASE / "default_data.sql").read_text())
            for text in _ADMISSION:
                link.execute("delete from admission_rules where rule like %s", [text])
        owner = pwd.getpwnam("oar")
        os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self.folder.chmod(0o755)
        self._write_conf(port)
        for name in (*PROGRAMS, "Almighty"):
            self._write_script(name)
        self.run("oarproperty", "-a", "cluster", "-c")
        for group, names in GROUPS.items():
            for name in names:
                self.run("oarnodesetting", "-a", "-h", name, "-p", f"cluster={group}")
        log = (self.folder / "server.log").open("wb")
        self.server = subprocess.Popen(
            [str(self.folder / "Almighty")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self._wait_until_it_reserves()

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [str(self.folder / words[0]), *words[1:]],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def _wait_until_it_reserves(self) -> None:
        until = time.monotonic() + 60
        log = self.folder / "oar.log"
        while not (log.exists() and "Current state" in log.read_text()):
            if time.monotonic() > until:
                raise RuntimeError("the private OAR does not start")
            time.sleep(0.1)

    def _write_conf(self, port: str) -> None:
        order = "network_address ASC, resource_id ASC"
        values = {
            "DB_TYPE": "Pg",
            "DB_HOSTNAME": "127.0.0.1",
            "DB_PORT": port,
            "DB_BASE_NAME": "oar",
            "DB_BASE_LOGIN": "oar",
            "DB_BASE_PASSWD": "",
            "DB_BASE_LOGIN_RO": "oar_ro",
            "DB_BASE_PASSWD_RO": "",
            "SERVER_HOSTNAME": "127.0.0.1",
            "SERVER_PORT": free_ports(1)[0],
            "OARSUB_DEFAULT_RESOURCES": "/resource_id=1",
            "OARSUB_NODES_RESOURCES": "network_address",
            "LOG_LEVEL": 3,
            "OAR_RUNTIME_DIRECTORY": self.folder,
            "LOG_FILE": self.folder / "oar.log",
            "DEPLOY_HOSTNAME": "127.0.0.1",
            "COSYSTEM_HOSTNAME": "127.0.0.1",
            "OPENSSH_CMD": "/bin/false",
            "FINAUD_FREQUENCY": 0,
            "SCHEDULER_TIMEOUT": 30,
            "SCHEDULER_NB_PROCESSES": 1,
            "SCHEDULER_RESOURCE_ORDER": order,
            "SCHEDULER_RESOURCE_ORDER_ADV_RESERVATIONS": order,
            "SCHEDULER_PRIORITY_HIERARCHY_ORDER": "network_address/resource_id",
            "SCHEDULER_JOB_SECURITY_TIME": 0,
            "SCHEDULER_GANTT_HOLE_MINIMUM_TIME": 1,
            "SCHEDULER_MIN_TIME_BETWEEN_2_CALLS": 1,
        }
        lines = [f'{key}="{value}"\n' for key, value in values.items()]
        (self.folder / "oar.conf").write_text("".join(lines))

    def _write_script(self, name: str) -> None:
        path, owner = self.folder / name, pwd.getpwnam("oar")
        path.write_text(
            "#!/bin/sh\n"
            f"export OARCONFFILE={self.folder}/oar.conf OARDIR={LIBRARY} OARUSER=oar\n"
            f"export OARDO_USER={USER} OARDO_UID={os.geteuid()} USER=oar\n"
            f"export HOME={self.folder} SHELL=/bin/sh LOGNAME=oar\n"
            f"export PATH=/usr/sbin:/usr/bin:/sbin:/bin:{LIBRARY}/oardodo\n"
            f"cd {self.folder}\n"
            f"exec {shutil.which('setpriv')} --reuid={owner.pw_uid} "
            f'--regid={owner.pw_gid} --clear-groups {LIBRARY}/{name} "$@"\n'
        )
        path.chmod(0o755)

    def stop(self) -> None:
        """End the server and the processes that it started, each by its id."""
        if self.server is None:
            return
        until = time.monotonic() + 20
        while found := self._processes():
            for pid in found:
                try:
                    os.kill(pid, 15 if time.monotonic() < until else 9)
                except ProcessLookupError:
                    continue  # it ended by itself
            self.server.poll()
            time.sleep(0.2)
        self.server.wait(20)

    def _processes(self) -> list[int]:
        """Return the ids of the running processes with this configuration."""
        mark, found = f"OARCONFFILE={self.folder}/oar.conf\0".encode(), []
        for each in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in each.read_bytes():
                    found.append(int(each.parent.name))
            except OSError:
                continue  # it ended by itself
        return found
