"""The propositions as a page: every finding in a table, the counter-examples drawn."""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphwright import __version__
from graphwright.experiments.figures import write_figure
from graphwright.experiments.findings import EXACT, LOOSE, POSITIONS, SIZE, Finding, Theory, check_theory
from graphwright.experiments.grid import Scale
from graphwright.experiments.propositions import CYCLE, TRIANGLES, adjacency, every_permutation, ring_plan, value
from graphwright.experiments.reproduction import PAGE, page_folder
from graphwright.files import write_json
from graphwright.graphs import drawing
from graphwright.inference.record import commit, hardware
from graphwright.transport import Objective

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
