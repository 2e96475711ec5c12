"""Known graphs as classes: their vectors, their scores, and the loss of being wrong."""

import numpy as np
import torch

from graphwright.graphs import GraphBatch
from graphwright.graphs.isomorphism import neighbourhoods
from graphwright.known import Library, Recogniser
from graphwright.known.head import RADIUS, SCALE, SMOOTHING, UNKNOWN, GraphVectors, Recognition, shared_parts
from graphwright.models import GraphHead, GraphPredictor, NodeDecoder, Tokens
from graphwright.models.arithmetic import Bags
from graphwright.models.predictor import RelationDecoder, RelationHead
from tiny import LABELLED, random_batch

PARTS = Bags(torch.tensor([0, 1, 3, 1, 4, 5]), torch.tensor([0, 3, 5]), 6)


def vectors(parts: Bags = PARTS, seed: int = 0) -> GraphVectors:
    torch.manual_seed(seed)
    return GraphVectors(4, parts).double()


def test_a_vector_is_the_sum_of_its_parts_over_the_root_of_their_number():
    module = vectors()
    table = module.parts
    first, second, third = table[[0, 1, 3]].sum(0) / 3**0.5, table[[1, 4]].sum(0) / 2**0.5, table[5]
    torch.testing.assert_close(module(), SCALE * torch.stack([first, second, third]))


def test_graphs_share_what_is_learned_of_a_part():
    module = vectors()
    module()[0].sum().backward()
    assert module.parts.grad[[0, 1, 3]].all()
    assert not module.parts.grad[[2, 4, 5]].any()


def test_gradients_pass_gradcheck():
    module = vectors()

    def run(parts):
        return torch.func.functional_call(module, {"parts": parts}, ())

    assert torch.autograd.gradcheck(run, module.parts)


def test_folding_changes_no_vector():
    module = vectors()
    before = module()
    module.fold()
    torch.testing.assert_close(module(), before)
    assert module.parts.shape == (3, 4)
    module.fold()
    torch.testing.assert_close(module(), before)


def test_a_parameter_that_is_being_trained_stays_when_weights_are_loaded():
    module, trained = vectors(), vectors(seed=1)
    before = module.parts
    module.load_state_dict(trained.state_dict())
    assert module.parts is before
    assert torch.equal(before, trained.parts)


def test_what_is_given_stays_as_it_is():
    module = vectors()
    module.load_state_dict(vectors(Bags.single(3)).state_dict())
    assert PARTS.rows.tolist() == [0, 1, 3, 1, 4, 5]
    assert PARTS.starts.tolist() == [0, 3, 5]


def test_weights_are_loaded_whatever_parts_they_have():
    for source in (vectors(), vectors(Bags.single(3))):
        for target in (vectors(seed=1), vectors(Bags.single(3), seed=1)):
            target.load_state_dict(source.state_dict())
            torch.testing.assert_close(target(), source())
            assert dict(target.named_parameters())["parts"].requires_grad


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


SLOTS = 5


def graphs(seed: int, count: int):
    generator = np.random.default_rng(seed)
    return random_batch(generator, generator.integers(1, SLOTS + 1, count).tolist(), SLOTS).graphs()


def test_a_target_is_found_in_any_order_of_its_nodes():
    library = Library.of(graphs(0, 30), SLOTS)
    generator = np.random.default_rng(1)
    shuffled = [graph.permute(generator.permutation(graph.size)) for graph in library.graphs]
    recognition = Recognition(library)
    for _ in range(2):  # looked up, then remembered
        assert recognition.indices(GraphBatch.collate(shuffled, SLOTS)).tolist() == list(range(len(library)))


def test_unknown_targets_cost_nothing():
    library = Library.of(graphs(0, 4), SLOTS)
    target = GraphBatch.collate([*library.graphs[:1], *graphs(9, 40)[-1:]], SLOTS)
    recognition = Recognition(library)
    assert recognition.indices(target).tolist() == [0, UNKNOWN]
    logits = torch.randn(2, len(library), requires_grad=True)
    loss = recognition(logits, target)
    logs = logits[0].log_softmax(0)
    torch.testing.assert_close(loss[0], -(1 - SMOOTHING) * logs[0] - SMOOTHING * logs.mean())
    assert loss[1].item() == 0


def test_graphs_are_made_of_the_parts_that_they_share_and_one_of_their_own():
    library = Library.of(graphs(0, 30), SLOTS)
    bags = shared_parts(library)
    rows = [set(part.tolist()) for part in torch.tensor_split(bags.rows, bags.starts[1:])]
    assert [len(part) for part in rows] == bags.counts().tolist()
    around = [neighbourhoods(graph, RADIUS) for graph in library.graphs]
    own = bags.height - len(library)
    for at, mine in enumerate(rows):
        assert {row - own for row in mine if row >= own} == {at}
        for other in range(len(library)):
            if other != at:
                assert len(mine & rows[other]) == len(around[at] & around[other])
