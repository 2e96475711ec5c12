"""The matcher's benchmark: what is in a pass; nothing about how fast it is."""

from dataclasses import replace

import ot
import pytest
import torch

from benchmarks import matcher as benchmark
from benchmarks.matcher import (
    STEPS,
    cross_entropy_problem,
    emd_conditional_gradient,
    learned_pass,
    measure_matcher,
)
from benchmarks.plans import make_case
from graphwright.transport import conditional_gradient


def test_rows_with_and_without_the_target_encoder_for_every_size_and_thread_count():
    rows = list(measure_matcher(sizes=(4, 5), batch=2, repeats=1))
    assert [(row.name, row.n, row.threads) for row in rows] == [
        (name, n, count)
        for count in (1, 2)
        for n in (4, 5)
        for name in (
            *("learned plan",) * 2,
            *("learned plan, target encoder",) * 2,
            "learned plan, half of the slots",
            "learned plan, target encoder, half of the slots",
        )
    ]
    for row in rows:
        half = row.name.endswith("half of the slots")
        assert row.peer.startswith("targets in every slot" if half else "conditional gradient, ot.emd, ")
        assert row.ours_ms > 0
        assert row.peer_ms > 0


@pytest.mark.parametrize("sharpness", [0.0, 4.0])
@pytest.mark.parametrize("steps", [1, STEPS])
def test_where_no_two_assignments_cost_the_same_the_peer_is_our_conditional_gradient(
    monkeypatch, sharpness, steps
):
    problem = cross_entropy_problem(make_case(64, 7, fused=True), sharpness)
    apart = 1e-3 * torch.rand(problem.linear.shape, generator=torch.Generator().manual_seed(0))
    problem = replace(problem, linear=problem.linear + apart)
    monkeypatch.setattr(benchmark, "STEPS", steps)
    theirs, ours = emd_conditional_gradient(ot, problem), conditional_gradient(problem, iterations=steps).matrix
    assert ((theirs - ours).abs().amax((1, 2)) < 1e-4).double().mean() >= 0.95


@pytest.mark.parametrize("sharpness", [0.0, 4.0])
def test_the_peer_is_conditional_gradient_on_the_labelled_objective(sharpness):
    problem = cross_entropy_problem(make_case(64, 7, fused=True), sharpness)
    theirs, ours = emd_conditional_gradient(ot, problem), conditional_gradient(problem).matrix
    torch.testing.assert_close(theirs.sum(1), torch.ones(64, 7, dtype=torch.float64))
    torch.testing.assert_close(theirs.sum(2), torch.ones(64, 7, dtype=torch.float64))
    # Nodes of one label and one degree are tied at first; who breaks ties differently may end elsewhere.
    found = [problem.objective(plan) for plan in (theirs.float(), ours)]
    assert ((found[0] - found[1]).abs() < 1e-3).double().mean() >= 0.6
    assert float(found[0].mean()) == pytest.approx(float(found[1].mean()), rel=0.05)


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("size", [3, 6])
def test_a_pass_is_backward_to_the_states_and_every_parameter(encode, size):
    run = learned_pass(make_case(3, 6, fused=True).graphs(size), encode=encode)
    gradients = run()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert gradients[0].shape == (3, 6, 96)
    assert gradients[0].any()
    # Slot code, padding, projections (normalisation, weights, biases); then the given states or the whole encoder.
    assert len(gradients) == 10 if not encode else len(gradients) > 20
