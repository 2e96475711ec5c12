"""The benchmark's own honesty: same problems, same objective, nothing asserted about time."""

import ot
import pytest
import torch
from oracles import bistochastic

from graphwright.bench import Row
from graphwright.bench.plans import _pot_batch, _pot_loop, make_case, measure_plans
from graphwright.bench.timing import best_milliseconds, threads


def test_rows_cover_every_solver_size_and_thread_count():
    rows = list(measure_plans(sizes=(4,), batch=3, repeats=1))
    assert {(row.name, row.threads) for row in rows} == {
        (f"{solver}{labels}", count)
        for solver in ("mirror descent", "conditional gradient")
        for labels in ("", ", labels")
        for count in (1, 2)
    }
    for row in rows:
        assert row.ours_ms > 0
        assert row.peer_ms > 0
        assert row.ours_objective > 0
        assert row.peer.startswith("ot.")


@pytest.mark.parametrize("fused", [False, True])
def test_peers_minimise_the_same_objective(fused):
    """POT's own loss at any plan is ours (twice its equal-weight mean when labels count)."""
    case = make_case(4, 6, fused)
    plan = bistochastic(torch.Generator().manual_seed(0), 4, 6).float()
    a = torch.full((4, 6), 1 / 6)
    labels = {"M": case.labels, "alpha": 0.5} if fused else {}
    theirs = ot.batch.loss_quadratic_batch(a, a, case.prediction, case.target, plan / 6, **labels)
    torch.testing.assert_close(case.problem.objective(plan), (2 if fused else 1) * theirs)


@pytest.mark.parametrize("solve", [_pot_batch, _pot_loop])
@pytest.mark.parametrize("fused", [False, True])
def test_peers_return_unit_marginal_plans_below_the_uniform_one(solve, fused):
    case = make_case(4, 6, fused)
    plan = solve(ot, case).to(case.problem.linear)
    torch.testing.assert_close(plan.sum(1), torch.ones(4, 6), rtol=0, atol=0.05)
    assert case.problem.objective(plan).mean() < case.problem.objective(torch.full((4, 6, 6), 1 / 6)).mean()


def test_ratio_is_peer_over_ours():
    assert Row("x", 1, 1, 1, 2.0, "y", 6.0).to_json()["ratio"] == 3.0


def test_timing_takes_the_fastest_run_after_a_warm_up():
    calls = []
    assert best_milliseconds(lambda: calls.append(1), 3) >= 0
    assert len(calls) == 4


def test_thread_count_is_restored_even_after_an_error():
    before, inside = torch.get_num_threads(), []

    def fail():
        with threads(before + 1):
            inside.append(torch.get_num_threads())
            raise RuntimeError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert inside == [before + 1]
    assert torch.get_num_threads() == before
