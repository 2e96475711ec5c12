"""Wall-clock timing that the noise of a shared machine disturbs least."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import torch


def best_milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Fastest of `repeats` runs after one to warm up: what the code costs when nothing else runs."""
    call()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return 1000 * min(times)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run torch on `count` threads, then on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
