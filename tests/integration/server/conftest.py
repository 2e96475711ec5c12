"""One application for all tests of the API, one real server for those over HTTP."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from graphwright.cli import main as cli
from graphwright.server.app import create_app
from graphwright.server.catalogue import catalogue
from tiny_tables import path_row, rows, write_jsonl

HOME = "http://127.0.0.1"


@pytest.fixture(scope="session")
def runs(tiny_run: Path) -> Path:
    """A folder of two runs of three steps, beside which there is a folder that is none."""
    (tiny_run.parent / "empty").mkdir()
    table = write_jsonl(tiny_run.parent / "points.jsonl", rows(change=places))
    steps = ["--train.steps", "3", "--train.validate_every", "2"]
    assert cli.main(["train", str(table), "--out", str(tiny_run.parent / "points"), *steps]) == cli.DONE
    return tiny_run.parent


def places(at: int) -> dict[str, Any]:
    """Numbers of the nodes: where their points are."""
    return {"attributes": [{"x": x, "y": y} for x, y in path_row(at)["points"]]}


@pytest.fixture(scope="session")
def client(runs: Path) -> Iterator[TestClient]:
    """For the shipped models and the runs."""
    with TestClient(create_app(catalogue(runs)), base_url=HOME) as opened:
        yield opened


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Iterator[str]:
    """Where `graphwright serve` answers."""
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "graphwright.cli.main", "serve", "--port", "0", "--runs", str(runs)]
    with log.open("w") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as server:
        assert server.stdout is not None
        line = server.stdout.readline().decode()
        found = re.search(r"http://[^ ]+", line)
        assert found, line + Path(log).read_text()
        yield found[0]
        server.terminate()
        server.wait(20)
    assert "Traceback" not in Path(log).read_text()
