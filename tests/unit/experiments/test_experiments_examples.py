"""The page of examples: whose predictions are drawn, and what differs in them from the paper."""

import json

import pytest

from graphwright.experiments import InProcess, Scale, examples, expand, read_grid, store_of, write_examples
from graphwright.inference.model import load_model

GRID = read_grid("examples")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The page at the cpu scale, with sources in place of drawings; every run is the shipped model of Coloring."""

    def write() -> str:
        result = write_examples(
            GRID, Scale.CPU, tmp_path, InProcess(), stopped=lambda: False, report=lambda _: pytest.fail("no run")
        )
        assert result.unfinished == []
        return (result.folder / "README.md").read_text()

    def load(source):
        return load_model("coloring10" if "/" in source else source)

    monkeypatch.setattr(examples, "_draw", lambda model, folder, column, source: source)  # noqa: ARG005
    monkeypatch.setattr(examples, "load_model", load)
    return write


def test_under_a_shipped_models_drawing_it_is_said_what_that_model_is(written, tmp_path):
    page = written()
    assert "by the shipped model `coloring10`, no run of this grid: " in page
    for name in ("coloring10", "ms2scaffold", "fingerprint2molecule"):
        assert f"[its record](records/{name}.json)" in page
        record = json.loads((tmp_path / "examples-cpu" / "records" / f"{name}.json").read_text())
        assert f"{record['progress']['step']:,} steps of {record['settings']['train']['batch_size']}" in page
    assert "What differs" not in page
    assert GRID.scales[Scale.CPU].differs[0] not in page


def test_what_differs_is_said_of_the_grids_own_runs_alone(written, tmp_path, monkeypatch):
    store, job = store_of(tmp_path), expand(GRID, Scale.CPU)[0].jobs[0]
    store.folder(job).mkdir(parents=True)
    (store.folder(job) / "record.json").write_text("{}")
    assert "by the shipped model `coloring10`" in written()  # a record alone draws nothing
    monkeypatch.setattr(examples.checkpoints, "exists", lambda path: path.name == "best")
    page = written()
    assert f"[record](records/{job.key}.json)" in page
    assert "`coloring10`" not in page
    assert "by the shipped model `fingerprint2molecule`" in page
    assert "## What differs from the paper (Coloring 10)" in page
    assert GRID.scales[Scale.CPU].differs[0] in page
