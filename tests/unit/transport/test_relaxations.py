"""J, J_a, J_b against their definitions, the identities between them, and the divergences that they sum."""

import itertools

import pytest
import torch
from oracles import averaged_objective, bistochastic, permutations, quartic_objective, scalar_divergence
from torch.nn.functional import logsigmoid, one_hot

from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Order,
    Reading,
    Relaxation,
    SelfLoops,
    factorise,
    pair_divergence,
    relaxed_objective,
)

MASKS = {
    "unmasked": torch.ones(3, 4, dtype=torch.float64),
    "masked": torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.float64),
    "soft, empty": torch.tensor([[0.5, 1, 0.2, 0], [0.3, 0, 0.1, 0], [0, 0, 0, 0]], dtype=torch.float64),
}
SQUARED, CROSS_ENTROPY, KL = Divergence.SQUARED, Divergence.CROSS_ENTROPY, Divergence.KL
ALL_RELAXATIONS = [Relaxation(*choice) for choice in itertools.product(Objective, Order, Reading)]


def make_term(divergence, classes, symmetric, seed=0, n=4, hard=False):
    generator = torch.Generator().manual_seed(seed)
    shape = (3, classes, n, n) if classes else (3, n, n)
    prediction = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.rand(shape, generator=generator, dtype=torch.float64)
    if symmetric:
        prediction, target = prediction + prediction.mT, (target + target.mT) / 2
    if classes:
        target = target / target.sum(1, keepdim=True)
    if hard and classes:
        target = one_hot(target.argmax(1), classes).permute(0, 3, 1, 2).double()
    elif hard:
        target = (target > 0.5).double()
    return EdgeTerm(prediction, target, divergence)


def any_plan(seed=1):
    return torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def value(plan, term, mask=MASKS["unmasked"], loops=SelfLoops.INCLUDED, relaxation=Relaxation()):
    return relaxed_objective(plan, term, mask, loops, relaxation)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("loops", SelfLoops)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("divergence", Divergence)
def test_J_and_its_gradient_equal_the_quartic_definition_for_any_plan(divergence, classes, symmetric, loops, mask):
    term, plan, w = make_term(divergence, classes, symmetric), any_plan(), MASKS[mask]
    expected = quartic_objective(plan, term.prediction, term.target, w, divergence, loops)
    torch.testing.assert_close(value(plan, term, w, loops), expected)

    # J is a quadratic form, so central differences of the definition are exact up to rounding.
    problem = MatchingProblem(torch.zeros_like(plan), (term,), w, loops)
    gradient, direction = problem.gradient(plan), any_plan(2) - 0.5
    ahead, behind = (
        quartic_objective(plan + h * direction, term.prediction, term.target, w, divergence, loops)
        for h in (0.5, -0.5)
    )
    torch.testing.assert_close((gradient * direction).sum((1, 2)), ahead - behind)


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=lambda r: f"{r.objective}-{r.order}-{r.reading}")
@pytest.mark.parametrize("loops", SelfLoops)
@pytest.mark.parametrize(
    ("divergence", "classes"),
    [(SQUARED, 0), (SQUARED, 2), (KL, 0), (KL, 3), (CROSS_ENTROPY, 0), (CROSS_ENTROPY, 3)],
)
def test_every_relaxation_equals_its_definition_for_any_plan(divergence, classes, loops, relaxation):
    for mask, hard in itertools.product(MASKS.values(), (False, True)):
        term, plan, w = (
            make_term(divergence, classes, symmetric=False, n=3, hard=hard),
            any_plan()[:, :3, :3],
            mask[:, :3],
        )
        if hard:
            plan = plan * (plan > 0.5)
        expected = averaged_objective(plan, term.prediction, term.target, w, divergence, loops, relaxation)
        torch.testing.assert_close(value(plan, term, w, loops, relaxation), expected)


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=lambda r: f"{r.objective}-{r.order}-{r.reading}")
@pytest.mark.parametrize("loops", SelfLoops)
@pytest.mark.parametrize(
    ("divergence", "classes"), [(SQUARED, 0), (SQUARED, 2), (KL, 0), (KL, 3), (CROSS_ENTROPY, 3)]
)
def test_gradients_in_plan_and_prediction_pass_gradcheck(divergence, classes, loops, relaxation):
    term, mask = make_term(divergence, classes, symmetric=False), MASKS["masked"]
    plan, prediction = any_plan().requires_grad_(), term.prediction.requires_grad_()

    def objective(plan, prediction):
        return value(plan, EdgeTerm(prediction, term.target, divergence), mask, loops, relaxation)

    assert torch.autograd.gradcheck(objective, (plan, prediction))


