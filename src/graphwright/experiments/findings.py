"""Whether what is computed bears the paper's propositions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphwright.experiments.propositions import (
    CYCLE,
    TRIANGLES,
    Minima,
    adjacency,
    equivariance_error,
    every_permutation,
    minima,
    random_plans,
    ring_plan,
    value,
)
from graphwright.transport import Divergence, Objective

EXACT = 1e-9
"""What double precision leaves of an equality."""
LOOSE = 1e-6
"""The same after an untrained matcher."""
PLANS = 8
POSITIONS = 8
SIZE = 5
"""Nodes of random pairs whose minima are sought; 120 permutations each."""


@dataclass(frozen=True)
class Finding:
    """A statement, what was computed for it, and whether that bears it out."""

    proposition: str
    statement: str
    computed: str
    value: float
    holds: bool


@dataclass(frozen=True)
class Theory:
    """All findings, and the minima behind the one about their order."""

    findings: list[Finding]
    minima: list[Minima]


def check_theory(pairs: int, seed: int = 0) -> Theory:
    """Every proposition, those about all matrices on `pairs` random ones."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [2 + at % 4 for at in range(pairs)]
    matrices = [(_random(generator, n), _random(generator, n)) for n in sizes]
    first, second = (torch.stack([_symmetric(generator, SIZE) for _ in range(pairs)]) for _ in range(2))
    least = minima(first, second, seed)
    findings = [
        _same_on_permutations(matrices),
        *_bounded_by_J(matrices, generator),
        *_ordered(least),
        _mixtures(matrices, generator),
        *_counter_examples(generator),
        _closed_forms(matrices, generator),
        *_identity(),
        *_equivariance(seed, pairs),
    ]
    return Theory(findings, least)


Pairs = Sequence[tuple[Tensor, Tensor]]


def _random(generator: torch.Generator, n: int) -> Tensor:
    return torch.rand(n, n, generator=generator, dtype=torch.float64)


def _symmetric(generator: torch.Generator, n: int) -> Tensor:
    matrix = _random(generator, n)
    return (matrix + matrix.T) / 2


def _same_on_permutations(pairs: Pairs) -> Finding:
    worst = 0.0
    for A, B in pairs:
        plans = every_permutation(len(A))
        for divergence in (Divergence.SQUARED, Divergence.CROSS_ENTROPY):
            J, J_a, J_b = (value(plans, A, B, each, divergence) for each in Objective)
            worst = max(worst, float((J - J_a).abs().max()), float((J - J_b).abs().max()))
    text = (
        f"largest difference over all permutations of {len(pairs)} random pairs, squared error and cross-entropy"
    )
    return Finding("2.1", "J = J_a = J_b on permutations", text, worst, worst < EXACT)


def _bounded_by_J(pairs: Pairs, generator: torch.Generator) -> list[Finding]:
    findings = []
    for objective in (Objective.J_A, Objective.J_B):
        excess = -float("inf")
        for A, B in pairs:
            plans = random_plans(generator, PLANS, len(A))
            excess = max(excess, float((value(plans, A, B, objective) - value(plans, A, B, Objective.J)).max()))
        text = f"largest {objective} - J over {PLANS} random plans of each of {len(pairs)} pairs"
        findings.append(Finding("3.1", f"{objective} <= J at every plan", text, excess, excess < EXACT))
    return findings


def _ordered(least: Sequence[Minima]) -> list[Finding]:
    below = max(each.J - each.exact for each in least)
    above = max(max(each.J_a, each.J_b) - each.J for each in least)
    text = f"{len(least)} random pairs of {SIZE} nodes"
    return [
        Finding("3.1", "GW <= l", f"largest GW - l, {text}", below, below < EXACT),
        Finding("3.1", "max(l_a, l_b) <= GW", f"largest max(l_a, l_b) - GW, {text}", above, above < EXACT),
    ]


