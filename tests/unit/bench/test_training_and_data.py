"""The benchmarks of training steps and of data: what they measure, nothing about how fast it is."""

import pytest
import torch

from graphwright.bench import measure_data, measure_training
from graphwright.bench.training import GivenPlan
from graphwright.settings import MatchingKind
from tiny import tiny_settings

TINY = tiny_settings(task={"samples": 100}, train={"steps": 1, "batch_size": 4})


def test_every_matching_has_a_row_with_its_share():
    rows = list(measure_training(lambda n: TINY, sizes=(4,), repeats=1, threads_used=1))  # noqa: ARG005
    assert [row.name for row in rows] == [kind.value for kind in MatchingKind]
    for row in rows:
        facts = row.to_json()
        assert facts["ours_ms"] > 0
        assert 0 <= facts["plan_share"] < 1
        assert facts["samples_per_second"] == pytest.approx(1000 / facts["ours_ms"])
    peer = next(row for row in rows if row.name == "conditional_gradient")
    assert peer.ratio == 1


def test_a_given_plan_costs_the_step_nothing_and_has_no_gradient():
    plan = torch.full((2, 3, 3), 1 / 3)
    match = GivenPlan(plan)(None, None, None)
    assert match.plan is plan
    assert not match.auxiliary.any()


def test_data_rows_name_the_plain_loop():
    (row,) = measure_data(sizes=(5,), samples=3, peer_samples=1, repeats=1)
    assert row.peer == "plain loop over pixels"
    assert row.to_json()["samples_per_second"] == pytest.approx(1000 / row.ours_ms)
