"""The matcher's benchmark: what is in a pass; nothing about how fast it is."""

import pytest
import torch

from graphwright.bench.case import make_case
from graphwright.bench.matcher import learned_pass, measure_matcher


def test_rows_with_and_without_the_target_encoder_for_every_size_and_thread_count():
    rows = list(measure_matcher(sizes=(4, 5), batch=2, repeats=1))
    assert [(row.name, row.n, row.threads) for row in rows] == [
        (name, n, count)
        for count in (1, 2)
        for n in (4, 5)
        for name in ("learned plan", "learned plan, target encoder")
    ]
    for row in rows:
        assert row.peer == "ot.gromov.fused_gromov_wasserstein, loop"
        assert row.ours_ms > 0
        assert row.peer_ms > 0


@pytest.mark.parametrize("encode", [False, True])
def test_a_pass_is_backward_to_the_states_and_every_parameter(encode):
    run = learned_pass(make_case(3, 6, fused=True), encode=encode)
    gradients = run()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert gradients[0].shape == (3, 6, 96)
    assert gradients[0].any()
    # Slot code, projections (normalisation, weights, biases); then the given states or the whole encoder.
    assert len(gradients) == 9 if not encode else len(gradients) > 20
