"""A client of HTTP/1.1 that is small enough to be two hundred of them, and rude enough to send anything."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

JSON = "application/json"


@dataclass(frozen=True)
class Reply:
    """status: 0 where the connection was closed without an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


NOTHING = Reply(0, {}, b"")


@dataclass(frozen=True)
class Target:
    """A server on this machine; any other is refused."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if not ip_address(self.host).is_loopback:
            raise ValueError(f"{self.host} is not a loopback address: only a server on this machine is tried")

    @classmethod
    def of(cls, address: str) -> Target:
        """From `http://127.0.0.1:8100/`."""
        split = urlsplit(address)
        return cls(split.hostname or "", split.port or 80)

    async def connect(self, buffer: int | None = None) -> Connection:
        """buffer: bytes of answers that the system keeps for us before the server must wait."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        plug = socket.socket(family, socket.SOCK_STREAM)
        plug.setblocking(False)
        if buffer is not None:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        try:
            await asyncio.get_running_loop().sock_connect(plug, (self.host, self.port))
            reader, writer = await asyncio.open_connection(sock=plug)
        except BaseException:
            plug.close()
            raise
        return Connection(self, reader, writer)

    async def sent(self, request: bytes, seconds: float) -> Reply:
        """What is answered to these bytes on a connection of their own."""
        connection = await self.connect()
        try:
            async with asyncio.timeout(seconds):
                return await connection.exchange(request)
        finally:
            connection.close()

    def request(self, method: str, path: str, body: bytes = b"", kind: str = "application/octet-stream") -> bytes:
        """A request as it goes over the wire."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", f"Content-Length: {len(body)}"]
        lines += [f"Content-Type: {kind}"] if body else []
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def question(self, path: str, **given: Any) -> bytes:
        """A request of JSON."""
        return self.request("POST", path, json.dumps(given).encode(), JSON)


@dataclass(frozen=True)
class Connection:
    """Kept for one request after another."""

    target: Target
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchange(self, request: bytes) -> Reply:
        """Send bytes and read the answer, also where it comes before everything was sent."""
        sending = asyncio.ensure_future(self._send(request))
        try:
            return await self._reply()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            return NOTHING
        finally:
            sending.cancel()

    def close(self) -> None:
        self.writer.close()

    async def _send(self, request: bytes) -> None:
        try:
            self.writer.write(request)
            await self.writer.drain()
        except ConnectionError:
            return

    async def _reply(self) -> Reply:
        status, headers = 100, {}
        while status == 100:  # go on, it says: we do
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.rstrip().split("\r\n")
            status = int(first.split()[1])
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = headers.get("content-length")
        body = await (self.reader.read() if length is None else self.reader.readexactly(int(length)))
        return Reply(status, headers, body)
