"""Training and prediction on a device that is not the processor: what can be shown without one."""

from copy import deepcopy

import pytest
import torch

from fake_device import DEVICE, DeviceError, FarTensor, fake_device, move, values
from graphwright.inference import evaluate_predictor
from graphwright.models import inputs_to
from graphwright.settings import OptimizerKind, Run
from graphwright.tasks import resolved, task_of
from graphwright.training import build
from graphwright.training.assembly import training_data
from graphwright.training.faulty import first_bad_input
from graphwright.training.optimizer import WeightAverage, build_optimizer
from tiny import WITH_STATE, tiny_settings
from tiny_molecules import molecule_settings, tiny_file
from tiny_spectra import spectrum_settings, write_spectra


def test_the_fake_device_has_the_rules_of_a_real_one():
    near = torch.arange(6.0).reshape(2, 3)
    with fake_device() as device:
        far = near.to(device)
        assert isinstance(far, FarTensor)
        assert far.device == DEVICE
        assert torch.equal((far * 2 + 1).sum(1).cpu(), (near * 2 + 1).sum(1))
        assert isinstance(torch.zeros(2, device=device), FarTensor)
        assert float((far * torch.tensor(2.0)).max()) == 10.0  # a single number may come from the processor
        assert far[torch.tensor([1])].tolist() == [[3.0, 4.0, 5.0]]
        with pytest.raises(DeviceError, match="meet tensors"):
            far + near
        with pytest.raises(DeviceError, match="indices"):
            near[torch.tensor([1]).to(device)]
        with pytest.raises((TypeError, RuntimeError), match="numpy"):
            far.numpy()
        assert far.data_ptr() == 0  # a kernel would find nothing


def runs(tmp_path) -> dict[str, Run]:
    return {
        **{kind: tiny_settings(matching={"kind": kind}) for kind in ("learned", "mirror", "labels", "order")},
        "conditional gradient": tiny_settings(matching={"kind": "conditional_gradient", "starts": 2}),
        "learned, rounded": tiny_settings(matching=WITH_STATE),
        "inner products": tiny_settings(matching={"kind": "learned", "cost": "inner_product"}),
        "J_b, swapped": tiny_settings(
            loss={"objective": "J_b", "divergence": "kl", "order": "target_first"}, matching={"kind": "learned"}
        ),
        "relationformer": tiny_settings(model={"kind": "relationformer"}, matching={"kind": "labels"}),
        "segformer": tiny_settings(model={"encoder": "segformer"}, task={"side": 32}),
        "molecules": molecule_settings(tiny_file(tmp_path)),
        "spectra": spectrum_settings(write_spectra(tmp_path / "spectra.parquet")),
    }


NAMES = [
    "learned", "mirror", "labels", "order", "conditional gradient", "learned, rounded", "inner products",
    "J_b, swapped", "relationformer", "segformer", "molecules", "spectra",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("optimizer", list(OptimizerKind))
def test_a_step_of_training_is_the_processors(name, optimizer, tmp_path, monkeypatch):
    """Forward, plan, loss, backward, optimiser, running mean: no tensor is left behind, none is looked into."""
    # Kernels and torch agree to rounding only, which a plan's choice between equals can blow up.
    monkeypatch.setattr("graphwright.transport.native.library.load_kernels", lambda: None)
    run = resolved(runs(tmp_path)[name])
    data = training_data(run)
    inputs, target = data.collate([data[index, 0] for index in range(4)])
    torch.manual_seed(0)
    here = build(run).train()
    there = move(deepcopy(here))

    def step(model, device):
        torch.manual_seed(1)
        parts = (model.predictor, model.matcher)
        mover = build_optimizer(optimizer, parts, 1e-2, 0.01)
        moved = inputs_to(inputs, device)
        assert first_bad_input(moved) is None
        result = model(moved, *target.to(device).tensors)
        result.loss.backward()
        gradients = [None if each.grad is None else values(each.grad).clone() for each in model.parameters()]
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        mover.step()
        average = WeightAverage(model.predictor, 0.9)
        average.update(model.predictor, 1)
        return (float(result.loss.detach()), float(norm)), gradients

    expected, gradients = step(here, torch.device("cpu"))
    before = [values(weight).clone() for weight in there.parameters()]
    with fake_device() as device:
        found, far_gradients = step(there, device)
    assert found == pytest.approx(expected, rel=1e-4)
    for name, near, far in zip(dict(here.named_parameters()), gradients, far_gradients, strict=True):
        assert (near is None) == (far is None), name
        if near is not None:
            assert (far - near).norm() <= 1e-3 * near.norm() + 1e-5, name
    assert any(
        not torch.equal(values(weight), old) for weight, old in zip(there.parameters(), before, strict=True)
    )


@pytest.mark.parametrize("name", ["learned", "relationformer", "segformer", "molecules", "spectra"])
def test_predictions_and_their_figures_are_the_processors(name, tmp_path, monkeypatch):
    monkeypatch.setattr("graphwright.transport.native.library.load_kernels", lambda: None)
    run = resolved(runs(tmp_path)[name])
    task = task_of(run.task)
    samples = task.data("validation")
    torch.manual_seed(0)
    here = build(run).eval()
    there = move(deepcopy(here))
    indices = list(range(min(3, len(samples))))
    expected = evaluate_predictor(here.predictor, samples, indices, task.vocabulary, run.loss)
    with fake_device():
        found = evaluate_predictor(there.predictor, samples, indices, task.vocabulary, run.loss)
    assert found.predicted == expected.predicted
    assert found.report.to_json() == expected.report.to_json()
