"""The paper's propositions on small graphs: every statement computed, none assumed, and shown on a page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphwright import __version__
from graphwright.experiments.figures import write_figure
from graphwright.experiments.grid import Scale
from graphwright.experiments.reproduction import PAGE, page_folder
from graphwright.files import write_json
from graphwright.graphs import Graph, GraphBatch, drawing
from graphwright.inference.export import commit, hardware
from graphwright.losses import LossSettings
from graphwright.matching import LearnedMatcher, epsilon_of
from graphwright.models import TargetEncoder
from graphwright.transport import (
    Divergence,
    EdgeTerm,
    MatchingProblem,
    Objective,
    Relaxation,
    SelfLoops,
    conditional_gradient,
    l1_plan,
    mirror_descent,
    multi_start,
    relaxed_objective,
    uniform_plan,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


STARTS, OUTER, INNER = 4, 30, 100
STATE, WIDTH = 8, 16
CYCLE = Graph.build(6, [(i, (i + 1) % 6) for i in range(6)])
TRIANGLES = Graph.build(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])


@dataclass(frozen=True)
class Minima:
    """For one pair of matrices the least J over permutations and the least J, J_a, J_b found over plans."""

    exact: float
    J: float
    J_a: float
    J_b: float


def adjacency(graph: Graph) -> Tensor:
    """(n, n) float64."""
    return GraphBatch.collate([graph]).adjacency()[0].double()


def value(
    plan: Tensor, A: Tensor, B: Tensor, objective: Objective, divergence: Divergence = Divergence.SQUARED
) -> Tensor:
    """(b,) J, J_a or J_b of plans (b, n, n) between matrices (n, n) or (b, n, n), as a sum (not over n^2)."""
    n = plan.shape[1]
    term = EdgeTerm(A.expand_as(plan), B.expand_as(plan), divergence)
    mask = torch.ones(len(plan), n, dtype=plan.dtype)
    return n**2 * relaxed_objective(plan, term, mask, SelfLoops.INCLUDED, Relaxation(objective))


def every_permutation(n: int) -> Tensor:
    """(n!, n, n) float64."""
    return torch.eye(n, dtype=torch.float64)[torch.tensor(list(permutations(range(n))))]


def random_plans(generator: torch.Generator, count: int, n: int) -> Tensor:
    """(count, n, n) mixtures of four permutations, exact in both marginals."""
    weights = torch.rand(count, 4, generator=generator, dtype=torch.float64)
    orders = torch.rand(count, 4, n, generator=generator).argsort(2)
    shares = weights / weights.sum(1, keepdim=True)
    return (shares[:, :, None, None] * torch.eye(n, dtype=torch.float64)[orders]).sum(1)


def minima(A: Tensor, B: Tensor, seed: int) -> list[Minima]:
    """For pairs (b, n, n): by brute force over permutations, and by solvers from several starts over plans."""
    b, n = A.shape[:2]
    every = every_permutation(n)
    exact, at = torch.stack([value(every, A[i], B[i], Objective.J) for i in range(b)]).min(1)
    problem = _problem(A, B, Objective.J)
    starts = torch.Generator().manual_seed(seed)
    tried = [
        conditional_gradient(problem, every[at]).matrix,
        multi_start(problem, conditional_gradient, STARTS, starts).matrix,
    ]
    gromov = _least(tried, A, B, Objective.J)
    flat = uniform_plan(b, n, A)
    least = {Objective.J: value(gromov, A, B, Objective.J)}
    for objective in (Objective.J_A, Objective.J_B):
        own = _problem(A, B, objective)
        descended = [mirror_descent(own, start, outer=OUTER, inner=INNER).matrix for start in (flat, gromov)]
        least[objective] = value(_least([gromov, flat, *descended], A, B, objective), A, B, objective)
    rows = zip(exact.tolist(), *(least[objective].tolist() for objective in Objective), strict=True)
    return [Minima(*row) for row in rows]


def _least(plans: Sequence[Tensor], A: Tensor, B: Tensor, objective: Objective) -> Tensor:
    """(b, n, n) the best of several plans (b, n, n), pair by pair."""
    costs = torch.stack([value(plan, A, B, objective) for plan in plans])
    return torch.stack(list(plans))[costs.argmin(0), torch.arange(len(A))]


def _problem(A: Tensor, B: Tensor, objective: Objective) -> MatchingProblem:
    term = EdgeTerm(A, B, Divergence.SQUARED)
    ones = torch.ones(A.shape[:2], dtype=A.dtype)
    return MatchingProblem(torch.zeros_like(A), (term,), ones, SelfLoops.INCLUDED, Relaxation(objective))


def ring_plan(positions: int, seed: int) -> Tensor:
    """(6, 6) plan of an untrained matcher for random slot states and a six-ring as the target."""
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(1, 6, STATE, dtype=torch.float64, generator=generator)
    return _matcher(positions, seed).plan(states, GraphBatch.collate([CYCLE]))[0].detach()


def equivariance_error(positions: int, seed: int, draws: int) -> float:
    """Largest difference between the plan of a permuted random target and the permuted plan."""
    generator = torch.Generator().manual_seed(seed)
    matcher, worst = _matcher(positions, seed), 0.0
    for _ in range(draws):
        edges = (torch.rand(6, 6, generator=generator) < 0.5).triu(1).nonzero()
        graph = Graph.build(6, edges.numpy())
        order = torch.randperm(6, generator=generator)
        states = torch.randn(1, 6, STATE, dtype=torch.float64, generator=generator)
        targets = (GraphBatch.collate([each]) for each in (graph, graph.permute(order.numpy())))
        plan, moved = (matcher.plan(states, target)[0].detach() for target in targets)
        worst = max(worst, float((plan[:, order] - moved).abs().max()))
    return worst


def _matcher(positions: int, seed: int) -> LearnedMatcher:
    """An untrained matcher of six slots, its weights a function of the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = TargetEncoder(CYCLE.vocabulary, WIDTH, 3, positions, random_signs=False, dropout=0.0)
        matcher = LearnedMatcher(
            encoder,
            slots=6,
            state_width=STATE,
            target_width=WIDTH,
            dimension=8,
            embedding_plan=l1_plan,
            epsilon=epsilon_of(6e-3, 6, 8),
            iterations=200,
            loss=LossSettings(),
        )
    return matcher.double().eval()


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
        figure = float(value(flat, eye, eye, objective))
        text = f"{objective}, identities of size 2, uniform plan"
        findings.append(Finding("C.1", f"{objective} = {wanted:g}", text, figure, abs(figure - wanted) < EXACT))
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


