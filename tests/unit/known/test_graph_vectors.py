"""Vectors of known graphs: sums over parts, folded into one part a graph, and loaded whatever the parts are."""

import torch

from graphwright.known.head import SCALE, GraphVectors
from graphwright.models.arithmetic import Bags

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
