"""Training a model whose slots are tokens: every parameter learns, what a task knows of owners, the round trip."""

import pytest
import torch

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference import evaluate_predictor
from graphwright.inference.export import export_model
from graphwright.inference.model import load_model
from graphwright.losses import graph_loss
from graphwright.settings import Run, load_run
from graphwright.settings.choices import SettingsError
from graphwright.settings.overrides import Override
from graphwright.tasks import task_of
from graphwright.tasks.molecules.dataset import read_molecule
from graphwright.tasks.molecules.fingerprint import NO_BIT
from graphwright.training import build, train
from resuming import assert_resumes_exactly
from tiny_molecules import SMILES, molecule_settings, tiny_file

TOKENS = {"slots": "tokens", "spare_slots": 1, "layers": 1}


@pytest.fixture
def file(tmp_path):
    return tiny_file(tmp_path)


def settings(file, **sections):
    model = TOKENS | sections.pop("model", {})
    sections["matching"] = {"kind": "conditional_gradient"} | sections.get("matching", {})
    run = molecule_settings(file, **sections).model_dump()
    return Run.model_validate(run | {"model": run["model"] | model})


def step(run, count=8):
    torch.manual_seed(0)
    model = build(run)
    data = task_of(run.task).data("train")
    data.owners = True
    inputs, target = data.batch(range(count))
    return model, inputs, target


def tensors(target):
    return target.mask, target.node_labels, target.edge_labels, target.owners


def test_a_step_of_mixed_precision_is_nearly_that_of_single(file):
    model, inputs, target = step(settings(file))
    single = model(inputs, *tensors(target)).loss
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(inputs, *tensors(target)).loss
    assert mixed.dtype is torch.float32
    assert mixed.item() == pytest.approx(single.item(), rel=0.02)
    assert mixed.item() != single.item()


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("kind", ["learned", "mirror", "conditional_gradient", "labels"])
def test_every_matching_trains_every_parameter(file, kind, layers):
    model = {"layers": layers, "spare_slots": layers}
    run = settings(file, model=model, matching={"kind": kind, "linear_costs": 1.0})
    model, inputs, target = step(run)
    assert "slot_code" not in dict(model.matcher.named_parameters())
    model(inputs, *tensors(target)).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if parameter.numel():
            assert parameter.grad.abs().max() > 0, name


def test_owners_are_the_centres_that_rdkit_names(file):
    data = task_of(settings(file).task).data("train")
    assert data.batch(range(30))[1].owners is None, "nobody has asked"
    data.owners = True
    inputs, target = data.batch(range(30))
    for index, (tokens, owners, size) in enumerate(zip(inputs, target.owners, target.sizes.tolist(), strict=True)):
        sample = read_molecule(data[index].smiles, target.vocabulary, 9)
        assert not owners[0].any(), "the start token owns nothing"
        for at, token in enumerate(tokens.tolist()):
            centres = [atom for atom in range(size) if token in sample.centres[atom].tolist()]
            assert owners[at].nonzero()[:, 0].tolist() == centres
        assert owners.any(0)[:size].all()
    assert NO_BIT in read_molecule("CCO", target.vocabulary, 9).centres


def test_explicit_hydrogens_own_nothing():
    plain, explicit = (
        read_molecule(smiles, load("C O N F").vocabulary, 9) for smiles in ("CCO", "[H]C([H])([H])CO")
    )
    assert explicit.centres.shape == plain.centres.shape == (3, 3)


def load(elements):
    return task_of(load_run("qm9-cpu", [Override("task.elements", elements)]).task)


