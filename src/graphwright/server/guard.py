"""What stands before every request: whom it comes from, how large it is, and how long it takes to come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphwright.server.limits import TEXT, ServerLimits

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANYWHERE = frozenset({"0.0.0.0", "::"})
FILES = "/api/predict/file"
SMALL = 8 * TEXT
"""Bytes of a JSON request: every character may be escaped."""
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


class Guard:
    """Refuses other hosts' names (a page elsewhere that points its own name at this machine), requests from other
    sites, and bodies that are too large or too slow; hands on bodies in one piece.
    """

    def __init__(self, app: ASGIApp, limits: ServerLimits, host: str) -> None:
        self.app = app
        self.limits = limits
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
        most = self.limits.bytes if scope["path"] == FILES else SMALL
        try:
            async with asyncio.timeout(self.limits.upload_seconds):
                body = await _body(receive, most)
        except TimeoutError:
            await _closing(408, "The request took too long to arrive.")(scope, receive, sending)
            return
        if body is None:
            return
        if len(body) > most:
            await self._too_large(most)(scope, receive, sending)
            return
        await self.app(scope, _replayed(body, receive), sending)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self.names is not None and name not in self.names:
            return _closing(400, "This server does not go by that name.")
        if headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET":
            return _closing(403, "Requests from other sites are not answered.")
        most = self.limits.bytes if scope["path"] == FILES else SMALL
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18 or int(length) > most:
            return self._too_large(most)
        return None

    def _too_large(self, most: int) -> Response:
        return _closing(413, f"That is too large: at most {most / 2**20:.1f} MB are read.")


def _closing(status: int, sentence: str) -> Response:
    """An error after which the rest of the request is not wanted."""
    return error_response(status, sentence, {"Connection": "close"})


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body, or a little more than `most` of it; None if the sender has gone."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if size > most or not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
