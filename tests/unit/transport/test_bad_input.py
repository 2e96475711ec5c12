"""Wrong arguments are refused by name and sample; nothing returns NaN."""

import pytest
import torch

from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Order,
    Reading,
    Relaxation,
    SelfLoops,
    assign,
    conditional_gradient,
    factorise,
    mirror_descent,
    multi_start,
    project,
    relaxed_objective,
    round_to_permutation,
    sinkhorn,
)


def spoiled(tensor, value):
    tensor = tensor.clone()
    tensor[1].view(-1)[0] = value
    return tensor


def problem(**changes):
    arguments = {
        "linear": torch.zeros(2, 3, 3),
        "prediction": torch.zeros(2, 3, 3),
        "target": torch.zeros(2, 3, 3),
        "mask": torch.ones(2, 3),
        "divergence": Divergence.CROSS_ENTROPY,
        "weight": 1.0,
    } | changes
    term = EdgeTerm(*(arguments.pop(name) for name in ("prediction", "target", "divergence", "weight")))
    return MatchingProblem(terms=(term,), **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linear": spoiled(torch.zeros(2, 3, 3), float("nan"))}, r"linear is not finite \(sample 1\)"),
        ({"linear": torch.zeros(2, 3, 4)}, "linear must have shape"),
        ({"linear": [[[0.0]]]}, "linear must be a tensor, got list"),
        ({"linear": torch.zeros(2, 0, 0)}, "at least one node"),
        ({"linear": torch.zeros(2, 3, 3, dtype=torch.int64)}, "linear must be floating point"),
        ({"mask": spoiled(torch.ones(2, 3), -1.0)}, r"mask leaves \[0, 1\] \(sample 1\)"),
        ({"mask": spoiled(torch.ones(2, 3), float("inf"))}, r"mask is not finite \(sample 1\)"),
        ({"mask": torch.ones(2, 4)}, "mask must have shape"),
        ({"mask": torch.ones(2, 3, dtype=torch.float64)}, "mask is torch.float64, linear is torch.float32"),
        ({"mask": torch.ones(2, 3, device="meta")}, "mask is on meta, linear is on cpu"),
        ({"prediction": spoiled(torch.zeros(2, 3, 3), float("inf"))}, r"prediction is not finite \(sample 1\)"),
        ({"prediction": torch.zeros(2, 4, 4)}, r"terms\[0\].prediction must have shape"),
        ({"prediction": torch.zeros(2, 3, 3).double()}, r"terms\[0\].prediction is torch.float64"),
        ({"target": spoiled(torch.zeros(2, 3, 3), 1.5)}, r"terms\[0\].target leaves \[0, 1\] \(sample 1\)"),
        ({"target": torch.zeros(2, 2, 3, 3)}, r"terms\[0\].target has shape"),
        ({"weight": -1.0}, r"terms\[0\].weight must be a non-negative number"),
        (
            {"prediction": torch.zeros(2, 2, 3, 3), "target": torch.ones(2, 2, 3, 3)},
            r"do not sum to 1 \(sample 0\)",
        ),
    ],
)  # fmt: skip
def test_a_malformed_problem_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        problem(**changes)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (torch.ones(2, 3, 4), "plan must have shape"),
        (spoiled(torch.ones(2, 3, 3), float("nan")), r"plan is not finite \(sample 1\)"),
        (spoiled(torch.ones(2, 3, 3), -0.5), r"plan leaves .* \(sample 1\)"),
        (torch.ones(2, 3, 3).double(), "plan is torch.float64"),
        (torch.ones(2, 3, 3, device="meta"), "plan is on meta, linear is on cpu"),
        (None, "plan must be a tensor, got NoneType"),
    ],
)
@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("method", ["objective", "gradient"])
def test_a_malformed_plan_is_refused(method, objective, plan, message):
    with pytest.raises(ValueError, match=message):
        getattr(problem(relaxation=Relaxation(objective)), method)(plan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": spoiled(torch.ones(2, 3, 3), torch.nan)}, r"plan is not finite \(sample 1\)"),
        ({"plan": torch.ones(2, 3, 4)}, "plan must have shape"),
        ({"mask": spoiled(torch.ones(2, 3), -1.0)}, r"mask leaves \[0, 1\] \(sample 1\)"),
        ({"mask": torch.ones(2, 4)}, "mask must have shape"),
        ({"mask": torch.ones(2, 3).double()}, "mask is torch.float64, plan is torch.float32"),
        ({"term": EdgeTerm(spoiled(torch.zeros(2, 3, 3), torch.inf), torch.zeros(2, 3, 3))},
         r"term.prediction is not finite \(sample 1\)"),
        ({"term": EdgeTerm(torch.zeros(2, 3, 3), torch.full((2, 3, 3), 2.0))}, r"term.target leaves \[0, 1\]"),
        ({"self_loops": "some"}, "'some' is not a valid SelfLoops"),
    ],
)  # fmt: skip
def test_a_malformed_objective_is_refused(changes, message):
    arguments = {
        "plan": torch.ones(2, 3, 3),
        "term": EdgeTerm(torch.zeros(2, 3, 3), torch.zeros(2, 3, 3)),
        "mask": torch.ones(2, 3),
        "self_loops": SelfLoops.EXCLUDED,
        "relaxation": Relaxation(),
    }
    with pytest.raises(ValueError, match=message):
        relaxed_objective(**arguments | changes)


