"""Capture and restore: a model, its optimiser, its random numbers, its progress."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from graphwright.inference.checkpoint import Checkpoint, CheckpointError
from graphwright.training.optimizer import WeightAverage
from graphwright.training.state import Progress, capture, load_weights, random_state, restore, set_random_state


def parts(seed: int = 0) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.randn(5, 3)).square().mean().backward()
    optimizer.step()


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return dict(capture(model, optimizer, Progress(), random_state()[None], {}).tensors)


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


def captured(model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress | None = None) -> Checkpoint:
    saved = capture(model, optimizer, progress or Progress(), random_state()[None], {"settings": {"a": 1}})
    return replace(saved, tensors={name: tensor.clone() for name, tensor in saved.tensors.items()})


def test_a_restored_state_goes_on_to_the_last_bit():
    model, optimizer = parts()
    for _ in range(3):
        step(model, optimizer)
    saved = captured(model, optimizer)
    for _ in range(4):
        step(model, optimizer)
    other, other_optimizer = parts(seed=1)
    restore(saved, other, other_optimizer)
    for _ in range(4):
        step(other, other_optimizer)
    assert equal(everything(model, optimizer), everything(other, other_optimizer))


def test_restoring_replaces_what_an_optimiser_had():
    model, optimizer = parts()
    saved = captured(model, optimizer)
    assert not any(name.startswith("optimizer.") for name in saved.tensors)
    step(model, optimizer)
    one = captured(model, optimizer)
    step(model, optimizer)
    restore(one, model, optimizer)
    assert equal(everything(model, optimizer), dict(one.tensors))


def test_a_checkpoint_is_not_changed_by_going_on_from_it():
    model, optimizer = parts()
    step(model, optimizer)
    saved = captured(model, optimizer)
    before = {name: tensor.clone() for name, tensor in saved.tensors.items()}
    restore(saved, model, optimizer)
    step(model, optimizer)
    assert equal(dict(saved.tensors), before)


def test_progress_and_facts_come_back():
    model, optimizer = parts()
    progress = Progress(step=7, seconds=1.25, best=0.5, stale=2, validated=6, metrics={"edit": 1.0}, skipped=1)
    saved = captured(model, optimizer, progress)
    assert saved.facts["settings"] == {"a": 1}
    assert restore(saved, model, optimizer) == progress


def test_progress_written_before_some_of_its_fields_existed_is_read():
    model, optimizer = parts()
    saved = captured(model, optimizer)
    old = replace(saved, facts={"progress": {"step": 3, "seconds": 1.0, "best": None, "stale": 0}})
    assert restore(old, model, optimizer) == Progress(step=3, seconds=1.0)


def test_each_rank_gets_its_own_random_numbers():
    model, optimizer = parts()
    states = []
    for seed in range(2):
        torch.manual_seed(seed)
        states.append(random_state())
    saved = capture(model, optimizer, Progress(), torch.stack(states), {})
    for rank in (0, 1):
        restore(saved, model, optimizer, rank)
        expected = torch.rand(3, generator=torch.Generator().manual_seed(rank))
        assert torch.equal(torch.rand(3), expected)


def test_a_rank_that_the_checkpoint_does_not_know_keeps_its_own():
    model, optimizer = parts()
    saved = captured(model, optimizer)
    torch.manual_seed(5)
    restore(saved, model, optimizer, rank=3)
    assert torch.equal(torch.rand(3), torch.rand(3, generator=torch.Generator().manual_seed(5)))


def test_random_states_come_back():
    torch.manual_seed(3)
    state = random_state(torch.device("cpu"))
    first = torch.rand(4)
    torch.rand(10)
    set_random_state(state, torch.device("cpu"))
    assert torch.equal(torch.rand(4), first)


def test_weights_of_another_model_are_refused():
    model, optimizer = parts()
    with pytest.raises(CheckpointError, match=r"does not fit the model[\s\S]*0\.weight"):
        load_weights(captured(model, optimizer), "model.", nn.Sequential(nn.Linear(3, 5)))


def test_a_missing_weight_is_refused():
    model, optimizer = parts()
    saved = captured(model, optimizer)
    fewer = {name: tensor for name, tensor in saved.tensors.items() if name != "model.3.bias"}
    with pytest.raises(CheckpointError, match=r"3\.bias"):
        restore(replace(saved, tensors=fewer), model, optimizer)


def test_a_running_mean_is_captured_and_comes_back():
    model, optimizer = parts()
    average, other = WeightAverage(model, 0.9), WeightAverage(parts(seed=1)[0], 0.9)
    step(model, optimizer)
    average.update(model, 0)
    saved = capture(model, optimizer, Progress(), random_state()[None], {}, average)
    names = {name for name in saved.tensors if name.startswith("average.")}
    assert names == {f"average.predictor.{name}" for name in model.state_dict()}
    restore(saved, model, optimizer, average=other)
    assert equal(dict(other.state_dict()), dict(average.state_dict()))
    without = {name: tensor for name, tensor in saved.tensors.items() if name not in names}
    with pytest.raises(CheckpointError, match="does not fit the model"):
        restore(replace(saved, tensors=without), model, optimizer, average=other)


@pytest.mark.parametrize("lost", ["random", "progress"])
def test_an_exported_model_cannot_go_on_and_leaves_the_session_as_it_was(lost):
    model, optimizer = parts()
    saved = captured(model, optimizer)
    step(model, optimizer)
    before = {name: value.clone() for name, value in everything(model, optimizer).items()}
    if lost == "random":
        saved = replace(saved, tensors={name: t for name, t in saved.tensors.items() if name != "random"})
    else:
        saved = replace(saved, facts={})
    with pytest.raises(CheckpointError, match="holds a model, not a run that can go on"):
        restore(saved, model, optimizer)
    assert equal(everything(model, optimizer), before)
