"""The HTTP server of a service: uvicorn on one socket of this process."""

from __future__ import annotations

import socket

from slotkern.foundation.extras import extra
from slotkern.service.app import Service

with extra():
    import uvicorn

__all__ = ["Server"]

#: Seconds that requests have to end after the signal to stop.
_GRACE = 3
#: Connections that are accepted in a round of the event loop. libuv accepts one of each
#: socket, and a round answers all requests that wait: of 128 clients that came at once
#: and sent requests without a pause, the last one waited 1.3 s to be accepted.
_ACCEPTS = 16


class Server(uvicorn.Server):
    """A server that ends the streams of events of its service before it waits.

    Parameters
    ----------
    service : Service
    host : str
    port : int
        0 for a free one; see `listen`.
    """

    def __init__(self, service: Service, host: str, port: int) -> None:
        self._service = service
        super().__init__(
            uvicorn.Config(
                service,
                host=host,
                port=port,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE,
            )
        )

    def listen(self) -> list[socket.socket]:
        """Return the socket and copies of it; clients can connect from now on."""
        found = self.config.bind_socket()
        found.listen()
        return [found, *(found.dup() for _ in range(_ACCEPTS - 1))]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, which would go on without end, then the other requests."""
        self._service.end_streams()
        await super().shutdown(sockets)
