"""Run the server until it is interrupted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from graphwright.server.app import create_app
from graphwright.server.catalogue import Sources
from graphwright.server.guard import LOOPBACK
from graphwright.server.limits import ServerLimits


def serve(sources: Sources, host: str, port: int, limits: ServerLimits, say: Callable[[str], None]) -> None:
    """Bind, load, say where, and answer until interrupted. Port 0 takes a free one."""
    if host not in LOOPBACK:
        say(
            f"{host} is not a loopback address: whoever can reach this machine can use its processor. "
            "There is no password and no encryption."
        )
    config = uvicorn.Config(
        create_app(sources, limits, host),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        ws="none",
    )
    with _bound(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        ready = f"graphwright is at http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C ends it)"
        _Announcing(config, lambda: say(ready)).run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"cannot listen at port {port}: it must be in 0..65535")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise OSError(f"cannot listen at {host}, port {port}: {error}") from error
    return listening


class _Announcing(uvicorn.Server):
    """Says when the worker is there and requests are answered."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, *arguments: Any, **named: Any) -> None:
        """Start, then say so."""
        await super().startup(*arguments, **named)
        if self.started:
            self._ready()
