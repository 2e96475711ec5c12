"""What stands before every request: whom it comes from, how large it is, and how long it takes to come."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphwright.server.limits import BUSY, TEXT, ServerLimits

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANYWHERE = frozenset({"0.0.0.0", "::"})
FILES = "/api/predict/file"
SMALL = 8 * TEXT
"""Bytes of a JSON request: every character may be escaped."""
LATE = "The request took too long to arrive."
SOON = {"Retry-After": "5"}
"""With every 429: when to try again."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def error_response(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as JSON, in characters that every connection carries."""
    return Response(json.dumps({"error": sentence}), status, headers, media_type="application/json")


def error_bytes(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> bytes:
    """The same for a connection that is closed afterwards, as it goes over the wire."""
    response = error_response(status, sentence, {**HEADERS, **(headers or {}), "Connection": "close"})
    head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    head += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*head, b"", bytes(response.body)])


class Guard:
    """Refuses other hosts' names (a page elsewhere that points its own name at this machine), requests from other
    sites, and bodies that are too large or too slow; hands on bodies in one piece. Whoever gives up waiting is
    forgotten.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, host: str) -> None:
        self.app = app
        self.limits = limits
        self.held = 0
        self.names = None if host in ANYWHERE else {host.lower()} | (LOOPBACK if host in LOOPBACK else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        sending = _with_headers(send)
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, sending)
            return
        most = self._most(scope)
        parts: list[bytes] = []
        try:
            try:
                async with asyncio.timeout(self.limits.upload_seconds):
                    refused = await self._read(receive, parts, most)
            except TimeoutError:
                refused = error_response(408, LATE, {"Connection": "close"})
            except ConnectionError:
                return
            if refused is not None:
                await refused(scope, receive, sending)
                return
            await _while_wanted(self.app, scope, b"".join(parts), receive, sending)
        finally:
            self.held -= sum(map(len, parts))

    async def _read(self, receive: Receive, parts: list[bytes], most: int) -> Response | None:
        """Add the body to `parts`; an answer if it is not wanted. A `ConnectionError` if the sender has gone."""
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the sender has gone")
            part = message.get("body", b"")
            parts.append(part)
            self.held += len(part)
            size += len(part)
            if size > most:
                return _too_large(most)
            if self.held > self.limits.held_bytes:
                return error_response(429, BUSY, SOON)
            if not message.get("more_body", False):
                return None

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.names is not None and name not in self.names:
            return error_response(400, "This server does not go by that name.")
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            return error_response(403, "Requests from other sites are not answered.")
        most = self._most(scope)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > most:
            return _too_large(most)
        return None

    def _most(self, scope: Scope) -> int:
        """Bytes of a body."""
        return self.limits.bytes if scope["path"] == FILES else SMALL


def _too_large(most: int) -> Response:
    return error_response(413, f"That is too large: at most {most / 2**20:.1f} MB are read.")


async def _while_wanted(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
    """Answer, unless the sender goes away first: then the place in the queue is free."""
    given = asyncio.Event()

    async def replay() -> Message:
        if given.is_set():
            await asyncio.Event().wait()  # the end of the connection is our business
        given.set()
        return {"type": "http.request", "body": body, "more_body": False}

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    answering = asyncio.ensure_future(app(scope, replay, send))
    leaving = asyncio.ensure_future(gone())
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
