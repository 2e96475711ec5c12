"""To load a model is no part of a request: it may take longer, and is not begun again for ever."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from graphwright.server import predicting, worker
from graphwright.server.catalogue import catalogue
from graphwright.server.limits import RefusedError, ServerLimits, TooLongError
from graphwright.server.worker import Worker, _answering

SLOW_TO_LOAD = """
import json, sys, time
from graphwright.server.worker import _read, _write
frame, log, seconds = sys.stdin.buffer, open(sys.argv[1], "a"), float(sys.argv[2])
_read(frame), _read(frame)
_write(sys.stdout.buffer, b"ready")
while (header := _read(frame)) is not None:
    _read(frame)
    question = json.loads(header)
    print(question["ask"], question["given"]["model"], file=log, flush=True)
    if question["ask"] == "prepare":
        time.sleep(seconds)
    _write(sys.stdout.buffer, b'answer\\n["' + question["given"]["model"].encode() + b'"]')
"""
"""A process that speaks as the worker does, takes long to load any model, and no time for anything else."""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Workers are such processes; what they are asked, in order, and how long they load."""
    log, seconds = tmp_path / "log", [0.0]
    start = asyncio.create_subprocess_exec

    async def started(*_, **options):
        return await start(sys.executable, "-c", SLOW_TO_LOAD, str(log), str(seconds[0]), **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    return log, seconds


def question(model):
    return {"ask": "example", "given": {"model": model}}


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines()


def test_a_model_that_takes_longer_to_load_than_a_request_may_is_loaded_once_and_answers(asked):
    log, seconds = asked
    seconds[0] = 4.0

    async def given():
        mine = Worker({}, ServerLimits(seconds=3))
        await mine.start()
        for model in ("a", "a", "b"):
            assert json.loads(await mine.ask(question(model))) == [model]
        assert lines(log) == ["prepare a", "example a", "example a", "prepare b", "example b"]
        os.kill(mine.pid, signal.SIGKILL)
        await mine._process.wait()
        await mine.ask(question("b"))
        assert lines(log)[5:] == ["prepare b", "example b"], "a new process has loaded nothing"
        await mine.stop()

    asyncio.run(given())


def test_loading_has_a_limit_of_its_own_after_which_the_next_is_served(asked):
    _, seconds = asked

    async def given():
        mine = Worker({}, ServerLimits(seconds=20, loading_seconds=3))
        seconds[0] = 60.0
        await mine.start()
        with pytest.raises(TooLongError, match="To load this model took longer than 3 seconds"):
            await mine.ask(question("a"))
        seconds[0] = 0.0
        assert json.loads(await mine.ask(question("a"))) == ["a"]
        await mine.stop()

    asyncio.run(given())


def test_a_prepared_model_has_answered_once_and_one_that_makes_room_is_prepared_no_more(monkeypatch):
    answers = []
    monkeypatch.setattr(predicting, "answer", lambda name, *_: answers.append(name) or 1 / 0)
    monkeypatch.setattr(worker, "KEPT", 2)
    answer = _answering(catalogue(), ServerLimits())

    def prepared(model):
        return json.loads(answer({"ask": "prepare", "given": {"model": model}}, b""))

    assert prepared("coloring10") == ["coloring10"]
    assert prepared("qm9") == ["coloring10", "qm9"]
    assert prepared("coloring20") == ["coloring20", "qm9"]
    assert answers == ["coloring10", "qm9", "coloring20"]
    assert json.loads(answer({"ask": "card", "given": {"model": "coloring10"}}, b""))["name"] == "coloring10"
    assert prepared("coloring20") == ["coloring20"], "a card needs its model, but no answer of it"


def test_a_model_that_cannot_be_loaded_says_so(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    answer = _answering({"mine": (str(tmp_path / "model.json"), "run")}, ServerLimits())
    for ask in ("prepare", "card", "example"):
        with pytest.raises(RefusedError, match=r"This model cannot be loaded: .*model\.json"):
            answer({"ask": ask, "given": {"model": "mine"}}, b"")
