"""Training on molecules: labels from the data, feature diffusion in all its places, exact resumption."""

from dataclasses import replace

import pytest
import torch
from rdkit import Chem

from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.model import load_model
from graphwright.losses import graph_loss, matching_problem
from graphwright.settings import load_run
from graphwright.tasks import task_of
from graphwright.training import build, train
from graphwright.training.assembly import term_names
from graphwright.training.log import read_log
from resuming import assert_resumes_exactly
from tiny_molecules import SMILES, molecule_settings, tiny_file


@pytest.fixture
def file(tmp_path):
    return tiny_file(tmp_path)


def step(run):
    torch.manual_seed(0)
    model = build(run)
    tokens, target = task_of(run.task).data("train").batch(range(8))
    return model, tokens, target


@pytest.mark.parametrize("kind", ["learned", "mirror", "conditional_gradient", "labels", "order"])
def test_every_matching_trains_every_part_of_the_predictor(file, kind):
    model, tokens, target = step(molecule_settings(file, matching={"kind": kind}))
    result = model(tokens, target.mask, target.node_labels, target.edge_labels)
    result.loss.backward()
    assert dict(zip(term_names(model.loss), result.terms.tolist(), strict=True))["diffusion"] > 0
    for name, parameter in model.predictor.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_diffusion_is_in_the_loss_with_its_weight(file):
    losses = {}
    for weight in (0.0, 1.0, 3.0):
        model, tokens, target = step(
            molecule_settings(file, matching={"kind": "labels"}, loss={"diffusion": weight})
        )
        result = model(tokens, target.mask, target.node_labels, target.edge_labels)
        losses[weight] = float(result.loss.detach())
        term = dict(zip(term_names(model.loss), result.terms.tolist(), strict=True))["diffusion"]
    assert losses[1.0] - losses[0.0] == pytest.approx(term, rel=1e-5)
    assert losses[3.0] - losses[0.0] == pytest.approx(3 * term, rel=1e-5)


def test_diffusion_is_in_the_matching_problem_and_can_decide_it(file):
    """Two atoms that look alike to every other term are told apart by their neighbours alone."""
    model, tokens, target = step(molecule_settings(file))
    prediction = model.predictor(tokens).graphs
    with_it = matching_problem(prediction, target, model.loss)
    plain = torch.eye(9)[None].expand(8, -1, -1)
    without = graph_loss(prediction, target, plain, model.loss)
    objective = without.total - model.loss.marginals * without.marginals
    torch.testing.assert_close(with_it.objective(plain), objective)
    flat = matching_problem(replace(prediction, diffusion=None), target, model.loss)
    difference = with_it.linear - flat.linear
    want = target.diffused_labels()[:, None] - prediction.diffusion[:, :, None]
    expected = want.square().sum(3) * target.node_mask()[:, None] / target.sizes[:, None, None]
    torch.testing.assert_close(difference, expected, atol=1e-5, rtol=1e-4)


def test_without_diffusion_there_is_no_head_for_it(file):
    model, tokens, _ = step(molecule_settings(file, task={"diffusion": False}))
    assert model.predictor(tokens).graphs.diffusion is None


def test_a_few_molecules_can_be_learned_by_heart(file):
    run = molecule_settings(
        file, model={"width": 32, "encoder_width": 32, "head_width": 32}, matching={"kind": "mirror"}
    )
    torch.manual_seed(0)
    model = build(run)
    tokens, target = task_of(run.task).data("train").batch(range(4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    terms = []
    for _ in range(50):
        result = model(tokens, target.mask, target.node_labels, target.edge_labels)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        named = dict(zip(term_names(model.loss), result.terms.tolist(), strict=True))
        terms.append(named | {"total": float(result.loss.detach())})
    for name in ("presence", "node_labels", "diffusion", "total"):
        assert terms[-1][name] < 0.5 * terms[0][name], name


def test_a_trained_model_knows_its_labels_without_the_data(file, tmp_path):
    run = molecule_settings(file, task={"elements": "", "capacity": 20}, train={"steps": 1})
    folder = tmp_path / "run"
    train(run, folder)
    assert load_run(str(folder)).task.elements == "C O N F Si"
    file.unlink()
    model = load_model(str(folder))
    assert model.vocabulary.nodes == ("C", "O", "N", "F", "Si")
    assert model.predict("CCO").graph.vocabulary == model.vocabulary


def test_a_resumed_run_is_the_run_that_was_never_stopped(file, tmp_path, monkeypatch):
    run = molecule_settings(
        file, model={"dropout": 0.2}, train={"steps": 7, "validate_every": 100, "log_every": 1, "batch_size": 12}
    )
    folders = assert_resumes_exactly(run, tmp_path, monkeypatch)
    losses = [[record.get("loss") for record in read_log(folder / "log.jsonl")] for folder in folders]
    assert losses[0] == losses[1]


def test_workers_change_nothing(file, tmp_path):
    tensors = []
    for workers in (0, 2):
        train(molecule_settings(file, train={"workers": workers, "steps": 4}), tmp_path / str(workers))
        tensors.append(checkpoints.load(tmp_path / str(workers) / "checkpoints" / "last").tensors)
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def test_predictions_take_every_form_and_any_number(tiny_molecule_run):
    model = load_model(str(tiny_molecule_run))
    by_text = model.predict(SMILES[:5], decode="plain")
    by_molecule = model.predict([Chem.MolFromSmiles(smiles) for smiles in SMILES[:5]], decode="plain")
    assert [each.graph for each in by_text] == [each.graph for each in by_molecule]
    assert model.predict(SMILES[0], decode="plain").graph == by_text[0].graph
    several = model.predict(SMILES[:2], top=4, decode="plain")
    for each, plain in zip(several, by_text, strict=False):
        assert each.graph == plain.graph == each.candidates[0].graph
        assert len(each.candidates) == 4
        scores = [candidate.log_score for candidate in each.candidates]
        assert scores == sorted(scores, reverse=True)
