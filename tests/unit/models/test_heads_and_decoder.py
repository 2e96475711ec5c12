"""Heads, decoder and the predictor made of them."""

import pytest
import torch

from graphwright.graphs import Attribute, Vocabulary
from graphwright.models import ConvolutionalEncoder, GraphHead, GraphPredictor, NodeDecoder
from tiny import LABELLED, PLAIN

COLOURS = Vocabulary(("red", "green"), ("none", "edge"))


def head(vocabulary: Vocabulary, *, diffusion: bool = False, product: bool = True) -> GraphHead:
    torch.manual_seed(0)
    return GraphHead(8, 12, vocabulary, diffusion=diffusion, product=product)


def decoder(slots: int = 5, dropout: float = 0.0) -> NodeDecoder:
    torch.manual_seed(0)
    return NodeDecoder(slots, 8, 2, 2, dropout, memory_width=6)


def predictor(vocabulary: Vocabulary = LABELLED) -> GraphPredictor:
    torch.manual_seed(0)
    return GraphPredictor(ConvolutionalEncoder(8, 6, 1), decoder(), head(vocabulary, diffusion=True))


def test_several_edge_labels_get_a_logit_each():
    prediction = head(LABELLED)(torch.randn(2, 5, 8))
    assert prediction.presence.shape == (2, 5)
    assert prediction.edges.shape == (2, 3, 5, 5)
    assert prediction.node_labels.shape == (2, 5, 3)
    assert prediction.diffusion is None


def test_one_edge_label_needs_one_logit():
    prediction = head(COLOURS, diffusion=True)(torch.randn(2, 5, 8))
    assert prediction.edges.shape == (2, 5, 5)
    assert prediction.diffusion.shape == (2, 5, 2)


def test_one_node_label_needs_no_logit():
    assert head(PLAIN)(torch.randn(2, 5, 8)).node_labels is None


@pytest.mark.parametrize("vocabulary", [LABELLED, COLOURS])
@pytest.mark.parametrize("slots", [1, 2, 7])
@pytest.mark.parametrize("product", [False, True], ids=["sum", "product"])
def test_edge_logits_are_symmetric_to_the_last_bit_and_zero_on_the_diagonal(vocabulary, slots, product):
    edges = head(vocabulary, product=product)(10 * torch.randn(3, slots, 8)).edges
    assert torch.equal(edges, edges.mT)
    assert not edges.diagonal(dim1=-2, dim2=-1).any()
    if slots > 1:
        assert edges.abs().max() > 0.01


def test_the_diagonal_carries_no_gradient():
    module = head(LABELLED)
    module(torch.randn(2, 5, 8)).edges.diagonal(dim1=-2, dim2=-1).sum().backward()
    assert all(p.grad is None or not p.grad.any() for p in module.parameters())


def test_an_edge_depends_on_the_states_of_its_two_ends_and_no_other():
    states = torch.randn(1, 5, 8, requires_grad=True)
    head(COLOURS)(states).edges[0, 1, 3].backward()
    touched = states.grad[0].abs().amax(1) > 0
    assert touched.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize("product", [False, True], ids=["sum", "product"])
def test_permuted_states_give_permuted_graphs(product):
    module, states = head(LABELLED, product=product).double(), torch.randn(1, 5, 8).double()
    order = torch.tensor([3, 0, 4, 1, 2])
    plain, moved = module(states), module(states[:, order])
    torch.testing.assert_close(moved.presence, plain.presence[:, order])
    torch.testing.assert_close(moved.node_labels, plain.node_labels[:, order])
    torch.testing.assert_close(moved.edges, plain.edges[..., order, :][..., order])


def test_a_sum_cannot_tell_pairs_apart_that_a_product_can():
    states = torch.randn(1, 4, 8, dtype=torch.float64)
    states[0, 3] = states[0, 0] + states[0, 1] - states[0, 2]  # the pairs (0, 1) and (2, 3) have one sum
    for product in (False, True):
        edges = head(COLOURS, product=product).double()(states).edges[0].detach()
        assert (float((edges[0, 1] - edges[2, 3]).abs()) > 1e-3) == product


