"""The loop: budgets, best and last checkpoints, early stopping, bad gradients."""

import csv
import json
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import Checkpoint, CheckpointError
from graphwright.inference.evaluate import evaluate_predictor
from graphwright.settings import CONFIG, Run, to_yaml
from graphwright.training import DivergenceError, TrainingModel, loop, train
from graphwright.training.log import read_log
from graphwright.training.state import load_weights
from tiny import WITH_STATE, tiny_settings
from tiny_spectra import spectrum_settings, write_spectra


def last(folder: Path) -> checkpoints.Checkpoint:
    return checkpoints.load(folder / "checkpoints" / "last")


def weights(saved: checkpoints.Checkpoint) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in saved.tensors.items() if name.startswith("model.")}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


def validations(folder: Path) -> list[dict[str, float]]:
    return [record for record in read_log(folder / "log.jsonl") if "isomorphic" in record]


def test_a_run_leaves_what_explains_it(tmp_path):
    run = tiny_settings(train={"steps": 4, "log_every": 2, "validate_every": 3})
    trained = train(run, tmp_path)
    assert trained.progress.step == 4
    assert (tmp_path / CONFIG).read_text() == to_yaml(run)
    records = read_log(tmp_path / "log.jsonl")
    assert [(one["step"], "loss" in one, "isomorphic" in one) for one in records] == [
        (2, True, False),
        (3, False, True),
        (4, True, False),
        (4, False, True),
    ]
    assert records[0]["samples_per_second"] > 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["step"] == 4
    assert metrics["validation"] == trained.metrics
    assert metrics["validation"]["samples"] == 4
    for name in ("best", "last"):
        facts = checkpoints.load(tmp_path / "checkpoints" / name).facts
        assert Run.model_validate(facts["settings"]) == run


def test_the_logged_rate_is_the_schedules(tmp_path):
    options = {"steps": 5, "warmup": 0.4, "learning_rate": 0.01, "minimum_learning_rate": 0.001}
    train(tiny_settings(train=options), tmp_path)
    rates = [one["learning_rate"] for one in read_log(tmp_path / "log.jsonl") if "loss" in one]
    assert rates[:3] == pytest.approx([0.0001, 0.005, 0.01])
    assert rates[3] > rates[4] > 0.001


def test_a_learned_matchers_health_is_in_the_log(tmp_path):
    train(tiny_settings(matching={"kind": "learned", "probe_every": 2}, train={"steps": 4}), tmp_path)
    records = [record for record in read_log(tmp_path / "log.jsonl") if "loss" in record]
    assert all({"plan_entropy", "marginal_error"} <= record.keys() for record in records)
    assert ["gap" in record for record in records] == [True, False, True, False]
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["loss"]]
    for name in ("plan_entropy", "marginal_error", "gap"):
        assert [row[name] for row in rows] == [str(record.get(name, "")) for record in records]


def test_a_budget_in_epochs_is_counted_in_whole_batches(tmp_path):
    run = tiny_settings(task={"samples": 40}, train={"steps": None, "epochs": 2, "batch_size": 15})
    assert train(run, tmp_path).progress.step == 4  # 32 training samples


def test_a_budget_in_minutes_ends_the_run_in_time(tmp_path):
    run = tiny_settings(train={"steps": None, "minutes": 0.01, "log_every": 1})
    progress = train(run, tmp_path).progress
    assert 0.6 <= progress.seconds < 5
    rates = [one["learning_rate"] for one in read_log(tmp_path / "log.jsonl") if "loss" in one]
    assert progress.step == len(rates) > 2
    assert rates[-1] < max(rates)


def test_a_budget_of_processor_time_does_not_count_waiting(tmp_path, monkeypatch):
    """Beside other work a run waits; what it is compared by must not depend on that."""
    wall = [0.0]
    monkeypatch.setattr("graphwright.training.loop.perf_counter", lambda: wall.append(wall[-1] + 3600) or wall[-1])
    seconds = {
        clock: train(tiny_settings(train={"steps": 2, "clock": clock}), tmp_path / clock).progress.seconds
        for clock in ("processor", "wall")
    }
    assert seconds["processor"] < 3600 <= seconds["wall"]


