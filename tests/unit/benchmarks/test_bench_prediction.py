"""The prediction's benchmark: same graphs compiled or not, and a compiler that is missing is named."""

import pytest
import torch

from benchmarks import Remark, measure_prediction
from graphwright.inference.model import load_model


@pytest.fixture
def model(tiny_run):
    return load_model(str(tiny_run))


def test_rows_for_every_batch_and_thread_count(model, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module, dynamic: module)  # noqa: ARG005
    rows = list(measure_prediction(model, batches=(1, 3), repeats=1))
    assert [(row.threads, row.batch) for row in rows] == [(1, 1), (1, 3), (2, 1), (2, 3)]
    for row in rows:
        assert (row.name, row.n) == (f"predict, {model.name}", 4)
        assert row.extras["samples_per_second"] == pytest.approx(1000 / row.ours_ms)
        assert row.extras["compiled_samples_per_second"] == pytest.approx(1000 / row.peer_ms)
        assert row.extras["compile_seconds"] > 0


def test_a_failing_compiler_leaves_a_remark_with_our_speed(model, monkeypatch):
    def fail(module, dynamic):  # noqa: ARG001
        raise RuntimeError("no g++\nand much more")

    monkeypatch.setattr(torch, "compile", fail)
    (remark,) = measure_prediction(model, batches=(2,), repeats=1, thread_counts=(1,))
    assert isinstance(remark, Remark)
    assert remark.text.endswith("failed: no g++")
    assert "samples/s" in remark.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_predictions_are_the_same(model):
    inputs, _ = model.task.data("test").batch(range(5))
    for one, other in zip(model.predict(inputs), model.compiled().predict(inputs), strict=True):
        assert one.graph == other.graph
        assert one.confidence == pytest.approx(other.confidence, rel=1e-3)
