"""A training process that kills itself: `killed_run.py FOLDER SETTINGS_JSON STEP MOMENT`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from graphwright.inference import checkpoint as checkpoints
from graphwright.settings import Run
from graphwright.training import train

AFTER, WITHIN = "after", "within"
"""Right after the checkpoint of a step, or within that of the next: its tensors are there, its note is not."""


def kill_at(step: int, moment: str) -> None:
    """Let the checkpoint of a step be the last thing that this process gets done."""
    save, replace = checkpoints.save, os.replace

    def save_and_die(path: Path, checkpoint: checkpoints.Checkpoint) -> None:
        now = path.name == "last" and checkpoint.facts["progress"]["step"] == step + (moment == WITHIN)
        if now and moment == WITHIN:
            os.replace = replace_tensors_and_die
        save(path, checkpoint)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)

    def replace_tensors_and_die(source: Path, target: Path) -> None:
        if target.suffix == ".json":
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    checkpoints.save = save_and_die


if __name__ == "__main__":
    folder, settings, step, moment = sys.argv[1:]
    kill_at(int(step), moment)
    train(Run.model_validate_json(settings), Path(folder))
