"""Every baseline can learn, or look up, eight samples: what cannot has something broken in it."""

import pytest
import torch

from graphwright.baselines import BASELINES, BarycentreSettings, predict_baseline
from graphwright.graphs import is_isomorphic
from graphwright.inference import evaluate_predictor
from graphwright.settings import Run
from graphwright.tasks import task_of
from graphwright.training import build
from tiny import tiny_settings

EIGHT = range(8)
TRAINED = {
    "any2graph": ({"kind": "slots"}, {"kind": "conditional_gradient"}),
    "relationformer": ({"kind": "relationformer"}, {"kind": "labels"}),
}
STEPS, LOOK_EVERY = 300, 50


def settings(model: dict[str, str] | None = None, matching: dict[str, str] | None = None) -> Run:
    """Eight training samples, two others."""
    return tiny_settings(
        task={"capacity": 5, "min_size": 3, "samples": 10},
        model={"width": 32, "layers": 2, "encoder_width": 24, "head_width": 32} | (model or {}),
        matching=matching,
    )


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_baseline_learns_eight_samples_by_heart(name):
    run = settings(*TRAINED[name])
    torch.manual_seed(0)
    model = build(run)
    data = task_of(run.task).data("train")
    assert len(data) == len(EIGHT)
    inputs, target = data.batch(EIGHT)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    exact = 0.0
    for step in range(1, STEPS + 1):
        result = model(inputs, target.mask, target.node_labels, target.edge_labels)
        optimizer.zero_grad()
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % LOOK_EVERY == 0:
            found = evaluate_predictor(model.predictor, data, EIGHT, model.vocabulary, model.loss)
            exact = found.report.isomorphic.mean()
            if exact == 1:
                break
    assert exact == 1


@pytest.mark.parametrize("name", BASELINES)
def test_an_untrained_baseline_knows_its_eight_samples(name):
    run = settings()
    data = task_of(run.task).data("train")
    # Without a ridge to speak of, the regression's weights of a training input are on that input.
    chosen = BarycentreSettings(ridge=1e-9) if BASELINES[name] is BarycentreSettings else None
    found = predict_baseline(name, run, EIGHT, "train", settings=chosen)
    for graph, index in zip(found.graphs, EIGHT, strict=True):
        assert is_isomorphic(graph, data[index].graph), index
