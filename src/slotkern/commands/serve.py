"""``slotkern serve``: a ledger over HTTP; ``slotkern ledger token`` adds its users."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import slotkern as sk
from slotkern.foundation.checks import integer, number
from slotkern.foundation.extras import extra
from slotkern.service.users import ROLES, add_user, read_users

from . import places
from .completion import complete_from
from .holds import LedgerPlace
from .pools import require_ledger, require_whole_nodes
from .terminal import show

with extra():
    import typer

__all__ = ["register", "token"]

#: New objects, and collections of younger ones, after which Python's collector walks
#: each generation. The oldest contains all bookings, and a walk over them frees little:
#: bookings are in no cycles, and refused changes make none.
_COLLECTIONS = (2_000, 10, 1_000)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(serve)


def serve(
    ledger: LedgerPlace,
    tokens: Annotated[
        Path,
        typer.Option(help="File of users, as written by `slotkern ledger token`."),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this host only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for a free one.")
    ] = 8765,
    rate: Annotated[
        float, typer.Option(help="Maximum requests of a user in a second.")
    ] = 1000.0,
    max_work: Annotated[
        int, typer.Option(help="Maximum units of counted work of a search.")
    ] = 5_000_000,
    max_body: Annotated[
        int, typer.Option(help="Maximum size of a request in bytes.")
    ] = 65_536,
) -> None:
    """Serve a ledger over HTTP with JSON: find, book, hold, events, a live page.

    Every request but the health check needs the token of a user. The
    service has no TLS: behind a proxy that has it, --host opens it to other
    machines.
    """
    require_ledger(ledger)
    integer("--port", port, 0, 65_535)
    with extra():
        from slotkern.service.app import Service
        from slotkern.service.server import Server
    from slotkern.service.backend import ServiceLimits

    limits = ServiceLimits(
        body=integer("--max-body", max_body, 1),
        work=integer("--max-work", max_work, 1),
        rate=number("--rate", rate, least=1),
    )
    users = read_users(tokens)
    with sk.SlotPool.open(places.where_of(ledger)) as pool:
        require_whole_nodes(ledger, pool)
        gc.freeze()  # no collection walks the bookings that were open at the start
        gc.set_threshold(*_COLLECTIONS)  # and rarely those that come
        server = Server(Service(pool, users, limits), host, port)
        sockets = server.listen()  # a client may connect as it reads the address
        address, bound = sockets[0].getsockname()[:2]
        address = f"[{address}]" if ":" in address else address  # IPv6
        show(f"{ledger}: http://{address}:{bound}, {len(users):,} users")
        server.run(sockets=sockets)


def token(
    tokens: Annotated[Path, typer.Argument(help="File of users; made if missing.")],
    user: Annotated[str, typer.Argument(help="Name of the user.")],
    role: Annotated[
        str,
        typer.Option(
            autocompletion=complete_from(ROLES),
            help="read: search and list; book: also book, and release one's own; "
            "administer: also change others' bookings, nodes and time.",
        ),
    ],
) -> None:
    """Add a user of `slotkern serve`, and print the token.

    The file keeps only a digest of the token, so it is printed this once.
    """
    print(add_user(tokens, user, role))
