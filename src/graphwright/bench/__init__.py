"""Speed and memory, each a ratio against a named peer measured in the same run."""

from collections.abc import Callable, Iterator

from graphwright.bench.plans import measure_plans
from graphwright.bench.row import Row, table

BENCHMARKS: dict[str, Callable[[], Iterator[Row]]] = {"plans": measure_plans}
"""What `graphwright bench NAME` can measure."""

__all__ = ["BENCHMARKS", "Row", "measure_plans", "table"]
