"""`graphwright train`: a preset, settings, an earlier run's or data in, a run's folder out."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from rich.console import Console

from graphwright import training
from graphwright.cli.shared import DONE, INTERRUPTED, is_first_process, process_rank, take_overrides
from graphwright.files import DRAFT, HOLDER, LOCK, WriteError, holder_of, is_locked
from graphwright.settings import (
    BUDGET,
    CONFIG,
    Option,
    Override,
    Run,
    SettingsError,
    is_run_folder,
    load_run,
    presets,
    sections,
    settings_file,
)
from graphwright.training.fit import chosen
from graphwright.training.log import SPIKES, Display, read_log, validation_in_words
from graphwright.training.processes import cores, device_of, in_this_process, on_cores

RUNS = Path("runs")
CHECKPOINTS = "checkpoints"
CONTENTS = (
    (CONFIG, "every setting, explained"),
    ("log.jsonl", "what happened, step by step"),
    ("log.csv", "the same as a table"),
    (SPIKES, "steps whose loss leapt, and their samples: see `graphwright debug batch`"),
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
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def is_unsaved(folder: Path) -> bool:
    """Whether a run was killed here before its first checkpoint, and nothing else is here: it can start over."""
    checkpoints = folder / CHECKPOINTS
    if not (checkpoints / LOCK).exists() or read_log(folder / "log.jsonl"):
        return False
    made = {CONFIG, "log.jsonl", "log.csv", "tensorboard", CHECKPOINTS, LOCK, HOLDER}
    # The tensors of a checkpoint come before its note.
    early = checkpoints.glob("last-*.safetensors")
    rest = {*folder.iterdir(), *checkpoints.iterdir()} - {*early}
    return all(path.name in made or path.name.endswith(DRAFT) for path in rest)


def refuse_busy(folder: Path) -> None:
    """One run at a time."""
    if is_locked(folder / CHECKPOINTS):
        raise training.RunBusyError(holder_of(folder / CHECKPOINTS), folder)


def refuse_used(folder: Path) -> None:
    """A new run needs a folder of its own."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file, not a folder: choose another with --out DIR")
    if not folder.is_dir() or not any(folder.iterdir()) or is_unsaved(folder):
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
            f"{folder} holds no checkpoint, so there is nothing to resume: start again "
            + ("without --resume" if is_unsaved(folder) else "with --out DIR")
        )
    return step


def explicit_path(folder: Path) -> str:
    """A folder's name that cannot be taken for a preset's."""
    return str(folder) if len(folder.parts) > 1 else os.path.join(os.curdir, folder)


def resume_command(folder: Path) -> str:
    """What to type to go on with the run in a folder."""
    return f"graphwright train {shlex.quote(explicit_path(folder))} --resume"


def folder_contents(folder: Path) -> list[str]:
    """A line for everything that a run left in its folder."""
    there = [(str(folder / name), meaning) for name, meaning in CONTENTS if (folder / name).exists()]
    width = max((len(path) for path, _ in there), default=0)
    return [f"  {path:<{width}}  {meaning}" for path, meaning in there]


OWN = ("--out", "--resume", "--list", "--dry-run", "--help")
CHANGEABLE = (
    *BUDGET,
    "train.patience",
    "train.log_every",
    "train.validate_every",
    "train.validation_samples",
    "train.checkpoint_minutes",
    "train.threads",
    "train.workers",
)
"""What a resumed run may do differently: nothing that would make its past another run's."""
COLUMN = 33


def declare(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "graphwright train PRESET|CONFIG|DATAFILE [--out DIR] [--resume] [--dry-run] [--section.field VALUE ...]\n"
        "       graphwright train --list"
    )
    parser.description = (
        "Train a predictor. Ctrl-C saves the state and says how to go on (exit code 3).\n\n"
        "  graphwright train coloring10\n"
        "  graphwright train coloring10 --train.minutes 30 --model.width 128 --out runs/wide\n"
        "  graphwright train my.yaml          (sections as below; `preset: coloring10` starts from a preset)\n"
        "  graphwright train my.csv           (molecules; as fingerprint2molecule-cpu, on these data)\n"
        "  graphwright train pairs.parquet --minutes 20    (your own inputs and graphs; train.minutes)\n"
        "  graphwright train coloring10 --resume"
    )
    parser.epilog = settings_help(min(shutil.get_terminal_size().columns, 115))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.allow_abbrev = False
    parser.add_argument(
        "source",
        metavar="PRESET|CONFIG|DATAFILE",
        nargs="?",
        help="a preset's name, a YAML file, an earlier run's folder, or data: SMILES (csv, tsv, parquet, smi), "
        "a folder of `data prepare`, spectra with structures (mgf, msp, MassSpecGym's tsv, parquet), or your own "
        "table of inputs and graphs (parquet, jsonl, json, csv, tsv)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default runs/NAME)")
    parser.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint, with the settings in the folder"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print parameters, memory and hours per epoch on this machine, from a few small steps, and stop",
    )
    parser.add_argument("--list", action="store_true", help="print the presets and stop")
    parser.set_defaults(run=run)


