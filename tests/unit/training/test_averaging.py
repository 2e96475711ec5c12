"""The running mean of the weights: its formula, and that it is what a run validates, keeps and hands on."""

from pathlib import Path

import pytest
import torch

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.inference.export import export_model
from graphwright.inference.model import AVERAGE, PREDICTOR, load_model
from graphwright.training import build, loop, train
from graphwright.training.optimizer import WeightAverage
from resuming import assert_resumes_exactly
from tiny import tiny_settings

DECAY = 0.8


def averaged(**train_options):
    """A run whose mean is well behind its weights."""
    options = {"steps": 6, "validate_every": 2, "averaging": DECAY, "learning_rate": 0.02}
    return tiny_settings(model={"dropout": 0.2}, train=options | train_options)


def part(folder: Path, name: str, prefix: str) -> dict[str, torch.Tensor]:
    tensors = checkpoints.load(folder / "checkpoints" / name).tensors
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


def test_the_mean_is_over_all_steps_at_first_and_then_decays():
    torch.manual_seed(0)
    predictor = build(tiny_settings()).predictor
    average = WeightAverage(predictor, DECAY)
    expected = [weight.detach().clone() for weight in predictor.parameters()]
    for step in range(60):
        with torch.no_grad():
            for weight in predictor.parameters():
                weight += torch.randn_like(weight)
        average.update(predictor, step)
        kept = min(DECAY, (step + 1) / (step + 10))
        expected = [
            kept * mean + (1 - kept) * weight
            for mean, weight in zip(expected, predictor.parameters(), strict=True)
        ]
        if step in (0, 5, 34, 35, 59):  # before, at and after the step from which it is the decay
            for mean, wanted in zip(average.predictor.parameters(), expected, strict=True):
                torch.testing.assert_close(mean, wanted, rtol=1e-4, atol=1e-4)
    assert (34 + 1) / (34 + 10) < DECAY < (36 + 1) / (36 + 10)


def test_the_mean_begins_with_the_first_weights_shares_none_of_them_and_has_no_gradient():
    torch.manual_seed(0)
    predictor = build(tiny_settings()).predictor
    average = WeightAverage(predictor, DECAY)
    assert same(dict(average.predictor.state_dict()), dict(predictor.state_dict()))
    before = {name: value.clone() for name, value in average.state_dict().items()}
    with torch.no_grad():
        for weight in predictor.parameters():
            weight.add_(1)
    assert same(dict(average.state_dict()), before)
    assert not any(weight.requires_grad for weight in average.parameters())
    assert all(weight.requires_grad for weight in predictor.parameters())


def test_buffers_are_the_last_ones():
    predictor = build(tiny_settings()).predictor
    predictor.register_buffer("count", torch.zeros(3))
    average = WeightAverage(predictor, DECAY)
    predictor.count += 2
    average.update(predictor, 100)
    assert average.predictor.count.tolist() == [2, 2, 2]
    predictor.count += 1
    assert average.predictor.count.tolist() == [2, 2, 2]


def test_weights_that_stay_are_their_mean():
    predictor = build(tiny_settings()).predictor
    average = WeightAverage(predictor, DECAY)
    for step in range(5):
        average.update(predictor, step)
    for mean, weight in zip(average.predictor.parameters(), predictor.parameters(), strict=True):
        torch.testing.assert_close(mean, weight)


def test_averaging_changes_what_is_kept_and_not_what_is_learnt(tmp_path):
    train(averaged(), tmp_path / "on")
    train(averaged(averaging=0), tmp_path / "off")
    assert same(part(tmp_path / "on", "last", "model."), part(tmp_path / "off", "last", "model."))
    assert not part(tmp_path / "off", "last", "average.")
    mean, weights = part(tmp_path / "on", "last", AVERAGE), part(tmp_path / "on", "last", PREDICTOR)
    assert mean.keys() == weights.keys()
    assert not same(mean, weights)


