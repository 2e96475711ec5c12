"""The numerical theory: it holds, and a wrong objective is found out."""

import pytest
import torch

from figures import propositions
from figures.propositions import check_theory, every_permutation, minima, random_plans
from graphwright.transport import Objective


def test_every_proposition_holds():
    theory = check_theory(3)
    assert [each for each in theory.findings if not each.holds] == []
    assert {each.proposition for each in theory.findings} == {"2.1", "3.1", "3.2", "B.1", "B.2", "C.1"}


@pytest.mark.parametrize(
    ("objective", "statements"),
    [
        (Objective.J, {"GW > 0 where l > 0", "J = 2", "closed forms of J, J_a and J_b for squared error"}),
        (Objective.J_A, {"J = J_a = J_b on permutations", "J_a <= J at every plan", "J_a = 0"}),
        (Objective.J_B, {"J = J_a = J_b on permutations", "J_b <= J at every plan", "J_b = 1"}),
    ],
)
def test_a_wrong_objective_breaks_them(monkeypatch, objective, statements):
    right = propositions.value

    def wrong(plan, A, B, asked, *divergence):
        found = right(plan, A, B, asked, *divergence)
        return (0 * found if objective is Objective.J else found + 1) if asked is objective else found

    monkeypatch.setattr(propositions, "value", wrong)
    broken = {each.statement for each in check_theory(2).findings if not each.holds}
    assert statements <= broken


def test_plans_are_bistochastic_and_permutations_are_all_there():
    plans = random_plans(torch.Generator().manual_seed(0), 6, 5)
    for axis in (1, 2):
        torch.testing.assert_close(plans.sum(axis), torch.ones(6, 5, dtype=torch.float64))
    every = every_permutation(4)
    assert len({tuple(each.argmax(1).tolist()) for each in every}) == 24


def test_minima_of_equal_graphs_are_zero_and_never_out_of_order():
    A = torch.rand(2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    order = torch.tensor([2, 0, 3, 1])
    B = torch.stack([A[0][order][:, order], A[1].roll(1, 0)])
    same, other = minima(A, B, 0)
    assert max(same.exact, same.J, same.J_a, same.J_b) < 1e-12
    assert max(other.J_a, other.J_b) <= other.J + 1e-9 <= other.exact + 2e-9
    assert other.exact > 0.01
