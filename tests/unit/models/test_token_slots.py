"""Slots that begin as tokens: which tokens, in any order, beside any other sample, and what is said of them."""

from dataclasses import replace

import pytest
import torch

from graphwright.decoding import decode
from graphwright.graphs.batch import NO_SELF_LOOP
from graphwright.models import (
    FingerprintEncoder,
    GraphHead,
    GraphPredictor,
    SlotTokens,
    Tokens,
    TokenSlots,
)
from graphwright.models.predictor import LAST, SPARE, UNOWNED
from tiny import LABELLED

BITS, PADDING = 20, 21
NODES, SPARES = 4, 2
KEPT = 6


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    monkeypatch.setattr("graphwright.models.predictor.ROOM", KEPT - NODES)


def predictor(layers=2, spare=SPARES):
    torch.manual_seed(0)
    encoder = FingerprintEncoder(BITS, 8, 2, 2, 0.0)
    head = GraphHead(8, 8, LABELLED, diffusion=True, product=True)
    return GraphPredictor(encoder, TokenSlots(NODES, spare, 8, layers, 2, 0.0, 8), head).double().eval()


def codes(*rows, length):
    return torch.tensor([[BITS, *row] + [PADDING] * (length - 1 - len(row)) for row in rows])


def tensors(prediction):
    return {name: value for name, value in vars(prediction).items() if value is not None}


@pytest.mark.parametrize("bits", [[3, 5, 7], [1, 2, 3, 4, 5, 6, 7, 8, 9]], ids=["few tokens", "more than kept"])
def test_padding_and_other_samples_change_nothing(bits):
    model = predictor()
    alone = model(codes(bits, length=1 + len(bits))).graphs
    beside = model(codes(bits, list(range(15)), [0], length=16)).graphs
    assert alone.capacity == beside.capacity == KEPT + SPARES
    for name, value in tensors(alone).items():
        torch.testing.assert_close(getattr(beside, name)[:1], value, msg=name)


@pytest.mark.parametrize("layers", [0, 2])
def test_the_order_of_tokens_moves_the_slots_and_changes_nothing_else(layers):
    model, bits = predictor(layers, spare=SPARES if layers else 0), [1, 4, 9, 16, 2, 11, 7]
    turned = [2, 16, 7, 1, 11, 4, 9]
    one, other = (model(codes(row, length=8)) for row in (bits, turned))

    def by_bit(predicted, row):
        named = [BITS, *row, -1]  # no token: the last one
        return torch.tensor([named[at] for at in predicted.tokens.source[0].tolist()])

    first, second = by_bit(one, bits), by_bit(other, turned)
    order = [int((second == bit).nonzero()[0, 0]) if bit >= 0 else at for at, bit in enumerate(first.tolist())]
    assert (first >= 0).sum() == KEPT
    torch.testing.assert_close(other.states[:, order], one.states)
    torch.testing.assert_close(other.graphs.presence[:, order], one.graphs.presence)
    torch.testing.assert_close(other.graphs.edges[..., order, :][..., order], one.graphs.edges)


def test_the_likeliest_tokens_become_slots_and_the_start_token_never():
    found = predictor()(codes([3, 5, 7, 9, 11, 13, 15, 17], [2], length=9)).tokens
    best = found.scores[0, 1:].topk(KEPT).indices + 1
    assert found.source[0, :KEPT].sort().values.tolist() == best.sort().values.tolist()
    assert found.source[1, found.real[1]].tolist() == [1, SPARE, SPARE]


def test_slots_for_want_of_tokens_are_certainly_absent_and_seen_by_nobody():
    model = predictor()
    predicted = model(codes([3], length=2))
    real, graphs = predicted.tokens.real[0], predicted.graphs
    assert real.tolist() == [True] + [False] * (KEPT - 1) + [True] * SPARES
    assert (graphs.presence[0, ~real] == NO_SELF_LOOP).all()
    assert (graphs.edges.argmax(1)[0, ~real] == 0).all()
    assert decode(graphs, LABELLED)[0].size <= 1 + SPARES


def test_an_input_without_tokens_gives_finite_logits():
    for spare in (0, SPARES):
        graphs = predictor(spare=spare)(codes([], [4], length=2)).graphs
        assert all(value.isfinite().all() for value in tensors(graphs).values())
    assert decode(predictor(spare=0)(codes([], length=1)).graphs, LABELLED)[0].size == 0


