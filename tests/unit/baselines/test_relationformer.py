"""Relationformer's network, and a run of it: settings, training, what the loop and decoding make of it."""

import json

import pytest
import torch

from graphwright.decoding import harden
from graphwright.graphs import Vocabulary
from graphwright.losses.relation_loss import class_logits
from graphwright.matching.matcher import LabelProbabilityMatcher
from graphwright.models.predictor import RelationDecoder, RelationHead
from graphwright.settings import Override, SettingsError, load_run
from graphwright.tasks import task_of
from graphwright.training import build
from tiny import LABELLED, PLAIN, tiny_settings

RELATIONS = {"model": {"kind": "relationformer"}, "matching": {"kind": "labels"}}


def head_and_states(vocabulary=LABELLED):
    torch.manual_seed(0)
    return RelationHead(8, 12, vocabulary).double(), torch.randn(3, 6, 8, dtype=torch.float64)


def test_there_is_a_query_for_every_slot_and_one_for_relations():
    torch.manual_seed(0)
    decoder = RelationDecoder(5, 8, 1, 2, 0.0, 4)
    tokens = torch.randn(3, 7, 4)
    states = decoder(tokens, None)
    assert states.shape == (3, 6, 8)
    assert decoder.queries.shape == (5, 8)
    before = states[:, :5].detach().clone()
    with torch.no_grad():
        decoder.relation += torch.randn(8)
    # Slots see the relation token, as it sees them.
    assert not torch.allclose(decoder(tokens, None)[:, :5], before)


def test_padded_tokens_are_not_looked_at():
    torch.manual_seed(0)
    decoder = RelationDecoder(5, 8, 1, 2, 0.0, 4)
    tokens, mask = torch.randn(2, 7, 4), torch.arange(7).expand(2, -1) < 4
    other = torch.where(mask[:, :, None], tokens, torch.randn(2, 7, 4))
    torch.testing.assert_close(decoder(tokens, mask), decoder(other, mask))


def test_the_relation_token_reaches_every_pair_and_no_class():
    head, states = head_and_states()
    changed = states.clone()
    changed[:, -1] += 1
    before, after = head(states), head(changed)
    assert torch.equal(class_logits(before), class_logits(after))
    moved = (before.edges - after.edges).abs().amax(1)
    assert (moved[:, ~torch.eye(5, dtype=torch.bool)] > 0).all()


def test_the_head_is_equivariant_and_its_edges_symmetric():
    head, states = head_and_states()
    order = torch.tensor([2, 4, 0, 1, 3])
    plain, moved = head(states), head(states[:, [*order.tolist(), 5]])
    torch.testing.assert_close(moved.presence, plain.presence[:, order])
    torch.testing.assert_close(moved.node_labels, plain.node_labels[:, order])
    torch.testing.assert_close(moved.edges, plain.edges[:, :, order][..., order])
    assert torch.equal(plain.edges, plain.edges.mT)
    assert not plain.edges.diagonal(dim1=2, dim2=3).any()


def test_a_pair_of_one_node_and_another_is_not_their_sum():
    head, states = head_and_states()
    swapped = states.clone()
    # x_0 + x_1 stays the same: the slots model's head could not tell.
    shift = torch.randn(8, dtype=torch.float64)
    swapped[:, 0] += shift
    swapped[:, 1] -= shift
    assert not torch.allclose(head(states).edges[:, :, 0, 1], head(swapped).edges[:, :, 0, 1])


@pytest.mark.parametrize("vocabulary", [LABELLED, PLAIN, Vocabulary(("a", "b"))])
def test_decoding_is_the_argmax(vocabulary):
    head, states = head_and_states(vocabulary)
    states = 9 * states
    with torch.no_grad():
        raw, prediction = head.classes(states[:, :-1]), head(states)
    classes = raw.argmax(2)
    torch.testing.assert_close(class_logits(prediction).log_softmax(2), raw.log_softmax(2))
    found = harden(prediction, vocabulary)
    assert torch.equal(found.presence, classes > 0)
    assert torch.equal(found.node_labels[found.presence], classes[classes > 0] - 1)
    assert 0 < found.presence.sum() < found.presence.numel()


def test_the_settings_reach_the_model():
    run = tiny_settings(
        **RELATIONS, loss={"none_weight": 0.25, "negatives": 5, "adjacency": 0.7, "node_labels": 2}
    )
    model = build(run)
    assert isinstance(model.matcher, LabelProbabilityMatcher)
    used = model.criterion.keywords["settings"]
    assert (used.node_labels, used.adjacency, used.none_weight, used.negatives) == (2, 0.7, 0.25, 5)
    assert isinstance(model.predictor.decoder, RelationDecoder)


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_a_step_trains_every_parameter(precision):
    torch.manual_seed(0)
    run = tiny_settings(**RELATIONS)
    model = build(run)
    inputs, target = task_of(run.task).data("train").batch(range(6))
    with torch.autocast("cpu", precision, enabled=precision is not None):
        result = model(inputs, target.mask, target.node_labels, target.edge_labels)
    result.loss.backward()
    assert result.loss.dtype is torch.float32
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


def test_molecules_have_no_diffusion_here(molecule_run):
    sections = {name: getattr(molecule_run, name).model_dump() for name in ("model", "matching")}
    update = {
        "model": type(molecule_run.model)(**sections["model"] | {"kind": "relationformer"}),
        "matching": type(molecule_run.matching)(**sections["matching"] | {"kind": "labels"}),
    }
    model = build(molecule_run.model_copy(update=update))
    inputs, target = task_of(molecule_run.task).data("train").batch(range(4))
    assert model.predictor(inputs).graphs.diffusion is None
    assert torch.isfinite(model(inputs, target.mask, target.node_labels, target.edge_labels).loss)


def test_another_matching_is_refused_in_one_line():
    with pytest.raises(SettingsError) as error:
        load_run("coloring10", [Override("model.kind", "relationformer")])
    assert str(error.value).endswith(
        "model.kind relationformer needs matching.kind labels, got conditional_gradient"
    )


def test_settings_without_a_kind_are_those_of_slots():
    assert tiny_settings().model.kind == "slots"
    assert json.loads(tiny_settings(**RELATIONS).model_dump_json())["model"]["kind"] == "relationformer"
