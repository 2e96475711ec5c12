"""What the server refuses, in sentences and never with a 5xx, and that it goes on afterwards."""

import asyncio
import gzip
import io
import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from graphwright.cli import main as cli
from graphwright.server.app import create_app
from graphwright.server.catalogue import catalogue
from graphwright.server.guard import Guard
from graphwright.server.limits import BusyError, ServerLimits
from graphwright.server.worker import Worker


def refused(response, status=422):
    assert response.status_code == status, response.text
    (sentence,) = response.json().values()
    assert list(response.json()) == ["error"]
    assert len(sentence) > 10
    return sentence


def image(kind="PNG", mode="RGB", size=(40, 40)):
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, format=kind)
    return buffer.getvalue()


WRONG_FILES = {
    "empty": ("coloring10", b"", "empty"),
    "text as a picture": ("coloring10", b"not a picture", "not a picture"),
    "half a picture": ("coloring10", image()[:60], "not a picture"),
    "not square": ("coloring10", image(size=(40, 50)), "square"),
    "without colours": ("coloring10", image(mode="L"), "colours"),
    "too many pixels": ("coloring10", image(size=(5000, 10)), "4096"),
    "a format that needs other programs": ("coloring10", b"%!PS-Adobe-3.0 EPSF-3.0\n", "not a picture"),
    "compressed": ("ms2scaffold", gzip.compress(b"BEGIN IONS"), "gzip"),
    "a picture as spectra": ("ms2scaffold", image(), "not a file of spectra"),
    "a spectrum without peaks": ("ms2scaffold", b"BEGIN IONS\nPEPMASS=100\nEND IONS\n", "peak"),
    "bytes as SMILES": ("qm9", b"\xff\xfe\x00", "not text"),
    "no SMILES": ("qm9", b"hello world\n", "SMILES"),
    "a long SMILES": ("qm9", b"C" * 5000, "600"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_files_that_cannot_be_used_are_refused_in_a_sentence(client, case):
    model, data, words = WRONG_FILES[case]
    response = client.post("/api/predict/file", params={"model": model, "name": "some/folder/mine"}, content=data)
    sentence = refused(response)
    assert words in sentence
    assert "/tmp" not in sentence
    assert "folder" not in sentence


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/shadow.csv", "a\x00.csv", "..\\..\\x.parquet", "x" * 300]
)
def test_a_name_is_never_a_path(client, name):
    response = client.post("/api/predict/file", params={"model": "qm9", "name": name}, content=b"\x01\x02")
    assert "root:" not in refused(response)


@pytest.mark.parametrize(
    "path",
    ["/../pyproject.toml", "/page.js/../../limits.py", "/%2e%2e/%2e%2e/etc/passwd", "/nowhere", "/worker.py"],
)
def test_only_the_files_of_the_page_are_sent(client, path):
    refused(client.get(path), 404)


WRONG_REQUESTS = {
    "no JSON": b"{",
    "no text": b'{"model": "qm9"}',
    "an unknown model": b'{"model": "../qm9", "text": "CCO"}',
    "a model as a number": b'{"model": 3, "text": "CCO"}',
    "half a character": b'{"model": "\\ud800", "text": "CCO"}',
    "half a character in the text": b'{"model": "qm9", "text": "\\ud800"}',
    "not a number": b'{"model": "ms2scaffold", "text": "1 1", "precursor": NaN}',
    "an unknown field": b'{"model": "qm9", "text": "CCO", "path": "/etc/passwd"}',
    "a row that is not there": b'{"model": "qm9", "text": "CCO", "row": 2}',
    "line breaks in a formula": b'{"model": "ms2scaffold", "text": "1 1", "formula": "C\\nEND IONS"}',
    "text for a model of pictures": b'{"model": "coloring10", "text": "CCO"}',
    "bytes": b"\xff\x00",
    "deep": b'{"model":' + b"[" * 5000,
}


@pytest.mark.parametrize("case", WRONG_REQUESTS)
def test_requests_that_make_no_sense_are_refused_in_a_sentence(client, case):
    headers = {"Content-Type": "application/json"}
    response = client.post("/api/predict", content=WRONG_REQUESTS[case], headers=headers)
    assert 400 <= response.status_code < 500
    assert isinstance(response.json()["error"], str)


def test_what_is_too_large_is_refused_before_it_is_read(client):
    refused(client.post("/api/predict/file", params={"model": "qm9"}, content=b"C" * (6 * 2**20)), 413)
    refused(client.post("/api/predict", content=b" " * (2 * 2**20)), 413)
    parts = (b"C" * 2**20 for _ in range(6))  # sent without saying how much it will be
    refused(client.post("/api/predict/file", params={"model": "qm9"}, content=parts), 413)


def test_other_names_and_other_sites_are_refused(client):
    refused(client.get("/api/models", headers={"Host": "evil.example"}), 400)
    body = {"model": "qm9", "text": "CCO"}
    refused(client.post("/api/predict", json=body, headers={"Sec-Fetch-Site": "cross-site"}), 403)
    assert client.get("/", headers={"Host": "localhost:8100"}).status_code == 200


def test_a_page_of_ours_may_load_nothing_from_elsewhere(client):
    for path in ("/", "/style.css", "/page.js", "/drawing.js", "/icon.svg"):
        response = client.get(path)
        assert response.status_code == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        loaded = response.text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in loaded
        assert "https://" not in loaded


def test_what_takes_too_long_is_cut_off_and_the_next_is_answered():
    application = create_app(catalogue(), ServerLimits(seconds=6))
    worker = application.state.worker
    given = {"model": "coloring10", "number": 1}
    with TestClient(application, base_url="http://127.0.0.1") as opened:
        # Loaded by then: what is stopped is a prediction.
        assert opened.post("/api/predict/example", json=given).status_code == 200
        stopped = worker.pid
        os.kill(stopped, signal.SIGSTOP)
        assert "6 seconds" in refused(opened.post("/api/predict/example", json=given))
        assert opened.post("/api/predict/example", json=given).status_code == 200
        assert worker.pid != stopped
        last = worker.pid
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced():
    application = create_app(catalogue())
    given = {"model": "coloring10", "number": 1}
    with TestClient(application, base_url="http://127.0.0.1") as opened:
        os.kill(application.state.worker.pid, signal.SIGKILL)
        assert opened.post("/api/predict/example", json=given).status_code in (200, 422)
        assert opened.post("/api/predict/example", json=given).status_code == 200


def test_twenty_people_at_once_are_all_answered(address):
    def person(number):
        with httpx.Client(base_url=address, timeout=60) as mine:
            assert mine.get("/").status_code == 200
            given = {"model": "coloring10", "number": number, "regions": 5 + number % 6}
            start = time.perf_counter()
            answer = mine.post("/api/predict/example", json=given)
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["candidates"][0]["truth"]["nodes"]) == given["regions"]
            return time.perf_counter() - start

    with ThreadPoolExecutor(20) as people:
        waited = sorted(people.map(person, range(20)))
    print(f"20 people: median {waited[10]:.2f} s, last {waited[-1]:.2f} s")