def test_the_mean_in_a_checkpoint_is_that_of_the_runs_weights(tmp_path, monkeypatch):
    run, weights = averaged(steps=5), []
    update = WeightAverage.update

    def remembered(self, predictor, step):
        weights.append((step, [weight.detach().clone() for weight in predictor.parameters()]))
        update(self, predictor, step)

    monkeypatch.setattr(WeightAverage, "update", remembered)
    torch.manual_seed(run.train.seed)
    mean = [weight.detach().clone() for weight in build(run).predictor.parameters()]
    train(run, tmp_path)
    assert [step for step, _ in weights] == list(range(5))
    for step, values in weights:
        share = 1 - min(DECAY, (step + 1) / (step + 10))
        mean = [old + share * (new - old) for old, new in zip(mean, values, strict=True)]
    names = [name for name, _ in build(run).predictor.named_parameters()]
    saved = part(tmp_path, "last", AVERAGE)
    for name, expected in zip(names, mean, strict=True):
        torch.testing.assert_close(saved[name], expected)


def test_the_mean_is_what_is_validated(tmp_path, monkeypatch):
    seen, evaluate = [], loop.evaluate_predictor

    def watched(predictor, *arguments, **options):
        seen.append({name: value.clone() for name, value in predictor.state_dict().items()})
        return evaluate(predictor, *arguments, **options)

    monkeypatch.setattr(loop, "evaluate_predictor", watched)
    train(averaged(steps=4), tmp_path)
    assert len(seen) == 2
    assert same(seen[-1], part(tmp_path, "last", AVERAGE))
    assert not same(seen[-1], part(tmp_path, "last", PREDICTOR))


def test_the_mean_is_what_is_loaded_and_handed_on(tmp_path):
    train(averaged(), tmp_path / "run")
    model = load_model(str(tmp_path / "run"))
    best = part(tmp_path / "run", "best", AVERAGE)
    assert best
    assert same(dict(model.predictor.state_dict()), best)
    export_model(str(tmp_path / "run"), tmp_path / "small", {})
    exported = load_model(str(tmp_path / "small")).predictor.state_dict()
    weights = part(tmp_path / "run", "best", PREDICTOR)
    assert exported.keys() == best.keys()
    largest = {name: float(value.abs().max()) for name, value in best.items()}
    for name, value in exported.items():  # handed-on weights have eight bits
        torch.testing.assert_close(value, best[name], rtol=0, atol=0.01 * largest[name] + 1e-6)
    assert any((weights[name] - best[name]).abs().max() > 0.02 * largest[name] + 1e-3 for name in best)


def test_validating_a_mean_leaves_training_and_the_mean_as_they_were(tmp_path):
    train(averaged(validate_every=1), tmp_path / "often")
    train(averaged(validate_every=100), tmp_path / "once")
    first, second = (checkpoints.load(tmp_path / name / "checkpoints" / "last") for name in ("often", "once"))
    assert same(dict(first.tensors), dict(second.tensors))


@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_with_a_mean_goes_on_to_the_last_bit(tmp_path, monkeypatch, stop):
    folders = assert_resumes_exactly(averaged(), tmp_path, monkeypatch, stop)
    means = [part(folder, name, AVERAGE) for folder in folders for name in ("last", "best")]
    assert same(means[0], means[2])
    assert same(means[1], means[3])
    assert means[0]


def test_a_run_without_a_mean_cannot_go_on_with_one(tmp_path):
    train(averaged(averaging=0), tmp_path)
    with pytest.raises(CheckpointError):
        train(averaged(steps=8), tmp_path, resume=True)


def test_a_step_whose_gradient_is_not_finite_is_no_part_of_the_mean(tmp_path, monkeypatch):
    updates, update = [], WeightAverage.update
    monkeypatch.setattr(
        WeightAverage,
        "update",
        lambda self, predictor, step: updates.append(step) or update(self, predictor, step),
    )
    gradient = loop.Session._gradient

    def broken(session, *tensors):
        result, norm = gradient(session, *tensors)
        return result, float("nan") if session.progress.step == 2 else norm

    monkeypatch.setattr(loop.Session, "_gradient", broken)
    assert train(averaged(steps=5), tmp_path).progress.skipped == 1
    assert updates == [0, 1, 3, 4]
