"""Requests that nobody honest makes, and clients that take their time over them."""

from __future__ import annotations

import asyncio
import gzip
import io
import random
import struct
import zipfile
import zlib
from collections.abc import Mapping
from time import perf_counter

from benchmarks.http_client import JSON, NOTHING, Reply, Target

MEGABYTE = 2**20
PREDICT = "/api/predict"
FILE = "/api/predict/file?model={model}&name={name}"


def traversals(target: Target) -> dict[str, bytes]:
    """Paths that lead out of the page's five files."""
    paths = [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%252e%252e/%252e%252e/etc/passwd",
        "/..%c0%af..%c0%afetc/passwd",
        "/page.js/../../limits.py",
        "/page.js%00.html",
        "/page.js/",
        "//etc/passwd",
        "/..\\..\\worker.py",
        "/..%5c..%5cworker.py",
        "/file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data",
        "/.git/config",
        "/.env",
        "*",
    ]
    asked = {f"GET {path}": target.request("GET", path) for path in paths}
    names = ["../../etc/passwd", "/etc/passwd", "..%5c..%5cwindows%5cwin.ini", "a%00.csv", "%ff%fe.csv"]
    asked |= {
        f"file {name}": target.request("POST", FILE.format(model="qm9", name=name), b"\x01\x02") for name in names
    }
    models = ["../../../etc", "/etc/passwd", "qm9/../qm9", "qm9%00", "http://127.0.0.1/"]
    return asked | {
        f"model {name}": target.request("POST", FILE.format(model=name, name="a.smi"), b"CCO") for name in models
    }


