"""What an engine is asked: any gives the same results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Ticket = TypeVar("Ticket")
Stopped = Callable[[], bool]
"""Whether somebody has asked to stop."""
AHEAD = 4
"""Items per worker that are taken ahead, so that one slow item does not leave the other workers idle."""
LOOK_EVERY = 0.5
"""Seconds between looks at whether somebody has asked to stop."""


@dataclass(frozen=True)
class Lost:
    """Instead of a result: the worker was ended, and why. interrupted: because it was asked to stop."""

    reason: str
    interrupted: bool = False


class Engine(Protocol):
    """Calls functions of one argument; these, their arguments and results must be picklable.

    threads: how many a task may use for itself; 0: it is not said.
    """

    threads: int

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results, in order; only so many are taken ahead as keep all workers busy.

        A worker that dies may take with it other items than the one that it died of.
        """

    def alone(self, work: Callable[[Item], Result], item: Item) -> Result | Lost:
        """The result of one item, in a worker that no other item depends on."""

    def tasks(
        self, work: Callable[[Item], Result], items: Sequence[Item], stopped: Stopped
    ) -> Iterator[tuple[Item, Result | Lost]]:
        """Items and their results as they come, for work that takes long; a worker takes only its item with it.

        Once `stopped`, KeyboardInterrupt is raised in the work that is under way, which may save its state and
        must raise it again, and nothing new is begun. Other exceptions are the work's own to handle.
        """

    def close(self) -> None:
        """Let go of all workers at once."""


def ordered(
    items: Iterable[Item],
    ahead: int,
    submit: Callable[[Item], Ticket],
    collect: Callable[[Ticket], Result],
) -> Iterator[tuple[Item, Result]]:
    """Results in order, with at most `ahead` items submitted and not yet collected."""
    waiting: deque[tuple[Item, Ticket]] = deque()
    for item in items:
        waiting.append((item, submit(item)))
        if len(waiting) >= ahead:
            first, ticket = waiting.popleft()
            yield first, collect(ticket)
    while waiting:
        first, ticket = waiting.popleft()
        yield first, collect(ticket)


def nothing() -> None:
    """What a worker does first if nobody says otherwise."""
