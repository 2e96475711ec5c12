"""Match two noisy copies of a graph with every solver and draw the plans side by side.

python examples/match_two_graphs.py OUTPUT_FOLDER
"""

import sys
from functools import partial
from pathlib import Path
from time import perf_counter

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import torch
from torch import Tensor

import graphwright as gw
from graphwright.graphs import Graph, GraphBatch, Prediction, Vocabulary
from graphwright.transport import MatchingProblem, Plan, round_to_permutation

NODES = 12
COLOURS = Vocabulary(("blue", "green", "red", "yellow"))


def noisy_pair(seed: int) -> tuple[Graph, Graph, Prediction, np.ndarray]:
    """A planar graph; a copy in another order; that copy seen through noise as logits; the true alignment."""
    rng = np.random.default_rng(seed)
    skeleton = nx.random_geometric_graph(NODES, 0.42, seed=seed)
    labels = [COLOURS.nodes[code] for code in rng.integers(4, size=NODES)]
    target = Graph.build(labels, list(skeleton.edges), vocabulary=COLOURS)
    order = rng.permutation(NODES)
    copy = target.permute(order)
    batch, generator = GraphBatch.collate([copy]), torch.Generator().manual_seed(seed)

    def blurred(values: Tensor) -> Tensor:
        return 3 * (2 * values - 1) + 4 * torch.randn(values.shape, generator=generator)

    edges = blurred(batch.adjacency())
    prediction = Prediction(torch.full((1, NODES), 3.0), (edges + edges.mT) / 2, blurred(batch.node_one_hot()))
    return target, copy, prediction, order


def solve(problem: MatchingProblem) -> dict[str, Plan]:
    """Every way that graphwright has to find a plan without learning one; all but exact in the marginals.

    A plan that misses its marginals drops mass and looks cheaper than it is.
    """
    t = gw.transport
    starts = partial(t.multi_start, solver=t.conditional_gradient, starts=16)
    return {
        "Sinkhorn, labels only": t.sinkhorn(problem.linear * NODES, epsilon=0.2, iterations=200),
        "mirror descent": t.mirror_descent(problem, tau=0.3, outer=50, inner=200),
        "conditional gradient": t.conditional_gradient(problem),
        "16 starts": starts(problem, generator=torch.Generator().manual_seed(0)),
    }


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    target, copy, prediction, order = noisy_pair(seed=54)
    problem = gw.losses.matching_problem(prediction, GraphBatch.collate([target]))
    begun = perf_counter()
    plans = solve(problem)
    print(f"{len(plans)} solvers in {perf_counter() - begun:.2f} s")

    figure, axes = plt.subplots(1, 2 + len(plans), figsize=(3 * (2 + len(plans)), 3.6), layout="constrained")
    colours = {name: f"tab:{'olive' if name == 'yellow' else name}" for name in COLOURS.nodes}
    places = gw.graphs.layout(target)
    gw.graphs.draw(target, axes[0], places, colours)
    axes[0].set_title("target")
    gw.graphs.draw(copy, axes[1], places[order], colours)
    axes[1].set_title("copy, seen through noise")
    for ax, (name, plan) in zip(axes[2:], plans.items(), strict=True):
        # Columns in the order of the true alignment: a perfect plan is the diagonal.
        ax.imshow(plan.matrix[0][:, order], cmap="magma", vmin=0, vmax=1)
        right = int((round_to_permutation(plan.matrix)[0].numpy() == order).sum())
        objective = problem.objective(plan.matrix)[0]
        ax.set_title(f"{name}\nobjective {objective:.3f}, {right}/{NODES} right", fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
        print(f"{name:24s} objective {objective:.4f}   {right}/{NODES} nodes right")
    figure.savefig(folder / "match.png", dpi=110)
    print(f"wrote {folder / 'match.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
