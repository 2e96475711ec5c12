"""Training and prediction on a device that is not the processor: what can be shown without one."""

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from lightning.fabric.wrappers import _FabricModule, _FabricOptimizer

from fake_device import DEVICE, DeviceError, FarTensor, fake_device, move, values
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference import evaluate_predictor, export
from graphwright.inference.model import load_model
from graphwright.models import inputs_to
from graphwright.settings import OptimizerKind, Run
from graphwright.tasks import resolve, task_of
from graphwright.training import build, loop
from graphwright.training.assembly import training_data
from graphwright.training.faulty import first_bad_input
from graphwright.training.optimizer import WeightAverage, build_optimizer
from graphwright.transport.native import kernels_for, library
from tiny import WITH_STATE, tiny_settings
from tiny_molecules import molecule_settings, tiny_file
from tiny_spectra import spectrum_settings, write_spectra
from tiny_tables import rows, write_jsonl

ROOT = Path(__file__).parents[3]


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
        with pytest.raises(DeviceError, match="meet tensors"):
            far[torch.tensor([0])] = torch.ones(1, 3)
        with pytest.raises(DeviceError, match="meet tensors"):
            torch.stack([far.sum(), torch.tensor(1.0)])
        with pytest.raises(DeviceError, match="meet tensors"):
            torch.tensor(1.0).add_(far.sum())
        with pytest.raises(DeviceError, match="generator"):
            torch.rand(2, device=device, generator=torch.Generator())
        assert not far.is_meta  # nothing is left out as for a tensor without values
        with pytest.raises((TypeError, RuntimeError), match="numpy"):
            far.numpy()
        assert far.data_ptr() == 0  # a kernel would find nothing


def test_kernels_are_for_the_processor_alone():
    assert kernels_for(torch.empty(2, device="meta")) is None
    if library.load_kernels() is not None:
        assert kernels_for(torch.empty(2)) is not None


def table_run(path, columns, **sections) -> Run:
    given = rows(36, columns)
    tiny = tiny_settings(**sections).model_dump(exclude={"task"})
    del tiny["model"]["encoder"]
    return Run.model_validate(tiny | {"task": {"kind": "table", "data": str(write_jsonl(path, given))}})


def token_run(path, **sections) -> Run:
    run = molecule_settings(path, **sections).model_dump()
    return Run.model_validate(run | {"model": run["model"] | {"slots": "tokens", "spare_slots": 2}})


def runs(tmp_path) -> dict[str, Run]:
    spectra = write_spectra(tmp_path / "spectra.parquet")
    molecules = tiny_file(tmp_path)
    return {
        **{kind: tiny_settings(matching={"kind": kind}) for kind in ("learned", "mirror", "labels", "order")},
        "conditional gradient": tiny_settings(matching={"kind": "conditional_gradient", "starts": 2}),
        "learned, rounded": tiny_settings(matching=WITH_STATE),
        "inner products": tiny_settings(matching={"kind": "learned", "cost": "inner_product"}),
        "J_b, swapped": tiny_settings(
            loss={"objective": "J_b", "divergence": "kl", "order": "target_first"}, matching={"kind": "learned"}
        ),
        "J_a": tiny_settings(loss={"objective": "J_a", "divergence": "kl"}, matching={"kind": "learned"}),
        "J_a, swapped, literal": tiny_settings(
            loss={"objective": "J_a", "divergence": "kl", "order": "target_first", "reading": "literal"},
            matching={"kind": "learned"},
        ),
        "relationformer": tiny_settings(model={"kind": "relationformer"}, matching={"kind": "labels"}),
        "segformer": tiny_settings(model={"encoder": "segformer"}, task={"side": 32}),
        "molecules": molecule_settings(molecules),
        "spectra": spectrum_settings(spectra),
        "recognition": spectrum_settings(spectra, loss={"recognition": 0.5}),
        "token slots": token_run(molecules, matching={"kind": "conditional_gradient"}),
        "token slots, learned": token_run(molecules, matching={"kind": "learned", "linear_costs": 1.0}),
        "table of sets": table_run(tmp_path / "sets.jsonl", lambda _: {}),
        "table with attributes": table_run(
            tmp_path / "attributes.jsonl",
            lambda at: {
                "points": [0.1 * at, 1.0, 2.0],
                "attributes": [[0.5 * step, float(at)] for step in range(3 + at % 3)],
            },
        ),
        "random signs": tiny_settings(matching={"kind": "learned", "random_signs": True}),
        "without self-loops": tiny_settings(loss={"self_loops": "excluded"}, matching={"kind": "learned"}),
        "J_b": tiny_settings(loss={"objective": "J_b", "divergence": "kl"}, matching={"kind": "learned"}),
        "mirror under J_a": tiny_settings(
            loss={"objective": "J_a", "divergence": "kl"}, matching={"kind": "mirror"}
        ),
        "reverse penalty": tiny_settings(loss={"penalty": "reverse"}, matching={"kind": "learned"}),
        "edges from sums, detail": tiny_settings(
            model={"pairs": "sum", "encoder_detail": 1}, matching={"kind": "learned"}
        ),
    }


SAMPLES = {"spectra": 20}
"""Of a step; so many spectra are read in groups."""


NAMES = [
    "learned", "mirror", "labels", "order", "conditional gradient", "learned, rounded", "inner products",
    "J_b, swapped", "J_a", "J_a, swapped, literal", "relationformer", "segformer", "molecules", "spectra",
    "recognition", "token slots", "token slots, learned", "table of sets", "table with attributes",
    "random signs", "without self-loops", "J_b", "mirror under J_a", "reverse penalty",
    "edges from sums, detail",
]  # fmt: skip


