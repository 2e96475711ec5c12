"""Connections that are slow, silent, deaf or too many, against a server of one sentence."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from benchmarks.http_client import Target
from benchmarks.server_attacks import deaf, silent, slow_bodies, slow_heads
from graphwright.server.connections import bounded
from graphwright.server.guard import Guard
from graphwright.server.limits import BusyError, ServerLimits
from graphwright.server.worker import Worker

HEAD = b"GET /held HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Small:
    """Answers a sentence; at /held not before it is let go. left: how many went away first."""

    def __init__(self):
        self.go, self.held, self.left = asyncio.Event(), asyncio.Event(), 0

    async def __call__(self, scope, receive, send):
        if scope["path"] == "/held":
            self.held.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.left += 1
                raise
        content = b"x" * 200_000 if scope["path"] == "/page.js" else b"a sentence"
        await Response(content)(scope, receive, send)


@asynccontextmanager
async def small(**limits):
    """A server of `Small`, where to find it, and its connections."""
    bounds = ServerLimits(**{"upload_seconds": 0.5, "megabytes": 1.0, **limits})
    app, state = Small(), ServerState()
    config = uvicorn.Config(Guard(app, bounds, "127.0.0.1"), log_level="error")
    protocol = bounded(bounds)
    server = await asyncio.get_running_loop().create_server(
        lambda: protocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    try:
        yield Target(*server.sockets[0].getsockname()), app, state.connections
    finally:
        app.go.set()
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.gather(*state.tasks, return_exceptions=True)


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def attempt(given):
    asyncio.run(given())


@pytest.mark.parametrize("kind", [slow_heads, slow_bodies, silent, deaf])
def test_whoever_takes_too_long_is_closed(kind):
    async def given():
        async with small() as (target, _, connections):
            assert await kind(target, 5, 30.0) == 5
            await until(lambda: not connections)

    attempt(given)


def test_half_a_head_is_told_that_it_was_too_slow():
    async def given():
        async with small() as (target, _, _):
            assert (await target.sent(HEAD[:20], 20)).status == 408

    attempt(given)


def test_the_one_without_a_request_for_longest_makes_room():
    async def given():
        async with small(connections=3, upload_seconds=60.0) as (target, _, connections):
            waiting = [await target.connect() for _ in range(3)]
            assert (await target.sent(target.request("GET", "/"), 20)).status == 200
            assert (await waiting[0].exchange(b"")).status == 429
            assert (await waiting[2].exchange(target.request("GET", "/"))).status == 200
            assert len(connections) <= 3
            for each in waiting:
                each.close()

    attempt(given)


def test_where_all_are_busy_the_next_is_told_to_come_back():
    async def given():
        async with small(connections=1) as (target, app, _):
            first = asyncio.ensure_future(target.sent(HEAD, 20))
            await app.held.wait()
            second = await target.connect()
            reply = await second.exchange(b"")
            assert (reply.status, reply.headers["retry-after"]) == (429, "5")
            second.close()
            app.go.set()
            assert (await first).status == 200

    attempt(given)


def test_a_refusal_is_read_although_the_file_is_still_coming():
    async def given():
        async with small() as (target, _, connections):
            request = target.request("POST", "/api/predict/file", b"C" * (8 * 2**20))
            assert (await target.sent(request, 20)).status == 413
            endless = request.replace(b"Content-Length: 8388608", b"Content-Length: 999999999999")
            assert (await target.sent(endless, 20)).status == 413
            await until(lambda: not connections)

    attempt(given)


def test_requests_together_are_bounded():
    async def given():
        async with small(held_megabytes=1.5, upload_seconds=60.0) as (target, _, _):
            request = target.request("POST", "/api/predict/file", b"C" * 2**20)
            first = await target.connect()
            first.writer.write(request[:-1])
            await first.writer.drain()
            await asyncio.sleep(0.5)
            assert (await target.sent(request, 20)).status == 429
            assert (await first.exchange(b"C")).status == 200
            first.close()
            assert (await target.sent(request, 20)).status == 200

    attempt(given)


def test_whoever_leaves_is_forgotten():
    async def given():
        async with small() as (target, app, connections):
            leaving = await target.connect()
            leaving.writer.write(HEAD)
            await app.held.wait()
            leaving.close()
            await until(lambda: app.left == 1 and not connections)

    attempt(given)


def test_what_is_not_http_is_told_so_in_json():
    async def given():
        async with small() as (target, _, _):
            reply = await target.sent(b"\x16\x03\x01 hello\r\n\r\n", 20)
            assert reply.status == 400
            assert b'{"error"' in reply.body
            assert "default-src 'none'" in reply.headers["content-security-policy"]

    attempt(given)


def test_a_worker_that_cannot_be_started_is_a_reason_to_come_back(monkeypatch):
    async def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    worker = Worker({}, ServerLimits())
    for _ in range(2):  # the first failure must leave the turn to the second
        with pytest.raises(BusyError, match="no more processes"):
            asyncio.run(worker.ask({}))


def test_only_a_server_on_this_machine_is_tried():
    with pytest.raises(ValueError, match="not a loopback"):
        Target("192.0.2.1", 80)
