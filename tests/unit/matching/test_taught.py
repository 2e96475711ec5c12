"""The taught matcher: what it teaches, when it stops, when it starts again."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphwright.losses import LossSettings, graph_loss, marginal_penalty, matching_problem
from graphwright.matching import TaughtMatcher, imitation_loss, in_order
from graphwright.transport import MatchingProblem, mirror_descent
from tiny import learned_matcher, random_batch, random_prediction

LOSS = LossSettings(marginals=0.7)
SOLVER = {"tau": 0.1, "outer": 6, "inner": 10}


def solve(problem: MatchingProblem) -> torch.Tensor:
    return mirror_descent(problem, **SOLVER).matrix


def taught(*, seed: int = 0, dtype: torch.dtype = torch.float64, **options) -> TaughtMatcher:
    torch.manual_seed(seed)
    defaults = {"imitation": 1.0, "objective": 0.0, "gap": 0.05, "reopened_gap": 0.2, "probe_every": 3}
    learned = learned_matcher(slots=5, positions=3, detach=True, dtype=dtype)
    return TaughtMatcher(learned, solve, LOSS, **defaults | options).to(dtype)


def case(seed: int, *, dtype: torch.dtype = torch.float64, scale: float = 2.0, requires_grad: bool = False):
    target = random_batch(np.random.default_rng(seed), [5, 3, 1, 0], 5)
    generator = torch.Generator().manual_seed(seed)
    prediction = random_prediction(generator, 4, 5, dtype=dtype, scale=scale, requires_grad=requires_grad)
    states = torch.randn(4, 5, 6, generator=generator).to(dtype).requires_grad_()
    return states, prediction, target


def solved(prediction, target):
    return mirror_descent(matching_problem(prediction, target, LOSS), **SOLVER)


def test_while_teaching_the_plan_is_the_solvers_and_the_matcher_imitates_it():
    states, prediction, target = case(0)
    matcher = taught(imitation=0.4)
    match = matcher(states, prediction, target)
    plan, teacher = matcher.learned.plan(states, target, prediction), solved(prediction, target).matrix
    assert torch.equal(match.plan, teacher)
    assert not match.plan.requires_grad
    expected = 0.4 * imitation_loss(plan, teacher, target) + 0.7 * marginal_penalty(plan, LOSS.penalty)
    torch.testing.assert_close(match.auxiliary, expected)
    assert match.health["solver"] == 1.0


def test_while_teaching_the_matcher_also_minimises_its_own_objective():
    states, prediction, target = case(0, requires_grad=True)
    plain, both = taught(objective=0.0), taught(objective=0.3)
    own = matching_problem(prediction, target, LOSS).objective(both.learned.plan(states, target, prediction))
    ours = both(states, prediction, target).auxiliary
    torch.testing.assert_close(ours, plain(states, prediction, target).auxiliary + 0.3 * own)
    ours.sum().backward()
    assert states.grad is None
    assert prediction.presence.grad is None
    assert both.learned.project_nodes.weight.grad.abs().sum() > 0


def test_once_alone_the_plan_is_the_learned_one_with_its_gradient():
    states, prediction, target = case(0)
    matcher = taught()
    matcher.taught.fill_(False)
    match = matcher(states, prediction, target)
    assert torch.equal(match.plan, matcher.learned.plan(states, target, prediction))
    assert match.plan.requires_grad
    assert not match.auxiliary.any()
    assert match.health["solver"] == 0.0
    assert "gap" not in match.health


def test_the_taught_matcher_hears_how_far_the_training_is():
    matcher = taught()
    matcher.learned.temperature = replace(matcher.learned.temperature, warm=100 * matcher.learned.temperature.cold)
    matcher.at(0.25)
    assert matcher.learned.epsilon == pytest.approx(1e-2)


def test_imitation_is_cross_entropy_on_the_columns_of_real_nodes():
    target = random_batch(np.random.default_rng(1), [2, 1, 0], 3)
    plan = torch.rand(3, 3, 3, dtype=torch.float64) + 0.1
    teacher = torch.rand(3, 3, 3, dtype=torch.float64).softmax(1)
    expected = []
    for at, size in enumerate((2, 1, 0)):
        terms = [
            -sum(teacher[at, i, j] * torch.log(plan[at, i, j] / plan[at, :, j].sum()) for i in range(3))
            for j in range(size)
        ]
        expected.append(sum(terms) / max(size, 1))
    torch.testing.assert_close(imitation_loss(plan, teacher, target), torch.tensor(expected, dtype=torch.float64))


def test_imitation_is_least_at_the_teachers_plan():
    _, prediction, target = case(2)
    teacher = solved(prediction, target).matrix
    least = imitation_loss(teacher, teacher, target)
    for seed in range(5):
        noise = torch.rand(teacher.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        assert (imitation_loss(teacher + 0.2 * noise, teacher, target)[:3] > least[:3]).all()


def test_imitation_of_a_plan_with_empty_entries_is_finite():
    target = random_batch(np.random.default_rng(3), [3], 3)
    plan = torch.eye(3)[None].requires_grad_()
    loss = imitation_loss(plan, torch.eye(3)[None].flip(1), target)
    loss.sum().backward()
    assert torch.isfinite(loss).all()
    assert torch.isfinite(plan.grad).all()


@pytest.mark.parametrize("alone", [False, True])
def test_no_gradient_of_the_plan_reaches_the_predictors_states(alone):
    states, prediction, target = case(3, requires_grad=True)
    matcher = taught()
    matcher.taught.fill_(not alone)
    match = matcher(states, prediction, target)
    (graph_loss(prediction, target, match.plan, LOSS).total + match.auxiliary).sum().backward()
    assert states.grad is None
    assert prediction.edges.grad.abs().max() > 0
    for name, parameter in matcher.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_imitation_moves_the_logits_of_nothing():
    states, prediction, target = case(4, requires_grad=True)
    taught()(states, prediction, target).auxiliary.sum().backward()
    assert prediction.edges.grad is None
    assert prediction.presence.grad is None


def test_the_gap_is_the_relative_excess_of_the_learned_plans_objective():
    states, prediction, target = case(5)
    matcher = taught()
    health = matcher(states, prediction, target).health
    problem = matching_problem(prediction, target, LOSS)

    def cost(plan):
        return (problem.objective(plan) + 0.7 * marginal_penalty(plan, LOSS.penalty)).sum()

    learned = cost(matcher.learned.plan(states, target, prediction).detach())
    best = cost(solved(prediction, target).matrix)
    uniform = cost(torch.full((4, 5, 5), 0.2, dtype=torch.float64))
    excess = learned - best
    assert health["gap"] == pytest.approx(float(max(excess / best, excess / (uniform - best))))
    assert health["gap"] > 0.01
    assert float(matcher.running_gap) == pytest.approx(0.9 + 0.1 * health["gap"])


class Scripted(TaughtMatcher):
    """A taught matcher whose gaps are given."""

    def step(self, gap: float) -> bool:
        """One probe; returns whether the solver is on after it."""
        self._probe(torch.tensor([1 + gap]), torch.tensor([1.0]), torch.tensor([5.0]))
        return bool(self.taught)


def scripted() -> Scripted:
    learned = learned_matcher(slots=5, detach=True)
    return Scripted(learned, solve, LOSS, imitation=1.0, objective=0.0, gap=0.05, reopened_gap=0.2, probe_every=3)


def test_the_solver_goes_once_the_running_gap_is_small_and_not_at_one_lucky_batch():
    matcher = scripted()
    assert matcher.step(0.0)
    steps = 1
    while matcher.step(0.01):
        steps += 1
    assert 20 < steps < 60
    assert float(matcher.running_gap) < 0.05


def test_a_predictor_that_says_nothing_does_not_free_the_matcher():
    """All plans cost nearly the same then, the learned one as much as the uniform one."""
    matcher = scripted()
    for _ in range(200):
        matcher._probe(torch.tensor([1.009]), torch.tensor([1.0]), torch.tensor([1.01]))
    assert bool(matcher.taught)


@pytest.mark.parametrize("learned", [0.9, 1.0, 1.1])
def test_a_teacher_no_better_than_the_uniform_plan_does_not_free_the_matcher(learned):
    """As an order that the predictor has not learnt: that the matcher costs less says nothing yet."""
    matcher = scripted()
    for _ in range(200):
        matcher._probe(torch.tensor([learned]), torch.tensor([1.0]), torch.tensor([0.99]))
    assert bool(matcher.taught)


def test_a_matcher_that_beats_its_teacher_is_free():
    matcher = scripted()
    for _ in range(60):
        matcher._probe(torch.tensor([0.9]), torch.tensor([1.0]), torch.tensor([5.0]))
    assert not bool(matcher.taught)


def test_the_order_of_the_data_can_teach():
    torch.manual_seed(0)
    target = random_batch(np.random.default_rng(3), [5, 4, 5, 3], 5)
    learned = learned_matcher(slots=5, positions=0, detach=True, dtype=torch.float32, places=5)
    options = {"imitation": 1.0, "objective": 0.0, "gap": 0.05, "reopened_gap": 0.2, "probe_every": 3}
    matcher = TaughtMatcher(learned, in_order, LOSS, **options)
    prediction = random_prediction(torch.Generator().manual_seed(0), 4, 5, dtype=torch.float32)
    states = torch.zeros(4, 5, 6)  # all slots alike: only their codes and the nodes' places can be matched
    optimizer = torch.optim.Adam(matcher.parameters(), 0.02)
    for _ in range(150):
        matcher.taught.fill_(True)  # however well this prediction, which is noise, likes the matcher's own plans
        match = matcher(states, prediction, target)
        optimizer.zero_grad()
        match.auxiliary.mean().backward()
        optimizer.step()
    assert torch.equal(match.plan, torch.eye(5).expand(4, 5, 5))
    plan = matcher.learned.plan(states, target, prediction)
    assert plan.diagonal(dim1=1, dim2=2)[target.mask].min() > 0.9


def test_the_solver_stays_while_the_gap_is_above_the_limit():
    matcher = scripted()
    assert all(matcher.step(0.06) for _ in range(300))


def test_the_solver_comes_back_when_the_gap_reopens_but_not_at_a_gap_in_between():
    matcher = scripted()
    while matcher.step(0.0):
        pass
    assert not any(matcher.step(0.15) for _ in range(50))
    assert matcher.step(0.4)
    assert matcher.step(0.1)  # between the limits: still teaching
    while matcher.step(0.0):
        pass
    assert float(matcher.running_gap) < 0.05


def test_alone_only_every_few_steps_is_a_probe_and_a_bad_one_brings_the_solver_back():
    states, prediction, target = case(6)
    matcher = taught(probe_every=3, gap=1e-6, reopened_gap=1e-3)
    matcher.taught.fill_(False)
    matcher.running_gap.zero_()
    health = [matcher(states, prediction, target).health for _ in range(4)]
    assert ["gap" in one for one in health] == [False, False, True, True]
    assert [one["solver"] for one in health] == [0.0, 0.0, 0.0, 1.0]


def test_evaluation_uses_the_learned_plan_and_changes_nothing():
    states, prediction, target = case(7)
    matcher = taught().eval()
    before = {name: value.clone() for name, value in matcher.state_dict().items()}
    match = matcher(states, prediction, target)
    assert torch.equal(match.plan, matcher.learned.plan(states, target, prediction))
    assert not match.auxiliary.any()
    assert all(torch.equal(value, before[name]) for name, value in matcher.state_dict().items())


def test_the_phase_is_part_of_the_state():
    matcher = scripted()
    while matcher.step(0.0):
        pass
    matcher.probes += 7
    other = scripted()
    other.load_state_dict(matcher.state_dict())
    assert not other.taught
    assert other.probes == 7
    assert torch.equal(other.running_gap, matcher.running_gap)
    for gap in (0.3, 0.5):
        assert other.step(gap) == matcher.step(gap)


def test_a_matcher_that_reads_states_with_gradient_cannot_be_taught():
    with pytest.raises(ValueError, match="detached"):
        TaughtMatcher(
            learned_matcher(slots=5),
            solve,
            LOSS,
            imitation=1.0,
            objective=0.0,
            gap=0.1,
            reopened_gap=0.2,
            probe_every=3,
        )


def test_limits_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match=r"reopened_gap must be at least gap, 0\.3, got 0\.2"):
        taught(gap=0.3)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e3, 1e8])
def test_everything_stays_finite_in_float32_with_adversarial_logits(scale, alone):
    states, prediction, target = case(8, dtype=torch.float32, scale=scale)
    matcher = taught(dtype=torch.float32, probe_every=1)
    matcher.taught.fill_(not alone)
    match = matcher(states, prediction, target)
    total = graph_loss(prediction, target, match.plan, LOSS).total + match.auxiliary
    (total / (1 + scale)).sum().backward()
    assert torch.isfinite(total).all()
    assert np.isfinite(list(match.health.values())).all()
    assert all(torch.isfinite(p.grad).all() for p in matcher.parameters() if p.grad is not None)


@pytest.mark.parametrize("alone", [False, True])
def test_mixed_precision_works(alone):
    states, prediction, target = case(9, dtype=torch.float32)
    matcher = taught(dtype=torch.float32, probe_every=1)
    matcher.taught.fill_(not alone)
    with torch.autocast("cpu", torch.bfloat16):
        match = matcher(states, prediction, target)
    assert match.plan.dtype is torch.float32
    (match.auxiliary + match.plan.square().sum((1, 2))).sum().backward()
    if not alone:
        assert torch.equal(match.plan, solved(prediction, target).matrix)
    assert all(torch.isfinite(parameter.grad).all() for parameter in matcher.parameters())
