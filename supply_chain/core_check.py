"""What the core does with its own dependencies alone: run where no other package can be imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Import, match, load, predict and evaluate; training asks for its extra in a sentence."""
    import numpy as np
    import torch

    import graphwright as gw
    from graphwright.cli.main import DONE, USAGE
    from graphwright.cli.main import main as command
    from graphwright.graphs import Graph
    from graphwright.metrics import evaluate_graphs

    path, turned = Graph.build(3, [(0, 1), (1, 2)]), Graph.build(3, [(1, 2), (2, 0)])
    assert evaluate_graphs([path], [turned]).isomorphic.all()
    plan = gw.transport.sinkhorn(torch.rand(2, 4, 4), 0.1, iterations=20)
    assert torch.isfinite(plan.matrix).all()
    predicted = gw.load("coloring10").predict(np.zeros((40, 40, 3), np.float32))
    assert isinstance(predicted, gw.PredictedGraph)
    assert command(["evaluate", "coloring10", "--samples", "2"]) == DONE
    assert command(["train", "coloring10-cpu", "--out", "unused"]) == USAGE
    print(f"the core works: Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