def split(words: Sequence[str]) -> tuple[list[str], list[Override]]:
    """The command line without the settings in it, and these, where it is training's."""
    return take_overrides(words, OWN) if list(words[:1]) == ["train"] else (list(words), [])


@dataclass(frozen=True)
class PlannedRun:
    """What is to be trained where, and the step it starts from; None for a new run."""

    run: Run
    folder: Path
    first: int | None
    chosen: tuple[str, ...] = ()
    """What was chosen from the data and why, for the person to read."""


def run(arguments: argparse.Namespace) -> int:
    """Train, and say where everything is."""
    if arguments.list:
        print(preset_list())
        return DONE
    if arguments.source is None:
        raise SettingsError(
            "name a preset, a YAML file or a run's folder; `graphwright train --list` shows the presets"
        )
    if arguments.dry_run:
        print("\n".join(dry_run(chosen(arguments.source, arguments.overrides).run)))
        return DONE
    prepare = _resumed if arguments.resume else _fresh
    plan = prepare(arguments.source, arguments.out, arguments.overrides)
    if arguments.from_shell:
        plan = replace(plan, run=on_cores(plan.run, cores()))
    console = Console(quiet=not is_first_process(), highlight=False, soft_wrap=True)
    if plan.first is not None:
        console.print(f"going on from step {plan.first:,} of {plan.folder}, with the settings there")
    if plan.chosen:
        console.print("\n".join(plan.chosen), markup=False)
    try:
        trained = training.train(plan.run, plan.folder, resume=arguments.resume, display=Display(console))
    except KeyboardInterrupt:
        if is_first_process():
            print(_interrupted(plan.folder), file=sys.stderr)
        return INTERRUPTED
    except training.LostProcessError as error:
        # The first process may be the one that is gone.
        if process_rank() <= 1:
            print(f"graphwright: {error}. {_saved(plan.folder)}", file=sys.stderr)
        return INTERRUPTED
    except WriteError as error:
        step = last_step(plan.folder)
        again = "" if step is None else f"; step {step:,} is saved: {resume_command(plan.folder)}"
        raise WriteError(f"{error}{again}") from error
    except training.DivergenceError as error:
        # Settings, not a fault of ours: no request to report it.
        raise SettingsError(str(error)) from error
    if is_first_process():
        _draw_samples(plan.folder, console)
    console.print("\n".join(_summary(plan, trained)))
    return DONE


