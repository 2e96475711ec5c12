"""Wall-clock timing that the noise of a shared machine disturbs least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import TypeVar

Result = TypeVar("Result")

LEAST_SECONDS = 0.02
"""A round shorter than this is repeated until it is not: the clock and the scheduler would be most of it."""


def median_milliseconds(call: Callable[[], object], repeats: int) -> float:
    """Median of `repeats` rounds after one call to warm up."""
    return interleaved_milliseconds([call], repeats)[0]


def interleaved_milliseconds(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The median of every call, round by round in turn, so that a slow minute of the machine slows them all."""
    for call in calls:
        call()
    times = [[seconds(call)] for call in calls]
    counts = [max(1, round(LEAST_SECONDS / max(first, 1e-9))) for (first,) in times]
    for own, count in zip(times, counts, strict=True):
        if count > 1:  # too short to count as a round
            own.clear()
    for _ in range(repeats):
        for call, count, own in zip(calls, counts, times, strict=True):
            if len(own) < repeats:
                own.append(seconds(call, count) / count)
    return [1000 * median(own) for own in times]


def seconds(call: Callable[[], object], count: int = 1) -> float:
    """What `count` calls in a row take."""
    start = perf_counter()
    for _ in range(count):
        call()
    return perf_counter() - start


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What one call returns, and the seconds that it takes."""
    start = perf_counter()
    result = call()
    return result, perf_counter() - start