@pytest.mark.parametrize("solver", [mirror_descent, conditional_gradient])
def test_a_malformed_start_is_refused(solver):
    with pytest.raises(ValueError, match=r"start is not finite \(sample 1\)"):
        solver(problem(), spoiled(torch.ones(2, 3, 3), float("nan")))
    with pytest.raises(ValueError, match="start must have shape"):
        solver(problem(), torch.ones(1, 3, 3))
    with pytest.raises(ValueError, match="start must be a tensor, got list"):
        solver(problem(), [[1.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinkhorn(spoiled(torch.zeros(2, 3, 3), torch.nan), 1.0, 5), r"cost is not finite \(sample 1\)"),
        (lambda: sinkhorn(torch.zeros(2, 3, 4), 1.0, 5), "cost must have shape"),
        (lambda: sinkhorn(torch.zeros(3, 3), 1.0, 5), "cost must have shape"),
        (lambda: sinkhorn(torch.zeros(2, 0, 0), 1.0, 5), "at least one row"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3, dtype=torch.int32), 1.0, 5), "cost must be floating point"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3), 0.0, 5), "epsilon must be a positive number"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3), float("nan"), 5), "epsilon must be a positive number"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3), torch.tensor(1.0), 5), r"epsilon .* number, got tensor\(1.\)"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3), 1.0, 0), "iterations must be a whole number, at least 1"),
        (lambda: sinkhorn(torch.zeros(2, 3, 3), 1.0, 2.5), "iterations must be a whole number.*got 2.5"),
        (lambda: sinkhorn(spoiled(torch.zeros(2, 3, 3), 3e38), 1e-8, 5), r"cost / epsilon .* \(sample 1\)"),
        (lambda: assign(spoiled(torch.zeros(2, 3, 3), float("inf"))), r"cost is not finite \(sample 1\)"),
        (lambda: assign(torch.zeros(2, 3, 4)), "cost must have shape"),
        (lambda: round_to_permutation(spoiled(torch.zeros(2, 3, 3), torch.nan)), r"plan is not finite \(sample 1"),
        (lambda: project(spoiled(torch.zeros(2, 3, 3), torch.nan), 2), r"log_kernel is not finite \(sample 1\)"),
        (lambda: mirror_descent(problem(linear=torch.full((2, 3, 3), 3e38))), "log_kernel is not finite"),
        (lambda: mirror_descent(problem(), tau=0), "tau must be a positive number"),
        (lambda: mirror_descent(problem(), inner=0), "inner must be a whole number, at least 1"),
        (lambda: conditional_gradient(problem(), tolerance=-1), "tolerance must be a positive number"),
        (lambda: multi_start(problem(), mirror_descent, 0, torch.Generator()), "starts must be a whole number"),
        (lambda: Relaxation(clamp=0), "clamp must lie in"),
    ],
)  # fmt: skip
def test_malformed_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_choices_may_be_given_by_name_and_mean_the_same():
    """A name that merely equals its enum member would be taken for another choice by every `is`."""
    term = EdgeTerm(torch.rand(1, 3, 3), torch.rand(1, 3, 3), "squared")
    assert term.divergence is Divergence.SQUARED
    relaxation = Relaxation("J_a", "target_first", "literal")
    assert (relaxation.objective, relaxation.order, relaxation.reading) == (
        Objective.J_A,
        Order.TARGET_FIRST,
        Reading.LITERAL,
    )
    assert relaxation.objective is Objective.J_A
    assert relaxation.order is Order.TARGET_FIRST
    assert relaxation.reading is Reading.LITERAL
    assert problem(self_loops="included").self_loops is SelfLoops.INCLUDED
    plan, mask = torch.rand(1, 3, 3), torch.ones(1, 3)
    named, given = (
        relaxed_objective(plan, term, mask, loops, Relaxation()) for loops in ("excluded", SelfLoops.EXCLUDED)
    )
    torch.testing.assert_close(named, given, rtol=0, atol=0)
    assert factorise("squared", term.prediction, term.target).target_cost is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda: EdgeTerm(torch.zeros(1, 1, 1), torch.zeros(1, 1, 1), "cross entropy"),
        lambda: Relaxation("j"),
        lambda: Relaxation(order="second"),
        lambda: Relaxation(reading="wrong"),
        lambda: problem(self_loops="none"),
        lambda: factorise("l1", torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)),
    ],
)
def test_unknown_choices_are_refused(call):
    with pytest.raises(ValueError, match="is not a valid"):
        call()