def forbidden():
    raise AssertionError("a kernel is asked for beside tensors that it cannot read")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("optimizer", list(OptimizerKind))
def test_a_step_of_training_is_the_processors(name, optimizer, tmp_path, monkeypatch):
    """Forward, plan, loss, backward, optimiser, running mean: no tensor is left behind, none is looked into."""
    # Kernels and torch agree to rounding only, which a plan's choice between equals can blow up.
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    plan = resolve(runs(tmp_path)[name])
    data = training_data(plan.run)
    inputs, target = data.collate([data[index % len(data), 0] for index in range(SAMPLES.get(name, 4))])
    torch.manual_seed(0)
    here = build(plan.run, plan.library).train()
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
    monkeypatch.setattr(library, "load_kernels", forbidden)
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


@pytest.mark.parametrize(
    "name",
    [
        "learned",
        "relationformer",
        "segformer",
        "molecules",
        "spectra",
        "recognition",
        "token slots",
        "table with attributes",
    ],
)
def test_predictions_and_their_figures_are_the_processors(name, tmp_path, monkeypatch):
    monkeypatch.setattr(library, "load_kernels", lambda: None)
    plan = resolve(runs(tmp_path)[name])
    run = plan.run
    task = task_of(run.task)
    samples = task.data("validation")
    torch.manual_seed(0)
    here = build(run, plan.library).eval()
    there = move(deepcopy(here))
    indices = list(range(min(3, len(samples))))
    expected = evaluate_predictor(here.predictor, samples, indices, task.vocabulary, run.loss)
    with fake_device():
        found = evaluate_predictor(there.predictor, samples, indices, task.vocabulary, run.loss)
    assert found.predicted == expected.predicted
    figures = expected.report.to_json()
    assert found.report.to_json().keys() == figures.keys()
    for figure, value in found.report.to_json().items():
        assert value == (None if value is None else pytest.approx(figures[figure], rel=1e-6)), figure


ANSWERED = [
    ("coloring10", "examples/regions.png", "plain"),
    ("coloring10", "examples/regions.png", "views"),
    ("qm9", "CC(=O)NC", "plain"),
    ("qm9", "CC(=O)NC", "valid"),
    ("qm9", "CC(=O)NC", "fingerprint"),
    ("ms2scaffold", "examples/caffeine.mgf", "known"),
]


@pytest.mark.parametrize(("name", "given", "decode"), ANSWERED)
def test_a_model_that_was_moved_answers_as_on_the_processor(name, given, decode):
    given = str(ROOT / given) if "/" in given else given
    expected = load_model(name).predict(given, decode=decode)
    there = load_model(name)
    move(there.predictor)
    with fake_device():
        found = there.predict(given, decode=decode)
    assert found.graph == expected.graph
    assert [each.graph for each in found.candidates] == [each.graph for each in expected.candidates]
    assert found.confidence == pytest.approx(expected.confidence, rel=1e-3)


def test_confidence_is_calibrated_on_the_device(monkeypatch):
    monkeypatch.setattr(export, "CALIBRATING", 12)
    expected = export.calibrated_temperature(load_model("ms2scaffold"))
    there = load_model("ms2scaffold")
    move(there.predictor)
    with fake_device():
        assert export.calibrated_temperature(there) == pytest.approx(expected, rel=1e-3)


class Generators:
    """The random numbers of a device that draws them on the processor."""

    @staticmethod
    def get_rng_state(device):
        assert device == DEVICE
        return torch.get_rng_state()

    @staticmethod
    def set_rng_state(state, device):
        assert device == DEVICE
        torch.set_rng_state(state)


@pytest.fixture
def elsewhere(monkeypatch):
    """Training of this process goes to the fake device, by the real loop and the real Fabric."""
    made, fabric_of = loop.build, loop._fabric

    def fabric(run):
        own = fabric_of(run)
        monkeypatch.setattr(type(own.strategy), "root_device", DEVICE)
        monkeypatch.setattr(own.strategy.accelerator, "setup_device", lambda _: None)

        def wrapped(model, optimizer):
            """As its own does, but that it moves nothing."""
            return _FabricModule(model, own.strategy), _FabricOptimizer(optimizer, own.strategy)

        monkeypatch.setattr(own, "setup", wrapped)
        return own

    monkeypatch.setattr(loop, "build", lambda *given: move(made(*given)))
    monkeypatch.setattr(loop, "_fabric", fabric)
    monkeypatch.setattr(torch, "get_device_module", lambda _: Generators)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("optimizer", list(OptimizerKind))
def test_a_whole_run_validates_averages_saves_and_resumes_there(optimizer, tmp_path):
    train = {"optimizer": optimizer, "accumulate": 3, "averaging": 0.9, "validate_every": 2, "steps": 4}
    run = tiny_settings(train=train, matching={"kind": "learned", "probe_every": 2})
    with fake_device():
        whole = loop.train(run, tmp_path / "whole")
        half = run.model_copy(update={"train": run.train.model_copy(update={"steps": 2})})
        loop.train(half, tmp_path / "parts")
        resumed = loop.train(run, tmp_path / "parts", resume=True)
    assert whole.progress.step == resumed.progress.step == 4
    assert whole.progress.metrics["samples"] == run.train.validation_samples
    states = [checkpoints.load(tmp_path / name / "checkpoints" / "last").tensors for name in ("whole", "parts")]
    assert states[0].keys() == states[1].keys()
    assert all(type(tensor) is torch.Tensor for tensor in states[0].values())