def test_the_best_checkpoint_is_that_of_the_best_validation_and_of_equals_the_later_one(tmp_path, monkeypatch):
    values = iter([5.0, 20.0, 10.0, 20.0, 15.0])
    measured(monkeypatch, "isomorphic", values)
    trained = train(tiny_settings(train={"steps": 5, "validate_every": 1}), tmp_path)
    best = checkpoints.load(tmp_path / "checkpoints" / "best")
    assert best.facts["progress"]["step"] == 4
    assert best.facts["progress"]["best"] == 20.0
    assert (trained.progress.best, trained.progress.stale) == (20.0, 3)
    assert last(tmp_path).facts["progress"]["step"] == 5
    assert not same(weights(best), weights(last(tmp_path)))


def test_edits_count_downwards(tmp_path, monkeypatch):
    measured(monkeypatch, "edit", iter([3.0, 1.0, 2.0]))
    train(tiny_settings(train={"steps": 3, "validate_every": 1, "metric": "edit"}), tmp_path)
    assert checkpoints.load(tmp_path / "checkpoints" / "best").facts["progress"]["step"] == 2


def test_a_run_stops_early_after_that_many_validations_without_improvement(tmp_path, monkeypatch):
    measured(monkeypatch, "isomorphic", iter([5.0, 20.0, 20.0, 10.0, 30.0]))
    run = tiny_settings(train={"steps": 10, "validate_every": 1, "patience": 2})
    assert train(run, tmp_path).progress.step == 4
    assert (tmp_path / "metrics.json").exists()
    assert train(run, tmp_path, resume=True).progress.step == 4  # and stays stopped


def measured(monkeypatch, name: str, values) -> None:
    """Let validations find these values."""

    def evaluate(*arguments, **options):
        found = evaluate_predictor(*arguments, **options)
        json_of = found.report.to_json

        def to_json():
            return json_of() | {name: next(values)}

        object.__setattr__(found.report, "to_json", to_json)
        return found

    monkeypatch.setattr(loop, "evaluate_predictor", evaluate)


def test_validation_leaves_training_as_it_was(tmp_path):
    options = {"model": {"dropout": 0.2}, "matching": WITH_STATE}
    train(tiny_settings(train={"steps": 5, "validate_every": 1}, **options), tmp_path / "often")
    train(tiny_settings(train={"steps": 5, "validate_every": 100}, **options), tmp_path / "once")
    first, second = last(tmp_path / "often"), last(tmp_path / "once")
    assert same(dict(first.tensors), dict(second.tensors))


def test_the_same_seed_gives_the_same_run_and_another_another(tmp_path):
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        train(tiny_settings(model={"dropout": 0.2}, train={"steps": 2, "seed": seed}), tmp_path / name)
    assert same(weights(last(tmp_path / "one")), weights(last(tmp_path / "two")))
    assert not same(weights(last(tmp_path / "one")), weights(last(tmp_path / "other")))


@pytest.mark.parametrize("parts", [2, 3, 20])
def test_a_batch_in_parts_has_the_gradient_of_the_whole(tmp_path, parts):
    """Uneven ones, too, and no more than there are samples."""

    def steps(count: int) -> list[tuple[float, float]]:
        folder = tmp_path / str(count)
        train(tiny_settings(train={"steps": 3, "accumulate": count}), folder)
        records = [record for record in read_log(folder / "log.jsonl") if "loss" in record]
        return [(record["loss"], record["gradient_norm"]) for record in records]

    for whole, added in zip(steps(1), steps(parts), strict=True):
        assert added == pytest.approx(whole, rel=1e-3)


