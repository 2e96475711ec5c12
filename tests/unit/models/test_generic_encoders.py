"""Encoders of vectors, token lists and sets: shapes, order, padding."""

import pytest
import torch

from graphwright.models import SequenceEncoder, SetEncoder, SetInputs, VectorEncoder


def sets(*sizes, most):
    mask = torch.arange(most)[None] < torch.tensor(sizes)[:, None]
    return SetInputs(torch.randn(len(sizes), most, 3), mask)


def test_a_vector_becomes_a_few_tokens():
    encoder = VectorEncoder(5, 16, 2, 0.0)
    assert tuple(encoder(torch.randn(3, 5)).shape) == (3, 4, 16)
    with pytest.raises(ValueError, match=r"vectors must have shape \(b, 5\)"):
        encoder(torch.randn(3, 4))


def test_a_set_has_no_order_and_its_padding_no_effect():
    torch.manual_seed(0)
    encoder = SetEncoder(3, 16, 2, 2, 0.0).eval()
    values, mask = sets(4, 2, most=4)
    order = torch.tensor([2, 0, 3, 1])
    whole = encoder(SetInputs(values, mask)).values
    turned = encoder(SetInputs(values[:1, order], mask[:1, order])).values
    assert torch.allclose(turned[:, 1:], whole[:1, 1:][:, order], atol=1e-5)
    alone = encoder(SetInputs(values[1:, :2], mask[1:, :2]))
    assert alone.mask is None
    assert torch.allclose(alone.values, whole[1:, :3], atol=1e-5)
    assert encoder(SetInputs(values, mask)).owning.tolist() == [[False, *line] for line in mask.tolist()]


def test_an_empty_set_is_still_encoded():
    encoder = SetEncoder(3, 16, 1, 2, 0.0).eval()
    assert encoder(sets(0, most=1)).values.isfinite().all()


def test_a_list_has_an_order_and_its_padding_no_effect():
    torch.manual_seed(0)
    encoder = SequenceEncoder(5, 16, 1, 2, 0.0).eval()
    start, padding = encoder.start, encoder.padding
    lists = torch.tensor([[start, 0, 1, 2], [start, 1, 0, 2], [start, 3, 4, padding]])
    tokens = encoder(lists)
    assert not torch.allclose(tokens.values[0, 0], tokens.values[1, 0], atol=1e-4)
    assert torch.allclose(encoder(lists[2:, :3]).values, tokens.values[2:, :3], atol=1e-5)