PAIRS = {Scale.SMOKE: 4, Scale.CPU: 60, Scale.PAPER: 400}
"""Random pairs of matrices."""
COLORS = {"l": "#222222", "GW": "#4C78A8", "l_b": "#F58518", "l_a": "#54A24B"}


@dataclass(frozen=True)
class Propositions:
    """Where the page is, and the findings."""

    folder: Path
    findings: list[Finding]

    @property
    def broken(self) -> list[str]:
        """A line for every statement that is not borne out."""
        return [
            f"{each.proposition}, {each.statement}: {each.value:g}" for each in self.findings if not each.holds
        ]


def write_propositions(out: Path, scale: Scale) -> Propositions:
    """README.md, table.csv, figure.png, figure.svg and record.json."""
    theory = check_theory(PAIRS[scale])
    folder = page_folder(out, "propositions", scale)
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"seed": 0, "pairs": PAIRS[scale], "commit": commit(), "graphwright": __version__}
    facts |= {"torch": torch.__version__, "hardware": hardware()}
    write_json(folder / "record.json", facts | {"findings": [asdict(each) for each in theory.findings]})
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(asdict(theory.findings[0])), lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(each) for each in theory.findings)
    write_figure(folder, _figure(theory))
    (folder / PAGE).write_text(_markdown(theory, scale), encoding="utf-8")
    return Propositions(folder, theory.findings)


