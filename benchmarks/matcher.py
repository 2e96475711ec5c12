"""The learned plan, forward and backward, beside Any2Graph's: conditional gradient with POT's exact transport."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measurement import Measured, Row, interleaved_milliseconds, peaks
from benchmarks.plans import Case, load_pot, make_case
from benchmarks.sinkhorn_case import ITERATIONS, TEMPERATURE, WIDTH
from graphwright.graphs import GraphBatch
from graphwright.graphs.batch import without_self_loops
from graphwright.losses import LossSettings
from graphwright.matching import LearnedMatcher, epsilon_of
from graphwright.models import NodeEncoder, TargetEncoder
from graphwright.training.processes import threads
from graphwright.transport import EdgeTerm, MatchingProblem, QuadraticForm, l1_plan

STEPS = 20
TOLERANCE = 1e-5
"""Any2Graph's own: steps at most, and the relative decrease below which it stops."""


def cross_entropy_problem(case: Case, sharpness: float) -> MatchingProblem:
    """The targets of a case with edge logits in place of probabilities, as a predictor makes them.

    sharpness 0: logits of noise alone, an untrained predictor; larger: the more they say of the target.
    """
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(case.prediction.shape, generator=generator)
    logits = without_self_loops(sharpness * (2 * case.prediction - 1) + noise + noise.mT)
    return MatchingProblem(case.problem.linear, (EdgeTerm(logits, case.target),), case.problem.mask)


def emd_conditional_gradient(ot: Any, problem: MatchingProblem) -> Tensor:
    """(b, n, n) unit-marginal plans: uniform start, `ot.emd` for the direction, exact line search."""
    form = problem.quadratic_form()
    plans = [_descend(ot, form.take(torch.tensor([at]))) for at in range(problem.batch)]
    return torch.from_numpy(np.stack(plans))


def _descend(ot: Any, form: QuadraticForm) -> Any:
    linear, pair_cost, mask = (part[0].double().numpy() for part in (form.linear, form.pair_cost, form.mask))
    left, right = form.left[0].double().numpy(), form.right[0, 0].double().numpy()
    n = len(mask)

    def operator(plan: Any) -> Any:
        return np.outer(pair_cost @ (plan @ mask), mask) - left @ (plan @ right)

    ones = np.ones(n)
    plan = np.full((n, n), 1 / n)
    applied = operator(plan)
    value = (linear * plan).sum() + (applied * plan).sum() / 2
    for _ in range(STEPS):
        gradient = linear + applied
        direction = ot.emd(ones, ones, gradient) - plan
        turned = operator(direction)
        slope, curvature = (gradient * direction).sum(), (turned * direction).sum()
        step = min(1.0, max(0.0, -slope / curvature)) if curvature > 0 else float(slope + curvature / 2 < 0)
        plan, applied = plan + step * direction, applied + step * turned
        change = step * slope + step**2 * curvature / 2
        value += change
        if abs(change) <= TOLERANCE * abs(value):
            break
    return plan


STATE_WIDTH, TARGET_WIDTH, TARGET_LAYERS, POSITIONS = 96, 64, 3, 8
"""Those of the -cpu presets."""
LEARNED = ("learned plan", "learned plan, target encoder")
SHARPNESS = {"untrained": 0.0, "trained": 4.0}
"""How much the predictions say that the peer is given: it needs fewer steps where they say more."""


class GivenStates(NodeEncoder):
    """Target states (m, width) that are there already: the matcher without its target encoder."""

    def __init__(self, nodes: int, width: int) -> None:
        super().__init__()
        self.states = nn.Parameter(torch.randn(nodes, width))

    def nodes(self, target: GraphBatch) -> Tensor:  # noqa: ARG002
        """The states given."""
        return self.states


def measure_matcher(
    sizes: tuple[int, ...] = (10, 20, 32, 60),
    batch: int = 128,
    repeats: int = 3,
    thread_counts: tuple[int, ...] = (1, 2),
) -> Measured:
    """Rows for every size: projections, L1 cost and Sinkhorn, without the target encoder and with it.

    Both sides match the same targets; the peer does from an untrained and from a trained predictor's logits, the
    learned plan costs the same from any. An untrained matcher's plan means nothing, so no objectives are given.
    Then the plan for targets that take half of the slots, beside the one for targets that take all.
    """
    ot = load_pot()
    for count in thread_counts:
        with threads(count):
            for n in sizes:
                case = make_case(batch, n, fused=True)
                whole_graphs, half_graphs = case.graphs(n), case.graphs(n // 2)
                given = learned_pass(whole_graphs, encode=False)
                encoded = learned_pass(whole_graphs, encode=True)
                halves = [learned_pass(half_graphs, encode=False), learned_pass(half_graphs, encode=True)]
                problems = {name: cross_entropy_problem(case, value) for name, value in SHARPNESS.items()}
                solvers = [partial(emd_conditional_gradient, ot, problem) for problem in problems.values()]
                passes: list[Callable[[], object]] = [given, encoded, *halves, *solvers]
                without, whole, *others = interleaved_milliseconds(passes, repeats)
                half_times, peers = others[: len(halves)], others[len(halves) :]
                for name, time, learned in zip(LEARNED, (without, whole), (given, encoded), strict=True):
                    for state, peer, solver in zip(problems, peers, solvers, strict=True):
                        figures = (time / batch, f"conditional gradient, ot.emd, {state}", peer / batch)
                        yield Row(name, n, batch, count, *figures, extras=peaks(learned, solver))
                for name, half, full in zip(LEARNED, half_times, (without, whole), strict=True):
                    halves_beside = (half / batch, "targets in every slot", full / batch)
                    yield Row(f"{name}, half of the slots", n, batch, count, *halves_beside)


def learned_pass(target: GraphBatch, *, encode: bool) -> Callable[[], tuple[Tensor, ...]]:
    """A pass of the matcher forward and backward: gradients of its states and parameters, in that order."""
    batch, n = target.mask.shape
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder: NodeEncoder = GivenStates(len(target.node_rows), TARGET_WIDTH)
        if encode:
            encoder = TargetEncoder(
                target.vocabulary, TARGET_WIDTH, TARGET_LAYERS, POSITIONS, random_signs=True, dropout=0.0
            )
        matcher = LearnedMatcher(
            encoder,
            slots=n,
            state_width=STATE_WIDTH,
            target_width=TARGET_WIDTH,
            dimension=WIDTH,
            embedding_plan=l1_plan,
            epsilon=epsilon_of(TEMPERATURE, n, WIDTH),
            iterations=ITERATIONS,
            loss=LossSettings(),
        )
        states = torch.randn(batch, n, STATE_WIDTH, requires_grad=True)
        gradient = torch.randn(batch, n, n)
    wanted = [states, *matcher.parameters()]

    def run() -> tuple[Tensor, ...]:
        return torch.autograd.grad(matcher.plan(states, target), wanted, gradient)

    return run
