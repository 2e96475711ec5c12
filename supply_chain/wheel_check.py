"""Every shipped model predicts an example of its own task: run in an environment that has the wheel."""

from __future__ import annotations

from pathlib import Path

import graphwright
from graphwright.inference.model import load_model, shipped_names
from graphwright.tasks.page import Wish


def main() -> None:
    """One line a model."""
    where = Path(graphwright.__file__).parent
    if "site-packages" not in where.parts:
        raise SystemExit(f"{where} is not an installed wheel")
    names = shipped_names()
    for name in names:
        model = load_model(name)
        case = model.task.page.example(0, Wish(None, None))
        (predicted,) = model.predict(case.given)
        print(f"{name}: a graph of {predicted.graph.size} nodes")
    print(f"{len(names)} of {len(names)} shipped models predict from {where}")


if __name__ == "__main__":
    main()