def _markdown(theory: Theory, scale: Scale) -> str:
    lines = ["| proposition | statement | computed | value | holds |", "|---|---|---|---|---|"]
    for each in theory.findings:
        cells = (
            each.proposition,
            each.statement,
            each.computed,
            f"{each.value:.3g}",
            "yes" if each.holds else "**no**",
        )
        lines.append(f"| {' | '.join(cells)} |")
    notes = [
        "Matrices are random in [0, 1]; minima over permutations are by brute force, minima over plans are the "
        "least that solvers from several starts find, so that l_a, l_b and GW are upper bounds of the true ones.",
        "J, J_a and J_b are sums, as the paper writes them; the losses of graphwright are these over m^2.",
        "Numbers are the paper's, by section; C.1 is the proposition of appendix C about objectives that differ.",
        f"Precision is double; an equality holds within {EXACT:g}, after an untrained matcher within {LOOSE:g}.",
    ]
    return "\n\n".join([
        f"# The theory, numerically, scale `{scale}`",
        f"Every proposition of the paper, computed on {len(theory.minima)} random pairs and on its own "
        "counter-examples. [Record](record.json), [CSV](table.csv).",
        "![the counter-examples](figure.png)",
        "\n".join(lines),
        "## What differs from the paper",
        "\n".join(f"- {note}" for note in notes),
    ]) + "\n"  # fmt: skip


def _figure(theory: Theory) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 9), layout="constrained")
    (ring, triangles, fooled), (constant, other, blind), (order, flat, broken) = figure.subplots(3, 3)
    angles = 2 * np.pi * np.arange(6) / 6
    drawing.draw(CYCLE, ring, np.stack([np.cos(angles), np.sin(angles)], 1))
    drawing.draw(TRIANGLES, triangles, _two_triangles())
    ring.set_title("A: a six-ring", fontsize=9)
    triangles.set_title("B: two triangles", fontsize=9)
    _values(fooled, adjacency(CYCLE), adjacency(TRIANGLES), "J_a cannot tell A from B")
    B = (torch.rand(SIZE, SIZE, generator=torch.Generator().manual_seed(1), dtype=torch.float64) < 0.4).double()
    A = B.mean().expand(SIZE, SIZE)
    for panel, matrix, title in ((constant, A, "A: the mean of B everywhere"), (other, B, "B")):
        panel.imshow(matrix.numpy(), cmap="Greys", vmin=0, vmax=1)
        panel.set_title(title, fontsize=9)
        panel.set_xticks([])
        panel.set_yticks([])
    _values(blind, A, B, "J_b cannot tell A from B")
    _order(order, theory)
    for panel, positions, title in (
        (flat, 0, "matcher on a six-ring: uniform"),
        (broken, POSITIONS, "with Laplacian encodings"),
    ):
        panel.imshow(ring_plan(positions, 0).numpy(), cmap="magma", vmin=0, vmax=1)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("target node", fontsize=8)
        panel.set_ylabel("slot", fontsize=8)
    return figure


def _two_triangles() -> NDArray[np.float64]:
    angles = np.pi * np.array([1 / 2, 7 / 6, -1 / 6])
    corners = np.stack([np.cos(angles), np.sin(angles)], 1)
    apart = np.array([1.3, 0.0])
    return np.concatenate([corners - apart, corners + apart])


def _values(panel: Axes, A: torch.Tensor, B: torch.Tensor, title: str) -> None:
    """J, J_b and J_a of the uniform plan beside the least J over permutations."""
    n = len(A)
    uniform = torch.full((1, n, n), 1 / n, dtype=torch.float64)
    heights = {"l": float(value(every_permutation(n), A, B, Objective.J).min())}
    for name, objective in (("GW", Objective.J), ("l_b", Objective.J_B), ("l_a", Objective.J_A)):
        heights[name] = float(value(uniform, A, B, objective))
    labels = ["l (exact)", "J(uniform)", "J_b(uniform)", "J_a(uniform)"]
    bars = panel.bar(labels, list(heights.values()), color=[COLORS[name] for name in heights])
    panel.bar_label(bars, [f"{height:.2f}" for height in heights.values()], fontsize=8)
    panel.tick_params(axis="x", labelsize=7)
    panel.set_title(title, fontsize=9)


def _order(panel: Axes, theory: Theory) -> None:
    """The minima of the random pairs, by their exact one."""
    least = sorted(theory.minima, key=lambda each: each.exact)
    for name, values in (
        ("l", [each.exact for each in least]),
        ("GW", [each.J for each in least]),
        ("l_b", [each.J_b for each in least]),
        ("l_a", [each.J_a for each in least]),
    ):
        panel.plot(values, ".-", color=COLORS[name], label=name, markersize=4, linewidth=1)
    panel.set_title(f"minima of {len(least)} random pairs", fontsize=9)
    panel.set_xlabel("pair, by l", fontsize=8)
    panel.legend(fontsize=8)
