"""A PostgreSQL server of the tests: a temporary cluster on loopback.

Servers refuse to run as root, so root runs them as the user nobody.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Cluster", "missing", "temporary_cluster"]

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}

#: Without a preloaded sanitizer, which would deadlock the server's programs.
_ENVIRONMENT = {key: of for key, of in os.environ.items() if key != "LD_PRELOAD"}


def _programs() -> Path | None:
    """Return the folder of initdb and pg_ctl of the newest version."""
    found = shutil.which("initdb")
    if found and shutil.which("pg_ctl"):
        return Path(found).parent
    debian = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(debian, key=lambda p: int(p.parts[-3])).parent if debian else None


def missing() -> str:
    """Return why the tests of PostgreSQL cannot run; "" if they can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'slotkern[postgres]'"
    if _programs() is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    return ""


class Cluster:
    """A running server in a folder of its own.

    Attributes
    ----------
    url : str
        The URL of its database, without a pool.
    """

    def __init__(self, folder: Path) -> None:
        programs = _programs()
        assert programs is not None
        self._programs, self._data = programs, folder / "data"
        self._user: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid}
            self._user["extra_groups"] = []
        self._log = folder / "log"
        words = ("-U", "site", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self._run("initdb", *words, "-D", self._data)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = _SETTINGS | {"port": str(port), "unix_socket_directories": folder}
        with open(self._data / "postgresql.conf", "a", encoding="ascii") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        self.url = f"postgresql://site@127.0.0.1:{port}/postgres"
        self.start()

    def _run(self, program: str, *words: object) -> None:
        command = [str(self._programs / program), *map(str, words)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd="/",
            env=_ENVIRONMENT,
            check=False,
            timeout=300,
            **self._user,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def set(self, name: str, value: str) -> None:
        """Change a setting and restart the server."""
        with open(self._data / "postgresql.conf", "a", encoding="ascii") as file:
            file.write(f"{name} = '{value}'\n")
        self.stop()
        self.start()

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._log)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; "immediate" is a crash."""
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", self._data)


@contextmanager
def temporary_cluster() -> Iterator[Cluster]:
    """Yield a new cluster; stop and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="slotkern-pg-"))
    try:
        cluster = Cluster(folder)
        try:
            yield cluster
        finally:
            cluster.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
