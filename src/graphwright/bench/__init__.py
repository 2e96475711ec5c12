"""Speed and memory, each a ratio against a named peer measured in the same run."""

from collections.abc import Callable, Iterator

from graphwright.bench.data import measure_data
from graphwright.bench.plans import measure_plans
from graphwright.bench.row import Row, table
from graphwright.bench.training import measure_training
from graphwright.settings import load_run


def _cpu_presets() -> Iterator[Row]:
    return measure_training(lambda n: load_run(f"coloring{n}-cpu", []))


BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {
    "plans": measure_plans,
    "training": _cpu_presets,
    "data": measure_data,
}
"""What `graphwright bench NAME` can measure."""

__all__ = ["BENCHMARKS", "Row", "measure_data", "measure_plans", "measure_training", "table"]