def test_a_full_queue_says_so():
    worker = Worker({}, ServerLimits(waiting=0))
    with pytest.raises(BusyError, match="Too many people"):
        asyncio.run(worker.ask({}))


def test_a_request_that_does_not_arrive_is_cut_off():
    async def application(*_):
        raise AssertionError("nothing to answer yet")

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    sent = []
    scope = {"type": "http", "method": "POST", "path": "/api/predict", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(application, ServerLimits(upload_seconds=0.1), "127.0.0.1")(scope, receive, send))
    assert sent[0]["status"] == 408


def test_half_a_request_does_not_disturb_others(address):
    split = urlsplit(address)
    with socket.create_connection((split.hostname, split.port)) as half:
        half.sendall(b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90\r\n\r\n{")
        assert httpx.get(f"{address}api/models", timeout=60).status_code == 200
        half.sendall(b"\x00\x01")
    with socket.create_connection((split.hostname, split.port)) as odd:
        odd.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -4\r\nContent-Length: x\r\n\r\n")
        assert b" 400 " in odd.recv(1000)[:20]
    assert httpx.get(address, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--runs", "nowhere"], "not a folder of runs"),
        (["--seconds", "0"], "more than 0"),
        (["--host", "300.1.1.1"], "cannot listen"),
        (["--port", "99999"], "cannot listen"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(capsys, options, words):
    assert cli.main(["serve", *options]) == cli.USAGE
    assert words in capsys.readouterr().err


def test_errors_are_json_whatever_is_asked(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert json.loads(client.request(method, "/api/predict").content)["error"]
