"""Rude requests and many clients over HTTP; the whole of it, for minutes, is `python -m benchmarks.server`."""

import asyncio

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks import server as whole
from benchmarks.http_client import Target
from benchmarks.server_attacks import LONG, answers, headers, leaving, traversals, uploads
from benchmarks.server_load import clients
from graphwright.cli import main as cli
from graphwright.server import app
from graphwright.server.limits import ServerLimits

OPERATIONS = ["GET /api/models", "POST /api/predict", "POST /api/predict/example", "POST /api/predict/file"]


@pytest.mark.parametrize("kind", [traversals, headers, uploads])
def test_rude_requests_are_refused_and_told_nothing(address, kind):
    target = Target.of(address)
    requests = {name: request for name, request in kind(target).items() if name not in LONG}
    replies = asyncio.run(answers(target, requests))
    assert len(replies) >= 25
    assert whole.wrong(replies) == []
    assert [name for name, reply in replies.items() if b'"error"' not in reply.body and reply.status] == []


def test_many_clients_get_an_answer_or_are_told_when_to_come_back(address):
    target = Target.of(address)
    figures = asyncio.run(clients(target, count=40, seconds=3.0))
    statuses = set().union(*(each.statuses for each in figures.values()))
    assert 200 in statuses
    assert statuses <= {200, 429}
    asyncio.run(leaving(target, 10))
    assert asyncio.run(target.sent(target.request("GET", "/api/models"), 60)).status == 200


def meets(address, operation, count):
    """Requests that its description allows, and others, get only the answers that it describes."""
    schema = schemathesis.openapi.from_url(f"{address}api/openapi.json")
    method, path = operation.split()

    @seed(18)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy())
    def hold(case):
        case.call_and_validate(timeout=120)

    hold()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_api_keeps_its_description(address, operation):
    meets(address, operation, 10)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_api_keeps_its_description_many_times(address, operation):
    meets(address, operation, 500)


@pytest.mark.slow
def test_two_hundred_clients_and_every_attack(tmp_path, capsys):
    assert whole.main(["--json", str(tmp_path / "server.json")]) == cli.DONE, capsys.readouterr().out
    with capsys.disabled():
        print((tmp_path / "server.json").read_text())


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_a_server_that_others_can_reach_says_so(monkeypatch, host, warned):
    bound, said = [], []
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda _, sockets: bound.extend(s.getsockname()[0] for s in sockets)
    )
    app.serve({}, host, 0, ServerLimits(), said.append)
    assert (bound != ["127.0.0.1"]) is warned
    assert any("not a loopback address" in line for line in said) is warned
