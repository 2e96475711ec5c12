"""Known graphs scored as wholes, from the tokens of an input."""

import torch

from graphwright.known import Recogniser
from graphwright.models import GraphHead, GraphPredictor, NodeDecoder, Tokens
from graphwright.models.arithmetic import Bags
from graphwright.models.relationformer import RelationDecoder, RelationHead
from tiny import LABELLED


def recogniser(graphs: int = 7) -> Recogniser:
    torch.manual_seed(0)
    return Recogniser(6, Bags.single(graphs)).double().eval()


def tokens(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_padding_does_not_count():
    model, values = recogniser(), tokens(2, 5, 6)
    mask = torch.tensor([[True] * 3 + [False] * 2] * 2)
    padded, bare = model(Tokens(values, mask)), model(Tokens(values[:, :3]))
    torch.testing.assert_close(padded.logits, bare.logits)
    torch.testing.assert_close(padded.whole, bare.whole)
    assert (bare.whole.shape, bare.logits.shape) == ((2, 6), (2, 7))


def test_the_first_token_counts_more_than_its_share():
    model, values = recogniser(), tokens(1, 4, 6)
    swapped = values[:, [1, 0, 2, 3]]
    assert (model(Tokens(swapped)).logits - model(Tokens(values)).logits).abs().max() > 1e-3
    rest = values[:, [0, 3, 1, 2]]
    torch.testing.assert_close(model(Tokens(rest)).logits, model(Tokens(values)).logits)


def test_the_decoder_is_told_and_the_prediction_says_it():
    torch.manual_seed(0)
    for decoder, head in (
        (NodeDecoder(3, 8, 1, 2, 0.0, 6), GraphHead(8, 8, LABELLED, diffusion=False, product=True)),
        (RelationDecoder(3, 8, 1, 2, 0.0, 6), RelationHead(8, 8, LABELLED)),
    ):
        model = GraphPredictor(torch.nn.Identity(), decoder, head, recogniser()).double().eval()
        given = tokens(2, 4, 6)
        before = model(given)
        assert before.graphs.known.shape == (2, 7)
        whole = model.recogniser(Tokens(given)).whole
        told = torch.cat([given, whole[:, None]], 1)
        model.recogniser = None
        torch.testing.assert_close(model(told).states, before.states)
        assert (model(given).states - before.states).abs().max() > 1e-4
        assert model(given).graphs.known is None


def test_the_token_of_the_whole_is_real_beside_padding():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    more = Tokens(tokens(2, 3, 6), mask).and_one_more(torch.ones(2, 6, dtype=torch.float64))
    assert more.mask.tolist() == [[True, True, False, True], [True, False, False, True]]
    assert more.values[:, 3].min() == 1
    assert Tokens(tokens(2, 3, 6)).and_one_more(tokens(2, 6)).mask is None
