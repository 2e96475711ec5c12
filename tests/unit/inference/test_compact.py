"""Weights written small and read back."""

import torch

from graphwright.inference.checkpoint import compacted, expanded


def test_matrices_come_back_to_half_a_step_of_their_rows_scale():
    matrix = torch.randn(50, 40, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 3, 50)[:, None]
    back = expanded(compacted({"weight": matrix}))["weight"]
    assert back.dtype == torch.float32
    steps = matrix.abs().amax(1, keepdim=True) / 127
    assert ((back - matrix).abs() <= 0.5001 * steps).all()


def test_rows_of_zeros_and_what_is_no_matrix_survive():
    weights = {"zeros": torch.zeros(3, 4), "bias": torch.randn(5), "kernel": torch.randn(2, 3, 3, 3)}
    small = compacted(weights)
    assert {name: tensor.dtype for name, tensor in small.items()} == {
        "zeros": torch.int8,
        "zeros:scales": torch.float32,
        "bias": torch.float16,
        "kernel": torch.float16,
    }
    back = expanded(small)
    assert set(back) == set(weights)
    assert torch.equal(back["zeros"], weights["zeros"])
    torch.testing.assert_close(back["kernel"].float(), weights["kernel"], rtol=1e-3, atol=1e-6)


def test_other_numbers_and_older_models_are_left_alone():
    weights = {"steps": torch.arange(4), "double": torch.randn(2, 2, dtype=torch.float64)}
    assert all(torch.equal(compacted(weights)[name], tensor) for name, tensor in weights.items())
    halves = {"weight": torch.randn(2, 2).half()}
    assert torch.equal(expanded(halves)["weight"], halves["weight"])