@pytest.mark.parametrize("relaxation", ALL_RELAXATIONS, ids=lambda r: f"{r.objective}-{r.order}-{r.reading}")
def test_problem_gradient_equals_autograd(relaxation):
    plan = any_plan().requires_grad_()
    problem = MatchingProblem(
        any_plan(5), (make_term(KL, 3, symmetric=False),), MASKS["masked"], relaxation=relaxation
    )
    (expected,) = torch.autograd.grad(problem.objective(plan).sum(), plan)
    torch.testing.assert_close(problem.gradient(plan.detach()), expected)


def test_rounding_below_zero_does_not_cut_the_gradient():
    """Inside a triangle "none" has no mass but rounding's, of either sign; moving mass out of it gives it some."""
    generator = torch.Generator().manual_seed(0)
    prediction = 5 * torch.randn(8, 6, 6, generator=generator)
    inside = torch.kron(torch.eye(2), torch.ones(3, 3))
    plan = (bistochastic(generator, 8, 3).float().repeat(1, 2, 2) * inside).requires_grad_()
    term = EdgeTerm(prediction, (inside - torch.eye(6)).expand(8, 6, 6))
    problem = MatchingProblem(torch.zeros(8, 6, 6), (term,), torch.ones(8, 6))
    (gradient,) = torch.autograd.grad(problem.objective(plan).sum(), plan)
    torch.testing.assert_close(gradient, problem.gradient(plan.detach()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("divergence", Divergence)
@pytest.mark.parametrize("loops", SelfLoops)
@pytest.mark.parametrize("classes", [0, 3])
def test_all_relaxations_agree_on_permutations(divergence, loops, classes):
    """Proposition 2.1; the literal swap too where its logarithm is not clamped and nothing is asymmetric in d."""
    term = make_term(divergence, classes, symmetric=False, hard=divergence is not SQUARED)
    for permutation in permutations(4):
        plan = permutation.expand(3, 4, 4)
        expected = value(plan, term, MASKS["masked"], loops)
        for relaxation in ALL_RELAXATIONS:
            literal = relaxation.order is Order.TARGET_FIRST and relaxation.reading is Reading.LITERAL
            if literal and divergence is not SQUARED:
                continue
            result = value(plan, term, MASKS["masked"], loops, relaxation)
            torch.testing.assert_close(result, expected, msg=f"{relaxation}")


@pytest.mark.parametrize("divergence", [CROSS_ENTROPY, KL])
def test_literal_swaps_agree_with_each_other_on_permutations(divergence):
    term = make_term(divergence, 3, symmetric=False)
    for permutation in permutations(4):
        results = [
            value(
                permutation.expand(3, 4, 4),
                term,
                MASKS["masked"],
                SelfLoops.EXCLUDED,
                Relaxation(objective, Order.TARGET_FIRST, Reading.LITERAL),
            )
            for objective in Objective
        ]
        torch.testing.assert_close(results[1], results[0])
        torch.testing.assert_close(results[2], results[0])


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("classes", [0, 3])
def test_J_b_is_J_under_plain_cross_entropy_only(classes, mask):
    plan, pulled = any_plan(), Relaxation(Objective.J_B)
    plain = make_term(CROSS_ENTROPY, classes, symmetric=False)
    torch.testing.assert_close(value(plan, plain, MASKS[mask], relaxation=pulled), value(plan, plain, MASKS[mask]))
    kl = make_term(KL, classes, symmetric=False)
    assert (value(plan, kl, relaxation=pulled) - value(plan, kl)).abs().min() > 1e-3


def test_J_b_with_KL_rewards_a_fuzzy_plan_the_spurious_minimum():
    """Proposition 3.2: a constant prediction equal to the target's mean costs nothing under the uniform plan."""
    target = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)[None]
    mean = target.mean()
    prediction = torch.log(mean / (1 - mean)).expand(1, 4, 4)
    uniform, mask = torch.full((1, 4, 4), 0.25, dtype=torch.float64), torch.ones(1, 4, dtype=torch.float64)
    term = EdgeTerm(prediction, target, KL)
    assert value(uniform, term, mask, relaxation=Relaxation(Objective.J_B)).abs() < 1e-12
    assert value(uniform, term, mask) > 0.5


def test_J_a_swapped_role_preserving_is_J_a_for_symmetric_matrices():
    plan, swapped = any_plan(), Relaxation(Objective.J_A, Order.TARGET_FIRST, Reading.ROLE_PRESERVING)
    for divergence in Divergence:
        symmetric = make_term(divergence, 0, symmetric=True)
        expected = value(plan, symmetric, MASKS["masked"], relaxation=Relaxation(Objective.J_A))
        torch.testing.assert_close(value(plan, symmetric, MASKS["masked"], relaxation=swapped), expected)
        uneven = make_term(divergence, 0, symmetric=False)
        difference = value(plan, uneven, relaxation=swapped) - value(
            plan, uneven, relaxation=Relaxation(Objective.J_A)
        )
        assert difference.abs().max() > 1e-4


def test_J_b_swapped_role_preserving_is_the_cross_entropy_of_the_transported_prediction():
    term = make_term(CROSS_ENTROPY, 0, symmetric=True)
    plan = bistochastic(torch.Generator().manual_seed(3), 3, 4)
    carried = plan.mT @ torch.sigmoid(term.prediction) @ plan
    expected = torch.nn.functional.binary_cross_entropy(carried, term.target, reduction="none").mean((1, 2))
    swapped = Relaxation(Objective.J_B, Order.TARGET_FIRST, Reading.ROLE_PRESERVING)
    torch.testing.assert_close(value(plan, term, relaxation=swapped), expected)


def test_J_a_swapped_literal_puts_the_clamped_target_inside_the_logarithm():
    term = make_term(CROSS_ENTROPY, 0, symmetric=True, hard=True)
    plan = bistochastic(torch.Generator().manual_seed(4), 3, 4)
    inside, label = plan @ term.target, torch.sigmoid(term.prediction) @ plan
    for clamp in (1e-2, 1e-6):
        expected = -label * inside.clamp_min(clamp).log() - (1 - label) * (1 - inside).clamp_min(clamp).log()
        relaxation = Relaxation(Objective.J_A, Order.TARGET_FIRST, Reading.LITERAL, clamp)
        torch.testing.assert_close(value(plan, term, relaxation=relaxation), expected.mean((1, 2)))


def test_J_a_follows_the_masked_formula_of_the_specification():
    term, plan, w = make_term(KL, 0, symmetric=False), any_plan(), MASKS["masked"]
    r, c = (plan * w[:, None]).sum(2), plan.sum(1)
    p = torch.sigmoid(term.prediction) @ plan / c[:, None]
    M = plan @ (term.target * w[:, :, None] * w[:, None, :])
    share = (M / r[:, :, None]).clamp(1e-300, 1)
    entropy = -(share * share.log() + (1 - share) * (1 - share).clamp_min(1e-300).log())
    inside = M * p.log() + (r[:, :, None] - M) * (1 - p).log()
    weight = (w * c)[:, None]
    expected = -(weight * inside).sum((1, 2)) - (weight * r[:, :, None] * entropy).sum((1, 2))
    result = value(plan, term, w, relaxation=Relaxation(Objective.J_A))
    torch.testing.assert_close(result, expected / w.sum(1) ** 2)


def test_closed_forms_of_proposition_B1():
    term, plan = make_term(SQUARED, 0, symmetric=False), bistochastic(torch.Generator().manual_seed(0), 3, 4)
    A, B, T = term.prediction, term.target, plan
    cross = 2 * ((A @ T) * (T @ B)).sum((1, 2))
    squares = {
        Objective.J: (A**2).sum((1, 2)) + (B**2).sum((1, 2)),
        Objective.J_A: ((A @ T) ** 2).sum((1, 2)) + ((T @ B) ** 2).sum((1, 2)),
        Objective.J_B: (A**2).sum((1, 2)) + ((T @ B @ T.mT) ** 2).sum((1, 2)),
    }
    for objective, square in squares.items():
        torch.testing.assert_close(value(plan, term, relaxation=Relaxation(objective)) * 16, square - cross)


def test_identity_under_the_uniform_plan_gives_2_1_0():
    eye, uniform = torch.eye(2, dtype=torch.float64)[None], torch.full((1, 2, 2), 0.5, dtype=torch.float64)
    term, mask = EdgeTerm(eye, eye, SQUARED), torch.ones(1, 2, dtype=torch.float64)
    values = [
        4 * value(uniform, term, mask, relaxation=Relaxation(objective)).item()
        for objective in (Objective.J, Objective.J_B, Objective.J_A)
    ]
    assert values == pytest.approx([2, 1, 0])


def test_huge_logits_neither_cancel_nor_go_negative_in_float32():
    generator = torch.Generator().manual_seed(0)
    logits = 1e5 * torch.randn(8, 6, 6, generator=generator)
    target = (logits > 0).float()
    plan = torch.eye(6).expand(8, 6, 6)
    term = EdgeTerm(logits, target)
    assert relaxed_objective(plan, term, torch.ones(8, 6), SelfLoops.INCLUDED, Relaxation()).abs().max() < 1e-6
    noisy = 0.9 * plan + 0.1 / 6
    result = relaxed_objective(noisy, term, torch.ones(8, 6), SelfLoops.INCLUDED, Relaxation())
    exact = relaxed_objective(
        noisy.double(), EdgeTerm(logits.double(), target.double()), torch.ones(8, 6).double(), SelfLoops.INCLUDED,
        Relaxation(),
    )  # fmt: skip
    torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("divergence", Divergence)
def test_logits_beyond_the_range_of_float32_cost_infinity_and_never_nan(divergence):
    term = EdgeTerm(torch.full((1, 3, 3), 3e38), torch.zeros(1, 3, 3), divergence)
    assert value(torch.full((1, 3, 3), 1 / 3), term, torch.ones(1, 3)).item() == float("inf")


def test_saturated_one_sided_objective_stays_finite():
    term = EdgeTerm(torch.tensor([[[300.0, -300], [-300, 300]]]), torch.tensor([[[0.0, 1], [1, 0]]]), KL)
    plan = torch.eye(2)[None].requires_grad_()
    for relaxation in ALL_RELAXATIONS:
        result = relaxed_objective(plan, term, torch.ones(1, 2), SelfLoops.INCLUDED, relaxation)
        (gradient,) = torch.autograd.grad(result.sum(), plan)
        assert torch.isfinite(result).all()
        assert torch.isfinite(gradient).all()


def test_probabilities_from_logits_are_the_sigmoid():
    logits = torch.tensor([[[-3.0, 0.5], [2.0, 0.0]]])
    term = EdgeTerm(logits, torch.ones(1, 2, 2))
    result = relaxed_objective(torch.eye(2)[None], term, torch.ones(1, 2), SelfLoops.INCLUDED, Relaxation())
    torch.testing.assert_close(result, -logsigmoid(logits).mean((1, 2)))


N = 3


def pairs(divergence, classes):
    """A prediction and a soft target, one graph, neither symmetric."""
    generator = torch.Generator().manual_seed(0)
    shape = (1, classes, N, N) if classes else (1, N, N)
    prediction = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.rand(shape, generator=generator, dtype=torch.float64)
    if classes and divergence is not Divergence.SQUARED:
        target = target / target.sum(1, keepdim=True)
    return prediction, target


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("divergence", Divergence)
def test_factors_give_d_of_every_two_pairs(divergence, classes):
    prediction, target = pairs(divergence, classes)
    factors = factorise(divergence, prediction, target)
    target_cost = torch.zeros(1, N, N) if factors.target_cost is None else factors.target_cost
    for i, k, j, other in itertools.product(range(N), repeat=4):
        expected = scalar_divergence(divergence, prediction[0, ..., i, k], target[0, ..., j, other])
        product = (factors.left[0, :, i, k] * factors.right[0, :, j, other]).sum()
        value = factors.prediction_cost[0, i, k] + target_cost[0, j, other] - product
        assert value.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("divergence", Divergence)
def test_d_pair_by_pair_is_its_definition(divergence, classes):
    prediction, target = pairs(divergence, classes)
    values = pair_divergence(divergence, prediction, target)
    assert values.shape == (1, N, N)
    for i, k in itertools.product(range(N), repeat=2):
        expected = scalar_divergence(divergence, prediction[0, ..., i, k], target[0, ..., i, k])
        assert values[0, i, k].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("function", [factorise, pair_divergence])
def test_shapes_that_could_be_misread_as_classes_are_refused(function):
    with pytest.raises(ValueError, match="prediction must have shape"):
        function(Divergence.KL, torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="target must have shape"):
        function(Divergence.KL, torch.zeros(2, 3, 3), torch.zeros(2, 3, 2))
