"""Tests of ``slotkern serve`` over a socket, and of the file of its users."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from service import JOB, Serving, make_ledger, make_users, started

import slotkern as sk
from slotkern.service.app import Service
from slotkern.service.backend import ServiceLimits
from slotkern.service.server import Server
from slotkern.service.users import add_user, digest_of, read_users


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """Run ``slotkern serve`` on a free port of the loopback address."""
    with started(tmp_path) as found:
        yield found


def test_a_service_answers_over_a_socket(serving: Serving, tmp_path: Path) -> None:
    address, tokens = serving
    assert ask(address, "GET", "/healthz")[0] == 200
    assert ask(address, "GET", "/v1")[0] == 401
    header = {"authorization": f"Bearer {tokens['rob']}"}
    with closing(http.client.HTTPConnection(*address, timeout=60)) as stream:
        stream.request("GET", "/v1/events", headers=header)
        events = stream.getresponse()
        body = {"request": JOB, "name": "ocean"}
        status, booking = ask(address, "POST", "/v1/bookings", body, tokens["ann"])
        assert status == 201
        lines = [events.readline() for _ in range(3)]
        events.close()
    assert lines[0] == f"id: {booking['id']}\n".encode()
    assert json.loads(lines[2].removeprefix(b"data: "))["name"] == "ocean"
    with sk.SlotPool.open(tmp_path / "site.db") as pool:
        assert pool.bookings()["owner"].tolist() == ["ann"]


def test_a_server_accepts_on_copies_of_one_socket(tmp_path: Path) -> None:
    with make_ledger(tmp_path) as pool:
        service = Service(pool, {}, ServiceLimits())
        with ExitStack() as stack:
            sockets = Server(service, "127.0.0.1", 0).listen()
            for each in sockets:
                stack.enter_context(each)
            assert len({each.getsockname() for each in sockets}) == 1
            assert len(sockets) > 1


def test_a_signal_ends_open_streams(tmp_path: Path) -> None:
    with started(tmp_path) as (address, tokens):
        header = {"authorization": f"Bearer {tokens['rob']}"}
        stream = http.client.HTTPConnection(*address, timeout=60)
        stream.request("GET", "/v1/events", headers=header)
        events = stream.getresponse()
    with closing(stream):
        assert events.read() == b""  # no part of it is missing


def ask(
    address: tuple[str, int], method: str, path: str, body: Any = None, token: str = ""
) -> tuple[int, Any]:
    """Return the status and the object of a response."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with closing(http.client.HTTPConnection(*address, timeout=60)) as connection:
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_a_token_is_printed_once_and_stored_as_a_digest(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    done = run("ledger", "token", users, "ann", "--role", "book")
    token = done.output.strip()
    assert token not in users.read_text()
    assert users.stat().st_mode & 0o777 == 0o600
    assert read_users(users)[digest_of(token)] == ("ann", "book")
    again = run("ledger", "token", users, "ann", "--role", "read")
    assert again.exit_code == 2
    assert "there is a user ann" in again.stderr
    odd = run("ledger", "token", users, "a b", "--role", "bookq")
    assert odd.exit_code == 2


GOOD = f'[ann]\nrole = "book"\nsha256 = "{"0" * 64}"\n'


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ["bea"]), ("# no users", ["bea"]), (GOOD.rstrip(), ["ann", "bea"])],
)
def test_a_user_is_added_after_any_last_line(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    path = tmp_path / "users.toml"
    path.write_text(text)
    path.chmod(0o600)
    token = add_user(path, "bea", "read")
    users = read_users(path)
    assert [user.name for user in users.values()] == names
    assert users[digest_of(token)] == ("bea", "read")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no users"),
        ("[ann", "users.toml: "),
        ("ann = 1", r"\[ann\] must be a table"),
        ('["a b"]', "letters, digits"),
        (GOOD + "x = 1", "unknown key 'x'"),
        (GOOD.replace("role", "rol"), "did you mean 'role'"),
        (GOOD.replace("book", "bookq"), "did you mean 'book'"),
        (GOOD.replace("0" * 64, "0"), "64 hexadecimal digits"),
        ('[ann]\nrole = "book"\n', "sha256 is missing"),
        (GOOD + GOOD.replace("ann", "bea"), "bea and ann have one token"),
        ("#" * (5 << 20), "more than"),
    ],
)
def test_invalid_files_of_users_are_refused(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "users.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ValueError, match=words):
        read_users(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610])
def test_files_that_others_may_use_are_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users.toml"
    path.write_text(GOOD)
    path.chmod(mode)
    with pytest.raises(PermissionError, match="chmod 600"):
        read_users(path)
    os.chmod(path, 0o600)
    assert len(read_users(path)) == 1


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    make_ledger(tmp_path).close()
    users, _ = make_users(tmp_path)
    site = tmp_path / "site.db"
    for options in (["--port", "70000"], ["--rate", "0"], ["--max-work", "0"]):
        done = run("serve", site, "--tokens", users, *options)
        assert done.exit_code == 2, options
        assert options[0] in done.stderr
    assert run("serve", tmp_path / "pool.npz", "--tokens", users).exit_code == 2
