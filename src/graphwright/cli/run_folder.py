"""The folder of a run: whether it is free, how far it came, how to go on, what is in it."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from graphwright.settings import CONFIG, SettingsError, is_run_folder, settings_file

RUNS = Path("runs")
CONTENTS = (
    (CONFIG, "every setting, explained"),
    ("log.jsonl", "what happened, step by step"),
    ("log.csv", "the same as a table"),
    ("tensorboard", "the same for TensorBoard"),
    ("metrics.json", "the last validation"),
    ("samples.png", "pictures, predictions and truth"),
    ("checkpoints/best.json", "the best model so far"),
    ("checkpoints/last.json", "the last state, from which a run goes on"),
)


def default_folder(source: str) -> Path:
    """Where a run goes if nobody says: runs/NAME, after the preset, the file or the run that it starts from."""
    path = settings_file(source)
    # Every run's file has the same name: the folder's is the telling one.
    of_a_run = is_run_folder(source) or path.name == CONFIG
    return RUNS / (path.parent.resolve().name if of_a_run else Path(source).stem)


def folder_to_resume(source: str) -> Path:
    """A run folder is its own; a preset or a file stands for the folder that it trains in by default."""
    return Path(source) if is_run_folder(source) else default_folder(source)


def last_step(folder: Path) -> int | None:
    """The step of the last checkpoint, if there is one that can be read."""
    try:
        return int(json.loads((folder / "checkpoints" / "last.json").read_text())["facts"]["progress"]["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refuse_used(folder: Path) -> None:
    """A new run needs a folder of its own."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file, not a folder: choose another with --out DIR")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    step = last_step(folder)
    if step is None:
        raise SettingsError(
            f"{folder} is not empty and holds no checkpoint: choose another with --out DIR, or empty it"
        )
    raise SettingsError(
        f"{folder} already holds a run, at step {step:,}: go on with `{resume_command(folder)}`, "
        "or start a new one elsewhere with --out DIR"
    )


def refuse_unstarted(folder: Path) -> int:
    """Only a run with a checkpoint can be resumed; returns its step."""
    if not folder.is_dir():
        raise SettingsError(f"{folder} does not exist, so there is nothing to resume: start it without --resume")
    step = last_step(folder)
    if step is None:
        raise SettingsError(
            f"{folder} holds no checkpoint, so there is nothing to resume: start again with --out DIR"
        )
    return step


def explicit(folder: Path) -> str:
    """A folder's name that cannot be taken for a preset's."""
    return str(folder) if len(folder.parts) > 1 else os.path.join(os.curdir, folder)


def resume_command(folder: Path) -> str:
    """What to type to go on with the run in a folder."""
    return f"graphwright train {shlex.quote(explicit(folder))} --resume"


def contents(folder: Path) -> list[str]:
    """A line for everything that a run left in its folder."""
    there = [(str(folder / name), meaning) for name, meaning in CONTENTS if (folder / name).exists()]
    width = max((len(path) for path, _ in there), default=0)
    return [f"  {path:<{width}}  {meaning}" for path, meaning in there]
