"""Muon: orthogonal steps for what multiplies vectors, AdamW for the rest, and runs that resume with it."""

import pytest
import torch
from torch import nn

from graphwright.settings import OptimizerKind
from graphwright.training import build
from graphwright.training import optimizer as module
from graphwright.training.optimizer import (
    MOMENTUM,
    RMS,
    Muon,
    build_optimizer,
    orthogonal,
    split_parameters,
)
from resuming import assert_resumes_exactly
from tiny import tiny_settings

RATE, DECAY = 0.05, 0.1


@pytest.mark.parametrize("shape", [(12, 12), (40, 12), (12, 90)])
def test_a_step_has_the_singular_vectors_of_the_matrix_and_singular_values_near_one(shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape, dtype=torch.float64)
    left, values, right = torch.linalg.svd(orthogonal(matrix), full_matrices=False)
    assert values.min() > 0.6
    assert values.max() < 1.3
    left_of, _, right_of = torch.linalg.svd(matrix, full_matrices=False)
    # The nearest orthogonal matrix is U V'; ours is U f(S) V': the product of the two is symmetric.
    aligned = (left_of @ right_of).mT @ (left @ torch.diag(values) @ right)
    torch.testing.assert_close(aligned, aligned.mT, rtol=1e-8, atol=1e-8)


def test_a_zero_gradient_has_a_zero_step():
    assert not orthogonal(torch.zeros(10, 12)).any()


@pytest.mark.parametrize("factor", [1e-12, 1e6])
def test_a_step_does_not_depend_on_the_scale_of_the_gradient(factor):
    torch.manual_seed(0)
    matrix = torch.randn(16, 24)
    torch.testing.assert_close(orthogonal(factor * matrix), orthogonal(matrix), rtol=1e-3, atol=1e-4)


def test_weights_that_multiply_vectors_are_matrices_and_nothing_else_is():
    module = nn.ModuleDict(
        {
            "linear": nn.Linear(16, 12),
            "convolution": nn.Conv2d(4, 12, 3),
            "words": nn.Embedding(20, 16),
            "logit": nn.Linear(16, 1),
            "norm": nn.LayerNorm(16),
        }
    )
    module.queries = nn.Parameter(torch.randn(16, 16))
    matrices, others = split_parameters(module)
    names = {id(value): name for name, value in module.named_parameters()}
    assert {names[id(value)] for value in matrices} == {"linear.weight", "convolution.weight"}
    assert {names[id(value)] for value in others} == set(names.values()) - {"linear.weight", "convolution.weight"}


def test_a_matrix_moves_by_its_orthogonal_momentum_and_decays():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(10, 30))
    before, gradients = weight.detach().clone(), [torch.randn(10, 30) for _ in range(2)]
    optimizer = Muon([{"params": [weight], "matrices": True}], RATE, DECAY)
    momentum = torch.zeros(10, 30)
    for gradient in gradients:
        weight.grad = gradient
        optimizer.step()
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
        step = orthogonal((1 - MOMENTUM) * gradient + MOMENTUM * momentum)
        before = (1 - RATE * DECAY) * before - RATE * RMS * 30**0.5 * step
    torch.testing.assert_close(weight.detach(), before)


def test_the_rest_moves_as_adamw_moves_it():
    torch.manual_seed(0)
    first = nn.Parameter(torch.randn(7))
    second = nn.Parameter(first.detach().clone())
    ours = Muon([{"params": [first], "matrices": False}], RATE, DECAY)
    theirs = torch.optim.AdamW([second], lr=RATE, weight_decay=DECAY)
    for _ in range(4):
        first.grad = torch.randn(7)
        second.grad = first.grad.clone()
        ours.step()
        theirs.step()
    torch.testing.assert_close(first, second)


@pytest.mark.parametrize("kind", OptimizerKind)
@pytest.mark.parametrize("matching", ["learned", "conditional_gradient"])
def test_every_parameter_is_in_one_group(kind, matching):
    model = build(tiny_settings(matching={"kind": matching}))
    groups = build_optimizer(kind, (model.predictor, model.matcher), RATE, DECAY).param_groups
    assert sorted(id(each) for group in groups for each in group["params"]) == sorted(map(id, model.parameters()))


@pytest.mark.parametrize("shape", [(12, 12), (40, 12), (12, 90)])
def test_a_stack_is_made_orthogonal_matrix_by_matrix(shape):
    torch.manual_seed(0)
    stack = torch.randn(3, *shape) * torch.tensor([1.0, 1e-6, 1e6])[:, None, None]
    torch.testing.assert_close(orthogonal(stack), torch.stack([orthogonal(each) for each in stack]))


@pytest.mark.parametrize("shape", [(64, 576), (96, 288), (384, 96)])
def test_in_bfloat16_a_step_is_as_orthogonal(shape):
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    exact, rounded = orthogonal(matrix), orthogonal(matrix, torch.bfloat16)
    assert rounded.dtype is torch.float32
    assert not torch.equal(exact, rounded)
    values = torch.linalg.svdvals(rounded)
    assert values.min() > 0.6
    assert values.max() < 1.3
    assert (exact - rounded).norm() < 0.03 * exact.norm()


def test_matrices_of_all_shapes_move_each_by_its_own_step():
    torch.manual_seed(0)
    shapes = [(10, 30), (30, 10), (10, 30), (9, 4, 3, 3), (12, 12)]
    weights = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for weight in weights:
        weight.grad = torch.randn(weight.shape)
    Muon([{"params": weights, "matrices": True}], RATE, DECAY).step()
    for weight in weights:
        gradient = weight.grad.flatten(1)
        size = max(gradient.shape) ** 0.5
        momentum = (1 - MOMENTUM) * gradient
        step = orthogonal((1 - MOMENTUM) * gradient + MOMENTUM * momentum)
        torch.testing.assert_close(weight.detach().flatten(1), -RATE * RMS * size * step)


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_the_matrices_evenly_whatever_their_shapes(processes, monkeypatch):
    torch.manual_seed(0)
    shapes = [(10, 30), (30, 10), (10, 30), (12, 12), (9, 36), (40, 10), (10, 30)]
    matrices = [torch.randn(shape) for shape in shapes]
    monkeypatch.setattr(module.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(module.distributed, "get_world_size", lambda: processes)
    monkeypatch.setattr(module.distributed, "all_reduce", lambda _: None)
    shares = []
    for rank in range(processes):
        monkeypatch.setattr(module.distributed, "get_rank", lambda rank=rank: rank)
        shares.append(module._orthogonal_together(matrices, torch.float32))
    for at, matrix in enumerate(matrices):
        made = [share[at] for share in shares if share[at].any()]
        assert len(made) == 1
        torch.testing.assert_close(made[0], orthogonal(matrix))
    counts = [sum(bool(part.any()) for part in share) for share in shares]
    assert max(counts) - min(counts) <= 1


def test_processes_that_have_no_gradient_say_nothing_to_each_other(monkeypatch):
    monkeypatch.setattr(module.distributed, "is_initialized", lambda: True)
    weight = nn.Parameter(torch.ones(10, 30))
    Muon([{"params": [weight], "matrices": True}], RATE, DECAY).step()  # all_reduce would raise
    assert (weight == 1).all()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_run_with_muon_resumes_to_the_last_bit(precision, tmp_path, monkeypatch):
    train = {"steps": 6, "optimizer": "muon", "precision": precision}
    run = tiny_settings(model={"dropout": 0.2}, train=train)
    assert_resumes_exactly(run, tmp_path, monkeypatch)