def test_parts_are_even_and_whole():
    assert [(part.start, part.stop) for part in loop.parts_of(8, 3)] == [(0, 3), (3, 5), (5, 8)]
    assert len(list(loop.parts_of(2, 5))) == 2


def test_augmentation_can_be_turned_off(tmp_path):
    for augment in (False, True):
        train(tiny_settings(train={"steps": 2, "augment": augment}), tmp_path / str(augment))
    assert not same(weights(last(tmp_path / "True")), weights(last(tmp_path / "False")))


def test_resuming_without_a_checkpoint_is_refused_by_name(tmp_path):
    with pytest.raises(CheckpointError, match=r"last\.json does not exist"):
        train(tiny_settings(), tmp_path, resume=True)


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    run = tiny_settings(train={"steps": 3, "validate_every": 2})
    first = train(run, tmp_path)
    tensors, log = dict(last(tmp_path).tensors), (tmp_path / "log.jsonl").read_text()
    again = train(run, tmp_path, resume=True)
    assert again.progress == first.progress
    assert again.metrics == first.metrics
    assert same(dict(last(tmp_path).tensors), tensors)
    assert (tmp_path / "log.jsonl").read_text() == log
    assert json.loads((tmp_path / "metrics.json").read_text())["validation"] == first.metrics


def test_a_finished_run_goes_on_with_a_larger_budget(tmp_path):
    train(tiny_settings(train={"steps": 2}), tmp_path)
    trained = train(tiny_settings(train={"steps": 4}), tmp_path, resume=True)
    assert trained.progress.step == 4
    assert [one["step"] for one in validations(tmp_path)] == [2, 4]


def broken_at(monkeypatch, steps: set[int], factor: float) -> None:
    """Let the loss of some steps have gradients that are not finite."""
    forward, count = TrainingModel.forward, iter(range(1, 1000))

    def broken(self, *tensors):
        result = forward(self, *tensors)
        return result._replace(loss=result.loss * factor) if next(count) in steps else result

    monkeypatch.setattr(TrainingModel, "forward", broken)


@pytest.mark.parametrize("factor", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite_changes_nothing_and_is_counted(tmp_path, monkeypatch, factor):
    run = tiny_settings(train={"steps": 5, "log_every": 5, "checkpoint_minutes": 1e-9})
    states = []
    save = checkpoints.save

    def remembered(path, checkpoint):
        tensors = {name: tensor.clone() for name, tensor in checkpoint.tensors.items() if name != "random"}
        states.append(tensors | {"progress": checkpoint.facts["progress"]["step"]})
        save(path, checkpoint)

    monkeypatch.setattr(checkpoints, "save", remembered)
    broken_at(monkeypatch, {2, 4}, factor)
    progress = train(run, tmp_path).progress
    by_step = {state.pop("progress"): state for state in states}
    # A learned matcher counts the steps that it has seen, to look at itself every few of them.
    assert {step: int(state.pop("model.matcher.probes")) for step, state in by_step.items()} == {
        step: step for step in range(6)
    }
    assert same(by_step[1], by_step[2])
    assert same(by_step[3], by_step[4])
    assert not same(by_step[2], by_step[3])
    assert (progress.step, progress.skipped, progress.skipped_in_row) == (5, 2, 0)
    record = read_log(tmp_path / "log.jsonl")[0]
    assert record["skipped"] == 2
    assert all(value == value and abs(value) < 1e9 for value in record.values())  # no NaN among the means
    assert all(torch.isfinite(tensor).all() for tensor in weights(last(tmp_path)).values())


def test_checkpoints_name_the_code_and_the_machine_of_every_session(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "provenance", lambda: {"commit": "first"})
    train(tiny_settings(train={"steps": 3}), tmp_path)
    monkeypatch.setattr(loop, "provenance", lambda: {"commit": "second"})
    train(tiny_settings(train={"steps": 5}), tmp_path, resume=True)
    assert last(tmp_path).facts["sessions"] == [
        {"first_step": 0, "commit": "first"},
        {"first_step": 3, "commit": "second"},
    ]


def test_a_checkpoint_that_says_sittings_goes_on_with_them(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "provenance", lambda: {"commit": "new"})
    train(tiny_settings(train={"steps": 3}), tmp_path)
    saved = last(tmp_path)
    facts = {name: value for name, value in saved.facts.items() if name != "sessions"}
    old = [{"first_step": 0, "commit": "old"}]
    checkpoints.save(tmp_path / "checkpoints" / "last", Checkpoint(saved.tensors, facts | {"sittings": old}))
    train(tiny_settings(train={"steps": 5}), tmp_path, resume=True)
    assert last(tmp_path).facts["sessions"] == [*old, {"first_step": 3, "commit": "new"}]


def test_many_bad_gradients_in_a_row_end_the_run_with_advice_and_its_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "PATIENCE_WITH_GRADIENTS", 3)
    broken_at(monkeypatch, {3, 5, 6, 7, 8}, float("nan"))
    with pytest.raises(DivergenceError, match=r"last 3 steps, up to step 7: try a smaller train\.learning_rate"):
        train(tiny_settings(train={"steps": 20}), tmp_path)
    saved = last(tmp_path)
    assert saved.facts["progress"]["step"] == 7
    assert all(torch.isfinite(tensor).all() for tensor in weights(saved).values())
    load_weights(saved, "model.", loop.build(tiny_settings()))


