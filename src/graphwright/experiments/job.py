"""One piece of work, and the name by which its result is found again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from graphwright.settings import Run

FORMAT = 1
"""Of what a job leaves behind: a change needs another number, lest an old result be taken."""
WITHOUT_EFFECT = {"train": {"workers", "log_every", "checkpoint_minutes"}}
"""Settings that do not change a result, or no more than another day's clock would."""


@dataclass(frozen=True)
class Job:
    """Train a run, or ask an untrained method, and evaluate on the first `samples` of the test split.

    baseline: the untrained method's name. references: how many training samples it may look at; None: its own
    default. The run then says which task it is.
    """

    run: Run
    samples: int
    baseline: str | None = None
    references: int | None = None

    def identity(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON; of a run without training only its task."""
        if self.baseline is None:
            settings = self.run.model_dump(mode="json", exclude=WITHOUT_EFFECT)
            return {"format": FORMAT, "settings": settings, "samples": self.samples}
        task = self.run.task.model_dump(mode="json")
        asked = {"baseline": self.baseline, "references": self.references}
        return {"format": FORMAT, "task": task, "samples": self.samples, **asked}

    @property
    def key(self) -> str:
        """The first 16 digits of the SHA-256 of `identity`."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:16]
