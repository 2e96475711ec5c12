"""The Transformer over active bits."""

import numpy as np
import pytest
import torch

from graphwright.models import FingerprintEncoder, GraphHead, GraphPredictor, NodeDecoder
from graphwright.tasks.molecules import tokens
from tiny import LABELLED

BITS = 20


def encoder(**options):
    torch.manual_seed(0)
    return FingerprintEncoder(
        **{"bits": BITS, "width": 8, "layers": 2, "heads": 2, "dropout": 0.0} | options
    ).double()


def codes(*rows, length):
    padded = [[BITS, *row] + [BITS + 1] * (length - 1 - len(row)) for row in rows]
    return torch.tensor(padded)


@pytest.mark.parametrize("training", [True, False])
def test_padding_changes_nothing(training):
    model = encoder().train(training)
    short = model(codes([3, 5, 7], length=4)).values
    for length in (5, 9):
        long = model(codes([3, 5, 7], list(range(length - 1)), length=length))
        assert long.mask.sum(1).tolist() == [4, length]
        torch.testing.assert_close(long.values[:1, :4], short)


def test_padding_changes_nothing_behind_the_decoder():
    model = GraphPredictor(
        encoder(), NodeDecoder(3, 8, 2, 2, 0.0, 8), GraphHead(8, 8, LABELLED, diffusion=True, product=True)
    ).double()
    short, long = (model(codes([3, 5, 7], length=length)) for length in (4, 11))
    torch.testing.assert_close(short.states, long.states)
    torch.testing.assert_close(short.graphs.edges, long.graphs.edges)


def test_a_fingerprint_is_a_set():
    model = encoder()
    one, other = model(codes([3, 5, 7], length=4)).values, model(codes([7, 3, 5], length=4)).values
    torch.testing.assert_close(one[0, [0, 1, 2, 3]], other[0, [0, 2, 3, 1]])


def test_every_bit_and_every_other_bit_count():
    model = encoder()
    one, other = model(codes([3, 5], length=3)).values, model(codes([3, 6], length=3)).values
    assert ((one - other).abs().amax(2) > 1e-4).all()


def test_nothing_but_the_start_token_will_do():
    assert encoder()(codes([], length=1)).values.isfinite().all()


def test_every_used_weight_learns():
    model = encoder()
    found = model(codes([3, 5], [4], length=3))
    found.values[found.mask].square().sum().backward()
    gradient = model.embedding.weight.grad.abs().sum(1)
    assert set(gradient.nonzero().flatten().tolist()) == {3, 4, 5, BITS}


@pytest.mark.parametrize("wrong", [torch.zeros(3), torch.zeros(2, 3), torch.zeros(2, 3, 4, dtype=torch.int64)])
def test_anything_but_codes_is_refused(wrong):
    with pytest.raises(ValueError, match=r"codes must be int64 of shape \(b, k\)"):
        encoder()(wrong)


def test_tokens_are_start_bits_padding():
    made = tokens([np.array([1, 9], np.uint16), np.array([], np.uint16)])
    assert made.tolist() == [[2048, 1, 9], [2048, 2049, 2049]]