def test_an_encoder_whose_tokens_own_nothing_is_refused():
    with pytest.raises(ValueError, match="tokens may own nodes"):
        TokenSlots(NODES, SPARES, 8, 1, 2, 0.0, 8)(Tokens(torch.zeros(1, 3, 8)))


def some_slots():
    """Five tokens, the first owning nothing; four token slots, of which one is for want of tokens; one spare."""
    source = torch.tensor([[2, 1, 4, 0, SPARE]])
    real = torch.tensor([[True, True, True, False, True]])
    owning = torch.tensor([[False, True, True, True, True]])
    return SlotTokens(source, real, torch.tensor([[9.0, 1.0, 2.0, 3.0, -1.0]], requires_grad=True), owning)


def test_the_prior_is_against_strangers_then_spares_for_real_nodes_alone():
    owners = torch.zeros(1, 5, 5, dtype=torch.bool)
    owners[0, 1, 0] = owners[0, 2, :2] = owners[0, 0, 0] = True
    mask = torch.tensor([[True, True, False, False, False]])
    c, last = UNOWNED / 2, LAST / 2
    expected = [[0, 0], [0, c], [c, c], [c, c], [last, last]]
    prior = some_slots().prior(owners, mask)
    assert prior[0, :, :2].tolist() == expected
    assert (prior[0, :, 2:] == 0).all()


def test_scores_learn_what_the_plan_wants_and_tokens_left_out_learn_to_be_absent():
    slots, mask = some_slots(), torch.tensor([[True, True, False, False, False]])
    # Nodes 0 and 1 stand on the slot of token 2 and on the spare one.
    plan = torch.eye(5)[[0, 2, 3, 4, 1]][None].requires_grad_()
    slots.loss(plan, mask).sum().backward()
    gradient = slots.scores.grad[0]
    assert plan.grad is None
    assert gradient[0] == 0, "what owns nothing is not asked"
    assert gradient[2] < 0
    assert (gradient[[1, 3, 4]] > 0).all()
    left_out = torch.nn.functional.softplus(torch.tensor([1.0, -2.0, 3.0, -1.0])).sum() / 5
    torch.testing.assert_close(slots.loss(plan, mask)[0], left_out)


def test_a_plan_that_gives_a_slot_more_than_one_node_asks_for_no_more_than_certainty():
    """A learned plan's sums are only near one: a target above it would be a loss without a least value."""
    slots, mask = some_slots(), torch.ones(1, 5, dtype=torch.bool)
    plan = torch.full((1, 5, 5), 0.3)
    for score in (1.0, 100.0, 1e4):
        sure = slots._replace(scores=torch.full((1, 5), score))
        assert sure.loss(plan, mask) >= 0


def test_only_keeps_real_slots_as_they_are():
    graphs = predictor()(codes([3, 5, 7, 9, 11, 13], length=7)).graphs
    real = torch.ones(1, KEPT + SPARES, dtype=torch.bool)
    real[0, 2] = False
    found, labels = graphs.only(real), graphs.node_labels
    torch.testing.assert_close(found.presence[real], graphs.presence[real])
    assert torch.equal(found.node_labels, labels)
    assert (found.adjacency[0, 2] < -30).all()
    single = replace(graphs, edges=graphs.edges[:, 1]).only(real)
    assert (single.edges[0, :, 2] == NO_SELF_LOOP).all()
    torch.testing.assert_close(single.edges[0, :2, :2], graphs.edges[0, 1, :2, :2])


def test_tokens_of_other_columns_own_nothing():
    """Owners are of the set's tokens; a vector's come after them, and may fill slots that nothing was left for."""
    source = torch.tensor([[1, 2, 3]])
    tokens = SlotTokens(source, torch.tensor([[True, True, False]]), torch.zeros(1, 4), torch.ones(1, 4).bool())
    owners = torch.tensor([[[False, False], [True, False], [False, True]]])
    cost = tokens.prior(owners, torch.ones(1, 2).bool())[:, :, :2]
    torch.testing.assert_close(cost, torch.tensor([[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]]) * UNOWNED / 2)