def test_an_edge_is_read_from_the_sum_of_its_ends_and_the_product():
    module, states = head(COLOURS).double(), torch.randn(1, 3, 8, dtype=torch.float64)
    edges = module(states).edges[0]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        first, second = states[0, i], states[0, j]
        pair = module.pair_input(first) + module.pair_input(second)
        pair = pair + module.pair_factor(first) * module.pair_factor(second)
        torch.testing.assert_close(edges[i, j], module.pair_output(pair)[0])


def test_masked_tokens_do_not_count():
    module, tokens = decoder().double(), torch.randn(2, 9, 6).double()
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 5:] = False
    dirty = torch.where(mask[:, :, None], tokens, 100.0)
    states = module(tokens, mask)
    torch.testing.assert_close(module(dirty, mask), states)
    torch.testing.assert_close(module(tokens[:1, :5], None)[0], states[0])


def test_the_decoders_layers_start_unlike_each_other():
    first, second = decoder().layers.layers
    assert not torch.equal(first.linear1.weight, second.linear1.weight)
    assert not torch.equal(first.self_attn.in_proj_weight, second.self_attn.in_proj_weight)


def test_slots_are_unlike_each_other():
    states = decoder()(torch.randn(1, 4, 6), None)
    assert states.shape == (1, 5, 8)
    assert torch.pdist(states[0]).min() > 1e-2


def test_dropout_acts_in_training_only():
    module, tokens = decoder(dropout=0.5), torch.randn(1, 4, 6)
    assert not torch.equal(module(tokens, None), module(tokens, None))
    module.eval()
    assert torch.equal(module(tokens, None), module(tokens, None))


def test_a_sample_does_not_depend_on_the_rest_of_its_batch():
    module, images = predictor().double().eval(), torch.rand(4, 3, 8, 8).double()
    together = module(images)
    for at in range(4):
        alone = module(images[at : at + 1])
        torch.testing.assert_close(alone.states[0], together.states[at])
        for name in ("presence", "edges", "node_labels", "diffusion"):
            torch.testing.assert_close(getattr(alone.graphs, name)[0], getattr(together.graphs, name)[at])


def test_an_empty_batch_gives_empty_predictions():
    predicted = predictor()(torch.zeros(0, 3, 8, 8))
    assert len(predicted.graphs) == 0
    assert predicted.states.shape == (0, 5, 8)


@pytest.mark.parametrize("vocabulary", [LABELLED, COLOURS])
def test_gradient_reaches_every_parameter(vocabulary):
    module = predictor(vocabulary)
    graphs = module(torch.rand(3, 3, 8, 8)).graphs
    outputs = (graphs.presence, graphs.edges, graphs.node_labels, graphs.diffusion)
    sum((output * torch.randn(output.shape)).sum() for output in outputs).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_under_mixed_precision_logits_are_float32_and_close():
    module, images = predictor().eval(), torch.rand(2, 3, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = module(images).graphs
    plain = module(images).graphs
    for name in ("presence", "edges", "node_labels", "diffusion"):
        value = getattr(mixed, name)
        assert value.dtype is torch.float32
        torch.testing.assert_close(value, getattr(plain, name), atol=0.1, rtol=0.1)
        assert not torch.equal(value, getattr(plain, name))  # half precision was really used
    assert torch.equal(mixed.edges, mixed.edges.mT)


def test_numbers_of_nodes_get_an_output_each_and_learn():
    vocabulary = Vocabulary(("a", "b"), attributes=(Attribute("x"), Attribute("y"), Attribute("size")))
    states = torch.randn(2, 5, 8)
    own = head(vocabulary)
    prediction = own(states)
    assert prediction.attributes.shape == (2, 5, 3)
    order = torch.randperm(5)
    torch.testing.assert_close(own(states[:, order]).attributes, prediction.attributes[:, order])
    prediction.attributes.square().sum().backward()
    assert all(each.grad is not None for each in own.attributes.parameters())
    assert head(LABELLED)(states).attributes is None