def headers(target: Target) -> dict[str, bytes]:
    """Requests whose framing or headers are wrong, or mean something else to somebody in between."""
    host = f"Host: {target.host}:{target.port}\r\n"
    line = "POST /api/predict HTTP/1.1\r\n"
    json = "Content-Type: application/json\r\n"
    body = '{"model": "qm9", "text": "CCO"}'
    written = {
        "no host": "GET / HTTP/1.1\r\n\r\n",
        "an empty host": "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "two hosts": f"GET / HTTP/1.1\r\n{host}Host: evil.example\r\n\r\n",
        "another host": "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "a host with a name before it": "GET / HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n\r\n",
        "a host with a name behind it": "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n",
        "HTTP/1.0 without a host": "GET / HTTP/1.0\r\n\r\n",
        "HTTP/0.9": "GET /\r\n\r\n",
        "HTTP/9.9": f"GET /nowhere HTTP/9.9\r\n{host}\r\n",
        "HTTP/2's first words": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "no method": f" / HTTP/1.1\r\n{host}\r\n",
        "an odd method": f"gEt$ / HTTP/1.1\r\n{host}\r\n",
        "CONNECT": f"CONNECT evil.example:443 HTTP/1.1\r\n{host}\r\n",
        "TRACE": f"TRACE / HTTP/1.1\r\n{host}\r\n",
        "a long path": f"GET /{'a' * 60_000} HTTP/1.1\r\n{host}\r\n",
        "a longer path": f"GET /{'a' * 600_000} HTTP/1.1\r\n{host}\r\n",
        "a long header": f"GET /nowhere HTTP/1.1\r\n{host}X: {'a' * 600_000}\r\n\r\n",
        "ten thousand headers": f"GET /nowhere HTTP/1.1\r\n{host}" + "X: y\r\n" * 10_000 + "\r\n",
        "a header without a name": f"GET / HTTP/1.1\r\n{host}: x\r\n\r\n",
        "a space in a name": f"GET / HTTP/1.1\r\n{host}Content-Length : 3\r\n\r\nabc",
        "a zero in a value": f"GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n",
        "line feeds alone and a fold": f"GET /nowhere HTTP/1.1\n{host}X: a\n b\n\n",
        "a length below zero": f"{line}{host}{json}Content-Length: -4\r\n\r\n",
        "a length with a sign": f"{line}{host}{json}Content-Length: +4\r\n\r\n{{}}",
        "a length in hexadecimal": f"{line}{host}{json}Content-Length: 0x4\r\n\r\n{{}}",
        "two lengths": f"{line}{host}{json}Content-Length: 2\r\nContent-Length: 31\r\n\r\n{body}",
        "a length of many digits": f"{line}{host}{json}Content-Length: {'9' * 400}\r\n\r\n{body}",
        "a length and chunks": f"{line}{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
        "chunks that are none": f"{line}{host}{json}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}",
        "chunks within chunks": f"{line}{host}{json}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "an unknown encoding": f"{line}{host}{json}Transfer-Encoding: gzip\r\n\r\n{body}",
        "an unmet expectation": f"{line}{host}{json}Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n",
        "from another site": f"{line}{host}{json}Sec-Fetch-Site: cross-site\r\nContent-Length: 31\r\n\r\n{body}",
        "a form": f"{line}{host}Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\n--x--",
        "no type": f"{line}{host}Content-Length: 3\r\n\r\nabc",
        "another encoding": f"{line}{host}{json}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        "an upgrade": f"{line}{host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
        "TLS": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\xaa" * 200,
        "bytes": "\x00\xff" * 4000,
    }
    return {name: text.encode("latin-1") for name, text in written.items()}


def uploads(target: Target) -> dict[str, bytes]:
    """Bodies that are too large, damaged, or larger than they look."""
    draw = random.Random(0)
    noise = draw.randbytes(4096)
    laughs = '<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a "' + "ha" * 500 + '">'
    laughs += "".join(f'<!ENTITY {b} "{f"&{a};" * 20}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    outside = '<!DOCTYPE z [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(4 * MEGABYTE))
    files: dict[str, tuple[str, str, bytes]] = {
        "too large a file": ("qm9", "a.smi", b"C" * (6 * MEGABYTE)),
        "nothing": ("coloring10", "a.png", b""),
        "a picture of ten thousand million pixels": ("coloring10", "a.png", _png(100_000, 100_000)),
        "a gzip bomb": ("ms2scaffold", "a.mgf.gz", gzip.compress(bytes(200 * MEGABYTE))),
        "a zip bomb": ("qm9", "a.npy", packed.getvalue()),
        "an array that is larger than it is": ("qm9", "a.npy", _npy("(1000000000, 2048)")),
        "an array of objects": ("qm9", "a.npy", _npy("(1,)", "|O") + b"cos\nsystem\n(S'true'\ntR."),
        "an array with code for a shape": ("qm9", "a.npy", _npy("__import__('os')")),
        "a thousand million laughs": ("ms2scaffold", "a.mzml", f"{laughs}]><mzML>&i;</mzML>".encode()),
        "a file from outside": ("ms2scaffold", "a.mzml", f"{outside}<mzML>&a;</mzML>".encode()),
        "a line of four megabytes": ("qm9", "a.csv", b"C," * (2 * MEGABYTE)),
        "line breaks alone": ("ms2scaffold", "a.mgf", b"\n" * (4 * MEGABYTE)),
        "a hundred thousand spectra without peaks": ("ms2scaffold", "a.mgf", b"BEGIN IONS\nEND IONS\n" * 100_000),
        "numbers that are none": ("ms2scaffold", "a.mgf", b"BEGIN IONS\nPEPMASS=nan\n1e999 inf\nEND IONS\n"),
        "many rings": ("qm9", "a.smi", b"C" + b"1" * 590),
        "many branches": ("qm9", "a.smi", b"C(" * 290 + b"C" + b")" * 290),
    }
    suffixes = (".smi", ".csv", ".tsv", ".npy", ".mgf", ".msp", ".mzml", ".json", ".jsonl", ".parquet", ".png", "")
    for suffix in suffixes:
        files[f"noise{suffix} as a molecule"] = ("qm9", f"a{suffix}", noise)
        files[f"noise{suffix} as a spectrum"] = ("ms2scaffold", f"a{suffix}", noise)
    files["noise as a picture"] = ("coloring10", "a.png", b"\x89PNG\r\n\x1a\n" + noise)
    sent = {
        what: target.request("POST", FILE.format(model=model, name=name), data)
        for what, (model, name, data) in files.items()
    }
    texts = {
        "deep JSON": b"[" * 100_000,
        "deep JSON that ends": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
        "a number of many digits": b'{"model": "qm9", "text": "C", "row": ' + b"9" * 100_000 + b"}",
        "a number beyond all": b'{"model": "qm9", "text": "C", "top": 1e999}',
        "half a character": b'{"model": "qm9", "text": "\\ud800"}',
        "the same name often": b"{" + b'"model": "qm9",' * 50_000 + b'"text": 1}',
        "a list": b"[" + b"1," * 100_000 + b"1]",
        "too long a text": b'{"model": "qm9", "text": "' + b"C" * 300_000 + b'"}',
        "too large a request": b" " * (3 * MEGABYTE),
    }
    sent |= {what: target.request("POST", PREDICT, data, JSON) for what, data in texts.items()}
    path = FILE.format(model="qm9", name="a.smi")
    chunks = b"".join(b"100000\r\n" + b"C" * MEGABYTE + b"\r\n" for _ in range(6)) + b"0\r\n\r\n"
    head = target.request("POST", path).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    return {
        **sent,
        "too large a file, unannounced": head + chunks,
        "an endless chunk": head + b"f" * 16 + b"\r\nC",
    }


def _npy(shape: str, kind: str = "<f8") -> bytes:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def _png(width: int, height: int) -> bytes:
    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", size) + part(b"IDAT", zlib.compress(bytes(1000))) + part(b"IEND", b"")
    )


LONG = ("an endless chunk", "line breaks alone", "a gzip bomb", "a hundred thousand spectra without peaks")
"""Uploads that take seconds to refuse, or to make."""


async def answers(target: Target, requests: Mapping[str, bytes], seconds: float = 120.0) -> dict[str, Reply]:
    """What each is answered, one after another."""
    return {name: await _answer(target, request, seconds) for name, request in requests.items()}


async def _answer(target: Target, request: bytes, seconds: float) -> Reply:
    try:
        return await target.sent(request, seconds)
    except (OSError, TimeoutError):
        return NOTHING


# Clients that take their time. Each says how many of them the server has got rid of.


async def slow_heads(target: Target, count: int, seconds: float) -> int:
    """A header that goes on, a byte at a time."""
    return await _slow(target, count, seconds, b"GET / HTTP/1.1\r\nX: ", b"x")


async def slow_bodies(target: Target, count: int, seconds: float) -> int:
    """A file that comes a byte at a time."""
    head = target.request("POST", FILE.format(model="qm9", name="a.smi"), b"C" * 4000)[:-4000]
    return await _slow(target, count, seconds, head, b"C")


async def silent(target: Target, count: int, seconds: float) -> int:
    """A connection, and then nothing."""
    return await _slow(target, count, seconds, b"", b"")


async def deaf(target: Target, count: int, seconds: float) -> int:
    """A thousand requests at once, and one more each second, whose answers are never read."""
    request = target.request("GET", "/page.js")
    return await _slow(target, count, seconds, request * 1000, request, listening=False)


async def leaving(target: Target, count: int) -> None:
    """A question, and gone before the answer."""
    for number in range(count):
        connection = await target.connect()
        connection.writer.write(target.question("/api/predict/example", model="coloring10", number=number))
        await connection.writer.drain()
        connection.close()


async def _slow(
    target: Target, count: int, seconds: float, first: bytes, then: bytes, listening: bool = True
) -> int:
    end = perf_counter() + seconds
    return sum(await asyncio.gather(*(_one_slow(target, end, first, then, listening) for _ in range(count))))


async def _one_slow(target: Target, end: float, first: bytes, then: bytes, listening: bool) -> bool:
    """Whether the server closed the connection before the end."""
    try:
        connection = await target.connect(buffer=None if listening else 4096)
    except OSError:
        return True
    try:
        if not listening:
            connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        connection.writer.write(first)
        while perf_counter() < end:
            await asyncio.sleep(1.0)
            connection.writer.write(then)
            if connection.writer.is_closing() or connection.reader.at_eof():
                return True
            if listening and await _read(connection.reader):
                return True
        return False
    except (OSError, RuntimeError):
        return True
    finally:
        connection.writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bool:
    """Whether anything, also an end, has come: a slow client has asked for nothing yet."""
    try:
        async with asyncio.timeout(0.01):
            await reader.read(1000)
    except TimeoutError:
        return False
    return True
