"""The benchmark's own honesty: same problems, same objective, nothing asserted about time."""

import json
import subprocess
import sys
from pathlib import Path

import ot
import pytest
import torch
from oracles import bistochastic

from benchmarks.measurement import can_measure
from benchmarks.plans import STEPS, TAU, make_case, measure_plans, pot_batch, pot_loop, scipy_loop

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(not can_measure(), reason="peak memory is measured on Linux only")
def test_memory_is_that_of_the_call():
    """In a process of its own, as benchmarks are: what other tests have freed could be used again unseen."""
    script = """
import json, torch
from benchmarks.measurement import peaks
small, large = (lambda: torch.ones(2**18)), (lambda: torch.ones(40 * 2**18))
print(json.dumps([peaks(small, large), peaks(large, small)]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    first, second = json.loads(done.stdout)
    assert first["peer_peak_mib"] == pytest.approx(40, abs=8)
    assert second["ours_peak_mib"] == pytest.approx(40, abs=8)
    assert second["peer_peak_mib"] < 20


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
        assert row.peer.startswith(("ot.", "scipy."))
    assert sum(row.peer.startswith("scipy.") for row in rows) == 2


@pytest.mark.parametrize("fused", [False, True])
def test_peers_minimise_the_same_objective(fused):
    """POT's own loss at any plan is ours (twice its equal-weight mean when labels count)."""
    case = make_case(4, 6, fused=fused)
    plan = bistochastic(torch.Generator().manual_seed(0), 4, 6).float()
    a = torch.full((4, 6), 1 / 6)
    labels = {"M": case.labels, "alpha": 0.5} if fused else {}
    theirs = ot.batch.loss_quadratic_batch(a, a, case.prediction, case.target, plan / 6, **labels)
    torch.testing.assert_close(case.problem.objective(plan), (2 if fused else 1) * theirs)


def every_peer(case):
    yield pot_batch(ot, case, TAU, STEPS)
    yield pot_loop(ot, case, STEPS)
    if case.labels is None:
        yield scipy_loop(case, STEPS)


@pytest.mark.parametrize("fused", [False, True])
def test_peers_return_unit_marginal_plans_below_the_uniform_one(fused):
    case = make_case(4, 6, fused=fused)
    for plan in every_peer(case):
        plan = plan.to(case.problem.linear)
        torch.testing.assert_close(plan.sum(1), torch.ones(4, 6), rtol=0, atol=0.05)
        assert case.problem.objective(plan).mean() < case.problem.objective(torch.full((4, 6, 6), 1 / 6)).mean()


def test_scipy_s_plans_are_permutations_of_rows_onto_columns():
    """Without noise the right permutation is found by all, and only the right one costs nothing."""
    case = make_case(6, 5, fused=False, seed=3)
    plan = scipy_loop(case, STEPS)
    assert set(plan.unique().tolist()) == {0.0, 1.0}
    moved = plan.mT @ case.prediction @ plan
    squares = (moved - case.target).square().mean((1, 2))
    torch.testing.assert_close(case.problem.objective(plan), squares)


def test_objectives_are_those_of_exact_marginals():
    case = make_case(3, 5, fused=True)
    plan = bistochastic(torch.Generator().manual_seed(1), 3, 5).float()
    skewed = plan * torch.linspace(0.5, 2, 5)
    assert case.mean_objective(skewed) == pytest.approx(float(case.problem.objective(plan).mean()), rel=1e-4)


def test_a_case_s_targets_are_the_graphs_that_the_matcher_is_given():
    case = make_case(3, 7, fused=True)
    graphs = case.graphs(7)
    torch.testing.assert_close(graphs.adjacency(torch.float32), case.target)
    labels = torch.nn.functional.one_hot(graphs.node_labels, 4).float()
    # The label cost of any slot differs between two nodes exactly where their labels do.
    differ = (case.labels[:, 0, :, None] - case.labels[:, 0, None, :]).abs() > 1e-6
    assert torch.equal(differ, (labels @ labels.mT) == 0)


def test_smaller_targets_are_the_first_nodes_of_the_larger_and_padding():
    case = make_case(3, 7, fused=True)
    whole, half = case.graphs(7), case.graphs(3)
    assert half.mask.sum(1).tolist() == [3, 3, 3]
    assert torch.equal(half.node_labels[:, :3], whole.node_labels[:, :3])
    assert torch.equal(half.edge_labels[:, :3, :3], whole.edge_labels[:, :3, :3])