@pytest.mark.parametrize("matching", [{"kind": "learned"}, WITH_STATE, {"kind": "conditional_gradient"}])
def test_training_runs_in_mixed_precision_with_bfloat16(tmp_path, matching):
    run = tiny_settings(matching=matching, train={"steps": 2, "precision": "bf16-mixed"})
    assert train(run, tmp_path).progress.skipped == 0
    assert all(tensor.dtype is not torch.bfloat16 for tensor in weights(last(tmp_path)).values())


def test_mixed_precision_rounds_no_inputs_and_no_targets(tmp_path, monkeypatch):
    """A mass in bfloat16 would be off by as much as an atom of hydrogen, in training alone."""
    made, seen = loop.build, []

    def watch(module, given):  # noqa: ARG001
        seen.extend(
            each.dtype for each in tree_leaves(given) if torch.is_tensor(each) and each.is_floating_point()
        )

    def watched(*given):
        model = made(*given)
        model.register_forward_pre_hook(watch)
        return model

    monkeypatch.setattr(loop, "build", watched)
    train = {"steps": 1, "precision": "bf16-mixed"}
    loop.train(spectrum_settings(write_spectra(tmp_path / "spectra.parquet"), train=train), tmp_path / "run")
    assert len(seen) >= 3  # peaks, precursor, energy
    assert set(seen) == {torch.float32}


def test_the_loss_scaler_of_float16_hears_of_bad_gradients_and_is_part_of_the_state(tmp_path, monkeypatch):
    from lightning.fabric import Fabric
    from lightning.fabric.plugins.precision import MixedPrecision

    def scaled(_):
        return Fabric(accelerator="cpu", devices=1, plugins=[MixedPrecision("16-mixed", "cpu")])

    monkeypatch.setattr(loop, "_fabric", scaled)  # on a CPU, Fabric itself falls back to bfloat16
    broken_at(monkeypatch, {2}, float("inf"))
    # With less to learn its gradients are small enough for the scale that the scaler begins with.
    less = {"task": {"diffusion": False}, "loss": {"self_loops": "excluded"}}
    train(tiny_settings(train={"steps": 2}, **less), tmp_path)
    assert last(tmp_path).facts["precision"]["scale"] == 2.0**15  # halved once from 2^16
    progress = train(tiny_settings(train={"steps": 3}, **less), tmp_path, resume=True).progress
    assert last(tmp_path).facts["precision"]["scale"] == 2.0**15
    assert (progress.step, progress.skipped) == (3, 1)