def dry_run(run: Run) -> list[str]:
    """What a run will take on this machine, in lines for a person."""
    import torch

    from graphwright.experiments.estimate import measure_cost, training_time
    from graphwright.experiments.job import Job
    from graphwright.inference.memory_limit import free_memory
    from graphwright.training.footprint import footprint

    run = in_this_process(on_cores(run, cores()))
    train, free, need = run.train, free_memory(device_of(run)), footprint(run)
    on_gpu = device_of(run).type == "cuda"
    devices = int(train.devices) if train.devices.isdecimal() else torch.cuda.device_count() if on_gpu else 1
    if free is not None and not on_gpu:
        free //= devices  # processes of one machine share its memory; a GPU has its own
    each = "" if devices == 1 else f" on each of {devices} devices"
    own = -(-train.batch_size // devices)
    at_a_time = -(-own // train.accumulate)
    lines = [
        f"parameters   predictor {need.predictor:,}, matcher {need.matcher:,}",
        f"memory       {_gigabytes(need.fixed)} for weights and optimiser, {need.per_sample / 1e6:.1f} MB for "
        f"every sample at a time: about {_gigabytes(need.bytes(at_a_time))} for {at_a_time:,} of a batch of "
        f"{train.batch_size:,}{each}" + ("" if free is None else f"; {_gigabytes(free)} are free"),
    ]
    parts = 1 if free is None else need.parts(own, free)
    if parts is None:
        lines.append("             one sample alone is too much for this machine")
    elif parts > train.accumulate:
        lines.append(f"             it does not fit at once: give --train.accumulate {parts}")
    cost = measure_cost(run)
    steps, seconds = training_time(Job(run, samples=1), cost)
    lines += [
        f"time         {1000 * cost.training:.3g} ms per sample here, {cost.training * cost.epoch / 3600:.3g} "
        f"hours per epoch of {cost.epoch:,} samples",
        f"in all       {steps:,} steps, {steps * train.batch_size:,} samples: {seconds / 3600:.3g} hours here"
        + ("" if devices == 1 else f", by one device; {devices} share them"),
    ]
    return lines


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.2f} GB"


def _draw_samples(folder: Path, console: Console) -> None:
    """samples.png; without it the run is still complete."""
    try:
        from graphwright.report import write_samples

        write_samples(folder)
    except (ImportError, OSError, ValueError) as error:
        console.print(f"no samples.png: {error}")


def _fresh(source: str, out: Path | None, overrides: Sequence[Override]) -> PlannedRun:
    load_run(source, overrides)  # errors in the settings come before those about folders
    folder = out or default_folder(source)
    if is_first_process():
        refuse_busy(folder)
    refuse_used(folder)
    plan = chosen(source, overrides)
    return PlannedRun(plan.run, folder, None, plan.lines)


def _resumed(source: str, out: Path | None, overrides: Sequence[Override]) -> PlannedRun:
    folder = out or folder_to_resume(source)
    if is_first_process():
        refuse_busy(folder)
    first = refuse_unstarted(folder)
    for override in overrides:
        if override.option.key not in CHANGEABLE:
            raise SettingsError(
                f"{override.shown} cannot change when a run is resumed, only {', '.join(CHANGEABLE)} can; "
                "for anything else start a new run with --out DIR"
            )
    run = load_run(explicit_path(folder), overrides)
    _refuse_other_task(source, folder, run)
    return PlannedRun(run, folder, first)


def _refuse_other_task(source: str, folder: Path, run: Run) -> None:
    """Where the source names a task, it must be that of the folder; what it leaves to the data may be anything."""
    try:
        named = load_run(source).task.model_dump(mode="json")
    except (SettingsError, OSError):
        return  # the settings are the folder's, whatever became of the source
    there = run.task.model_dump(mode="json")
    differing = [
        f"task.{name} is {there.get(name)}, not {value}"
        for name, value in named.items()
        if value not in (None, [], "", there.get(name))
    ]
    if differing:
        raise SettingsError(
            f"{folder} holds a run of another task than {source}: {'; '.join(differing)}. To go on with it: "
            f"`{resume_command(folder)}`"
        )


def _interrupted(folder: Path) -> str:
    if last_step(folder) is None:
        return "interrupted before anything was saved: give the same command again"
    return f"interrupted; {_saved(folder)}"


def _saved(folder: Path) -> str:
    return f"step {last_step(folder) or 0:,} is saved. Go on with:\n  {resume_command(folder)}"


def _summary(plan: PlannedRun, trained: training.Trained) -> list[str]:
    progress, metrics = trained.progress, trained.metrics
    if progress.step == plan.first:
        extend = f"{resume_command(plan.folder)} --train.minutes {progress.seconds / 60 + 30:.0f}"
        return [
            f"nothing was left to do: this run is complete. Give it half an hour more, for instance:\n  {extend}"
        ]
    lines = [f"{progress.step:,} steps in {progress.seconds / 60:.1f} minutes"]
    if metrics:
        told = validation_in_words(metrics, plan.run.train.metric)
        lines[0] += f"; last validation: {told} ({metrics['samples']} samples)"
    if trained.unusable:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in trained.unusable.items())
        lines.append(
            f"{sum(trained.unusable.values()):,} unusable rows were left out: {counts}; "
            "`graphwright data inspect` lists them with --rejected CSV"
        )
    return [
        *lines,
        *folder_contents(plan.folder),
        f"next: graphwright evaluate {explicit_path(plan.folder)}",
    ]


def preset_list() -> str:
    every = presets()
    width = max(len(preset.name) for preset in every)
    return "\n".join(f"{preset.name:<{width}}  {preset.summary}" for preset in every)


def settings_help(width: int) -> str:
    """Presets, then all sections with their settings, wrapped to `width`."""
    names = ", ".join(preset.name for preset in presets())
    parts = [
        _paragraph(
            f"presets (--list says what each is; without its ending a name means the -cpu one): {names}", width
        ),
        _paragraph(
            "settings, each given as --section.field VALUE or --section.field=VALUE; a preset sets some of them, "
            "the others have these defaults:",
            width,
        ),
    ]
    for section in sections():
        lines = [_paragraph(f"{section.name}: {section.meaning}", width)]
        lines += [_entry(option, width) for option in section.options]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def shown(value: object) -> str:
    """A value as it would be typed."""
    if isinstance(value, Enum):
        return str(value.value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _entry(option: Option, width: int) -> str:
    allowed = option.allowed[0].upper() + option.allowed[1:]
    words = f"{option.meaning} {allowed}; default {shown(option.default)}."
    lines = textwrap.wrap(words, max(width - COLUMN, 30), break_on_hyphens=False)
    name = f"  --{option.key}"
    if len(name) >= COLUMN:
        lines.insert(0, "")
    indented = f"\n{' ' * COLUMN}".join(lines)
    return f"{name:<{COLUMN}}{indented}".rstrip()


def _paragraph(words: str, width: int) -> str:
    return textwrap.fill(words, width, break_on_hyphens=False)