def test_the_prior_decides_the_plan_and_never_the_loss_of_a_plan(file):
    model, inputs, target = step(settings(file))
    predicted = model.predictor(inputs)
    padded = target.pad(predicted.graphs.capacity)
    prior = predicted.tokens.prior(padded.owners, padded.mask)
    with_it, without = (
        model.matcher(predicted.states, predicted.graphs, padded, given).plan for given in (prior, None)
    )
    assert (prior * with_it).sum() < 0.5 * (prior * without).sum()
    told = model(inputs, *tensors(target))
    loss = graph_loss(predicted.graphs, padded, with_it, model.loss).total
    choice = predicted.tokens.loss(with_it, padded.mask)
    torch.testing.assert_close(told.loss, (loss + choice).mean())


def test_the_learned_matcher_hears_of_the_prior(file):
    run = settings(file, matching={"kind": "learned", "linear_costs": 100.0})
    model, inputs, target = step(run)
    predicted = model.predictor(inputs)
    padded = target.pad(predicted.graphs.capacity)
    prior = predicted.tokens.prior(padded.owners, padded.mask)
    with_it, without = (
        model.matcher(predicted.states, predicted.graphs, padded, given).plan for given in (prior, None)
    )
    assert (prior * with_it).sum() < 0.9 * (prior * without).sum()


def test_a_resumed_run_is_the_run_that_was_never_stopped(file, tmp_path, monkeypatch):
    train_settings = {"steps": 6, "batch_size": 12, "optimizer": "muon", "averaging": 0.9}
    assert_resumes_exactly(settings(file, model={"dropout": 0.2}, train=train_settings), tmp_path, monkeypatch)


def test_workers_change_nothing(file, tmp_path):
    found = []
    for workers in (0, 2):
        train(settings(file, train={"workers": workers, "steps": 3}), tmp_path / str(workers))
        found.append(checkpoints.load(tmp_path / str(workers) / "checkpoints" / "last").tensors)
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_a_trained_model_predicts_evaluates_and_is_handed_on(file, tmp_path):
    train(settings(file, train={"steps": 30, "learning_rate": 1e-2, "batch_size": 16}), tmp_path / "run")
    model = load_model(str(tmp_path / "run"))
    export_model(str(tmp_path / "run"), tmp_path / "small", {})
    exported = load_model(str(tmp_path / "small"))
    one, many = model.predict(SMILES[6]), model.predict(SMILES)
    assert one.graph == many[6].graph
    assert many[0].graph.size
    for decoder in ("plain", "valid", "known"):
        assert len(model.predict(SMILES[:3], decode=decoder)) == 3
    data = model.task.data("test", limit=7)
    report = evaluate_predictor(model.predictor, data, range(7), model.vocabulary, build(model.run).loss, 3).report
    assert 0 <= report.to_json()["isomorphic"] <= 100
    inputs = model.task.inputs(SMILES)
    torch.testing.assert_close(
        exported.predictor(inputs).graphs.presence, model.predictor(inputs).graphs.presence, atol=0.1, rtol=0.1
    )


def test_settings_that_make_no_sense_are_refused_in_a_sentence():
    for name, overrides, complaint in (
        ("coloring10", {"model.slots": "tokens"}, "encoder whose tokens stand for nodes, got cnn"),
        ("qm9-cpu", {"model.layers": "0"}, "layers 0 needs spare_slots 0, got 4"),
        ("qm9-cpu", {"model.layers": "0", "model.slots": "learned"}, "layers 0 needs slots tokens"),
        ("qm9-cpu", {"matching.kind": "order"}, "matching.kind must not be order"),
        ("qm9-cpu", {"matching.kind": "learned", "matching.linear_costs": "0"}, "linear_costs above 0"),
        ("qm9-cpu", {"model.kind": "relationformer", "matching.kind": "labels"}, "needs model.kind slots"),
        ("qm9-cpu", {"loss.recognition": "1"}, "cannot recognise whole graphs"),
    ):
        with pytest.raises(SettingsError, match=complaint):
            load_run(name, [Override(*each) for each in overrides.items()])
    load_run("qm9-cpu", [Override("model.layers", "0"), Override("model.spare_slots", "0")])
    load_run("qm9-cpu", [Override("matching.kind", "learned")])