def _mixtures(pairs: Pairs, generator: torch.Generator) -> Finding:
    """J of a mixture of permutations is at least the squared weights times J of each: 0 only if all are 0."""
    slack = float("inf")
    for A, B in pairs:
        every = every_permutation(len(A))
        chosen = every[torch.randint(len(every), (3,), generator=generator)]
        weights = torch.rand(3, generator=generator, dtype=torch.float64).softmax(0)
        mixed = value((weights[:, None, None] * chosen).sum(0)[None], A, B, Objective.J)[0]
        slack = min(slack, float(mixed - (weights**2 * value(chosen, A, B, Objective.J)).sum()))
    text = f"least J(sum w P) - sum w^2 J(P), {len(pairs)} random mixtures"
    return Finding("3.2", "GW = 0 only if l = 0", text, slack, slack > -EXACT)


def _counter_examples(generator: torch.Generator) -> list[Finding]:
    ring, triangles = adjacency(CYCLE), adjacency(TRIANGLES)
    flat = torch.full((1, 6, 6), 1 / 6, dtype=torch.float64)
    fooled = float(value(flat, ring, triangles, Objective.J_A))
    (least,) = minima(ring[None], triangles[None], 0)
    B = _random(generator, SIZE)
    A = B.mean().expand(SIZE, SIZE)
    blind = float(value(torch.full((1, SIZE, SIZE), 1 / SIZE, dtype=torch.float64), A, B, Objective.J_B))
    exact = float(value(every_permutation(SIZE), A, B, Objective.J).min())
    rings = "C6 and two triangles"
    return [
        Finding("3.2", "l_a = 0 though l > 0", f"J_a of the uniform plan, {rings}", fooled, fooled < EXACT),
        Finding("3.2", "l_a = 0 though l > 0", f"l, {rings}", least.exact, least.exact > EXACT),
        Finding("3.2", "GW > 0 where l > 0", f"GW, {rings}", least.J, least.J > EXACT),
        Finding("3.2", "l_b = 0 though l > 0", "J_b, a constant matrix of equal mean", blind, blind < EXACT),
        Finding("3.2", "l_b = 0 though l > 0", "l, a constant matrix of equal mean", exact, exact > EXACT),
    ]


def _closed_forms(pairs: Pairs, generator: torch.Generator) -> Finding:
    worst = 0.0
    for A, B in pairs:
        T = random_plans(generator, PLANS, len(A))
        cross = 2 * ((A @ T) * (T @ B)).sum((1, 2))
        a, b = A.square().sum(), B.square().sum()
        forms = {
            Objective.J: a + b - cross,
            Objective.J_A: (A @ T).square().sum((1, 2)) + (T @ B).square().sum((1, 2)) - cross,
            Objective.J_B: a + (T @ B @ T.mT).square().sum((1, 2)) - cross,
        }
        for objective, form in forms.items():
            worst = max(worst, float((value(T, A, B, objective) - form).abs().max()))
    text = f"largest difference, {PLANS} random plans of each of {len(pairs)} pairs"
    return Finding("C.1", "closed forms of J, J_a and J_b for squared error", text, worst, worst < EXACT)


def _identity() -> list[Finding]:
    eye = torch.eye(2, dtype=torch.float64)
    flat = torch.full((1, 2, 2), 0.5, dtype=torch.float64)
    expected = {Objective.J: 2.0, Objective.J_B: 1.0, Objective.J_A: 0.0}
    findings = []
    for objective, wanted in expected.items():
        found = float(value(flat, eye, eye, objective))
        text = f"{objective}, identities of size 2, uniform plan"
        findings.append(Finding("C.1", f"{objective} = {wanted:g}", text, found, abs(found - wanted) < EXACT))
    return findings


def _equivariance(seed: int, draws: int) -> list[Finding]:
    error = equivariance_error(0, seed, draws)
    flat = float((ring_plan(0, seed) - 1 / 6).abs().max())
    broken = float((ring_plan(POSITIONS, seed) - 1 / 6).abs().max())
    equivariant = f"largest difference, {draws} targets"
    ring = "largest distance of T from 1/n, six-ring"
    return [
        Finding("B.1", "an equivariant encoder makes an equivariant matcher", equivariant, error, error < LOOSE),
        Finding("B.2", "on a vertex-transitive target its plan is uniform", ring, flat, flat < LOOSE),
        Finding("B.2", "Laplacian encodings break that", ring, broken, broken > 1e-3),
    ]
