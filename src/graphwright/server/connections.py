"""Connections, how many and how long: uvicorn alone keeps one that says nothing, or takes nothing, for ever."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphwright.server.guard import LATE, SOON, error_bytes
from graphwright.server.limits import BUSY, ServerLimits

LINGER = 2.0
"""Seconds in which the rest of a request that was refused may still come: a connection that is closed at once
takes the answer with it."""


class Connection(H11Protocol):
    """Closed where a request's head does not arrive, or an answer is not taken, in time.

    Where there are too many, the one that has been without a request for longest makes room for the next.
    """

    limits: ClassVar[ServerLimits]
    _since: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self.limits.upload_seconds)
        if len(self.connections) > self.limits.connections:
            waiting = [each for each in self.connections if isinstance(each, Connection) and each.unused]
            # Ourselves, if nobody else waits.
            min(waiting, key=lambda each: each._since)._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait(LINGER if self.conn.their_state is h11.SEND_BODY else self.limits.upload_seconds)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        if self.unused or not self.cycle.response_started:
            self._say(error_bytes(400, "That is not a request of HTTP/1.1 that can be read."))
        else:
            self.transport.abort()

    @property
    def unused(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._since = self.loop.time()
        self._timer = self.loop.call_later(seconds, self._out_of_time)

    def _out_of_time(self) -> None:
        if self.transport.get_write_buffer_size() or (self.unused and self.conn.their_state is h11.SEND_BODY):
            self.transport.abort()
        elif self.unused and not self.transport.is_closing():
            self._say(error_bytes(408, LATE))

    def _make_room(self) -> None:
        self._say(error_bytes(429, BUSY, SOON))

    def _say(self, answer: bytes) -> None:
        """The last word: whatever is not taken of it at once is dropped with the connection."""
        self.transport.write(answer)
        self.transport.close()
        self._timer = self.loop.call_later(LINGER, self.transport.abort)


def bounded(limits: ServerLimits) -> type[Connection]:
    """The kind of connection that uvicorn is to make."""
    return type("BoundedConnection", (Connection,), {"limits": limits})
