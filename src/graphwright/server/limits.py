"""What one request, and all of them together, may cost."""

from __future__ import annotations

from dataclasses import dataclass


class RefusedError(ValueError):
    """A request that gets no answer; the message is a sentence for the person who made it."""


class TooLongError(RefusedError):
    """A request that was cut off."""


class BusyError(RefusedError):
    """A request that would have waited too long."""


@dataclass(frozen=True)
class ServerLimits:
    """seconds: for one prediction, after which it is cut off. megabytes: of a file.

    loading_seconds: for the worker to start, and for a model to be loaded, which are no part of a prediction.
    upload_seconds: for a request to arrive, and for an answer to be taken. waiting: requests in the queue.
    waiting_seconds: for one of them. connections: open at once. held_megabytes: of all requests that have come or
    are coming. memory: bytes of the worker, a machine's worth of which no input may take.
    """

    seconds: float = 30.0
    megabytes: float = 5.0
    loading_seconds: float = 180.0
    upload_seconds: float = 20.0
    waiting: int = 64
    waiting_seconds: float = 60.0
    connections: int = 500
    held_megabytes: float = 256.0
    memory: int = 6 * 2**30

    def __post_init__(self) -> None:
        for name in ("seconds", "megabytes", "loading_seconds", "upload_seconds", "waiting_seconds"):
            if not 0 < getattr(self, name) < 1e6:
                raise ValueError(f"{name} must be more than 0, got {getattr(self, name)}")

    @property
    def bytes(self) -> int:
        return int(self.megabytes * 2**20)

    @property
    def held_bytes(self) -> int:
        return int(self.held_megabytes * 2**20)

    @property
    def decode_seconds(self) -> float:
        """For a decoder that takes the best found so far: well before the request is cut off."""
        return min(8.0, self.seconds / 3)


BUSY = "Too many people are asking at the moment. Please try again in a few seconds."
TEXT = 200_000
"""Characters that can be pasted."""
ROWS = 50
"""Inputs of one file that can be chosen from."""
