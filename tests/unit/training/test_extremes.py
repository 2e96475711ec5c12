"""Extreme settings and degenerate targets make no NaN, and a run depends on its seed alone."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from graphwright.graphs import Graph, GraphBatch
from graphwright.inference import checkpoint as checkpoints
from graphwright.known import Library
from graphwright.tasks.coloring.picture import VOCABULARY
from graphwright.training import build, loop, train
from graphwright.training.log import SPIKES, read_log
from tiny import WITH_STATE, tiny_settings

SLOTS, DIMENSION = 4, 8
RATES = (1e-4, 1e-2)
TIMES = ("seconds", "samples_per_second")


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("matching", [{"kind": "learned"}, WITH_STATE], ids=["soft", "rounded"])
def test_no_temperature_and_no_rate_makes_a_plan_that_is_not_finite(tmp_path, epsilon, matching):
    temperature = epsilon * SLOTS**2 * math.sqrt(DIMENSION / 256)  # as the matcher reads it
    for rate in RATES:
        run = tiny_settings(
            matching=matching | {"temperature": temperature, "dimension": DIMENSION},
            train={"steps": 4, "learning_rate": rate, "warmup": 0.0},
        )
        trained = train(run, tmp_path / str(rate))
        assert trained.progress.skipped == 0
        assert not (tmp_path / str(rate) / SPIKES).exists()
        tensors = checkpoints.load(tmp_path / str(rate) / "checkpoints" / "last").tensors
        assert all(torch.isfinite(each).all() for each in tensors.values() if each.is_floating_point())


def coloured(size: int, edges: list[tuple[int, int]], colors: int = 4) -> Graph:
    names = [VOCABULARY.nodes[at % colors] for at in range(size)]
    return Graph.build(names, edges, None, VOCABULARY)


TARGETS = {
    "no nodes": coloured(0, []),
    "one node": coloured(1, []),
    "no edges": coloured(3, []),
    "complete": coloured(4, [(i, j) for j in range(4) for i in range(j)]),
    "disconnected": coloured(4, [(0, 1), (2, 3)]),
    "all labels equal": coloured(4, [(0, 1), (1, 2), (2, 3), (0, 3)], colors=1),
    "as large as can be": coloured(4, [(0, 1), (1, 2), (2, 3)]),
}


@pytest.mark.parametrize("kind", ["learned", "mirror", "conditional_gradient", "order"])
def test_degenerate_targets_have_a_finite_loss_and_gradient(kind):
    torch.manual_seed(0)
    model = build(tiny_settings(matching={"kind": kind}))
    side = tiny_settings().task.config.side
    for names in [*([name] for name in TARGETS), list(TARGETS)]:
        target = GraphBatch.collate([TARGETS[name] for name in names], SLOTS, VOCABULARY)
        model.zero_grad()
        result = model(torch.rand(len(names), 3, side, side), target.mask, target.node_labels, target.edge_labels)
        result.loss.backward()
        assert torch.isfinite(result.loss), names
        assert torch.isfinite(result.terms).all(), names
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        assert gradients
        assert all(torch.isfinite(each).all() for each in gradients), names


def test_a_target_above_the_capacity_is_refused_by_name():
    five = coloured(5, [(0, 1)])
    with pytest.raises(ValueError, match=r"graphs\[1\] has 5 nodes"):
        GraphBatch.collate([TARGETS["complete"], five], SLOTS, VOCABULARY)


def test_many_duplicates_are_one_graph():
    library = Library.of((TARGETS["complete"] for _ in range(10_000)), SLOTS)
    assert len(library) == 1


@pytest.mark.slow
def test_a_hundred_thousand_duplicates_are_one_graph():
    assert len(Library.of((TARGETS["disconnected"] for _ in range(100_000)), SLOTS)) == 1


def log(folder: Path) -> list[dict[str, Any]]:
    records = read_log(folder / "log.jsonl")
    return [{name: value for name, value in record.items() if name not in TIMES} for record in records]


def test_a_run_depends_on_its_seed_alone(tmp_path):
    """Not on how many processes read its data, nor on what this one did before: to the last bit of its log."""
    for name, seed, workers in (("one", 0, 0), ("again", 0, 0), ("workers", 0, 2), ("other", 1, 0)):
        torch.rand(7)
        run = tiny_settings(
            model={"dropout": 0.2}, matching=WITH_STATE, train={"steps": 5, "seed": seed, "workers": workers}
        )
        train(run, tmp_path / name)
    assert log(tmp_path / "one") == log(tmp_path / "again") == log(tmp_path / "workers")
    assert log(tmp_path / "one") != log(tmp_path / "other")
    assert {"loss", "gradient_norm", "gap"} <= log(tmp_path / "one")[0].keys()


def test_processes_with_different_data_are_refused(tmp_path, monkeypatch):
    """They would wait for each other for ever, at different steps."""
    monkeypatch.setattr(loop.Session, "_gather", lambda *_: torch.tensor([[320], [300]]))
    with pytest.raises(ValueError, match="the processes of this run have different data: 320, 300 samples"):
        train(tiny_settings(), tmp_path)
