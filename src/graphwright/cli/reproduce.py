"""`graphwright reproduce`: a table or figure of the paper, at a chosen scale."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from graphwright.cli.shared import DONE, INTERRUPTED, SOME_FAILED, keep_freed_memory
from graphwright.training.processes import Interrupts

if TYPE_CHECKING:
    from graphwright.experiments import (
        Configuration,
        Engine,
        Estimate,
        Grid,
        JobProgress,
        Reproduced,
        Scale,
        Store,
    )

SCALES = ("smoke", "cpu", "paper")
PAGES = ("examples", "propositions")
"""They have no runs of their own, only a page: examples draw those of table1, or shipped models."""
NAMES = ("table1", "table2", "frontier", "scaling", "comparison", "tokens", "ablations", *PAGES)
OUT = Path("runs/reproduce")
WIDE = 200
"""Columns where there is no terminal: a file or a pipe has no edge to wrap at."""


def declare(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "graphwright reproduce NAME... --scale smoke|cpu|paper [--seeds K] [--column NAME] "
        "[--engine local|ray] [--jobs J] [--records DIR] [--dry-run]\n"
        "       graphwright reproduce [NAME...] --status [--scale SCALE]"
    )
    parser.description = (
        "Train and evaluate everything that a table or figure of the paper needs, and write it beside "
        "the paper's own figures: README.md, table.csv, figure.png, figure.svg and a record of every run. What "
        "was done before is not done again; Ctrl-C saves all runs, and the same command goes on.\n\n"
        "  graphwright reproduce table1 --scale smoke           (minutes: shows that everything runs)\n"
        "  graphwright reproduce table1 table2 --scale cpu --dry-run\n"
        "  graphwright reproduce comparison --scale cpu --jobs 2\n"
        "  graphwright reproduce --status"
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.allow_abbrev = False
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(NAMES)}, or all")
    parser.add_argument(
        "--scale", choices=SCALES, help="smoke: minutes; cpu: hours of two cores; paper: its presets"
    )
    parser.add_argument("--seeds", type=int, metavar="K", help="runs of every configuration (default: the grid's)")
    parser.add_argument(
        "--column",
        metavar="NAME",
        action="append",
        default=[],
        help='only the runs of a column, such as "Coloring 10"; may be given again (default: of all)',
    )
    parser.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="processes of this machine, or a Ray cluster (RAY_ADDRESS, else a local one)",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="J", help="runs at a time (default: as many as the cores have threads for)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", default=OUT, help="the results (default %(default)s)")
    parser.add_argument(
        "--records",
        type=Path,
        metavar="DIR",
        action="append",
        default=[],
        help="take finished runs over from the records under a folder, such as docs/results; may be given again",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the grid and the hours that it will take, and stop"
    )
    parser.add_argument("--status", action="store_true", help="print what is done, running, missing, and stop")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reproduce, or say how far it is or how long it will take."""
    for name in ("seeds", "jobs"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    unknown = [name for name in arguments.names if name not in (*NAMES, "all")]
    if unknown:
        raise ValueError(f"there is no experiment {unknown[0]!r}: they are {', '.join(NAMES)}, or all")
    _check_columns(arguments)
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDE
    _take_over(arguments, console)
    if arguments.status:
        return _print_status(arguments, console)
    if not arguments.names:
        raise ValueError(f"name what to reproduce: {', '.join(NAMES)}, or all; or ask for --status")
    if arguments.scale is None:
        raise ValueError(f"give --scale: {', '.join(SCALES)}")
    if "propositions" in arguments.names and not arguments.dry_run:
        from graphwright.experiments import check_propositions

        check_propositions()  # better before the hours of what else is named
    if arguments.dry_run:
        return _print_estimates(arguments, console)
    return _reproduce(arguments, console)


def _check_columns(arguments: argparse.Namespace) -> None:
    """Refuse a column that nothing named has."""
    if not arguments.column:
        return
    from graphwright.experiments import read_grid

    grids = [read_grid(name) for name in _names(arguments) if name != "propositions"]
    known = list(dict.fromkeys(column.name for grid in grids for column in grid.columns))
    for name in arguments.column:
        if name not in known:
            raise ValueError(f"there is no column {name!r}: they are {', '.join(known)}")


def _take_over(arguments: argparse.Namespace, console: Console) -> None:
    from graphwright.experiments import store_of, take_over

    for folder in arguments.records:
        taken = take_over(folder, store_of(arguments.out))
        console.print(f"{taken} finished runs taken over from {folder}", markup=False)


def _names(arguments: argparse.Namespace) -> list[str]:
    given: list[str] = arguments.names
    return list(NAMES) if "all" in given or not given else list(dict.fromkeys(given))


def _reproduce(arguments: argparse.Namespace, console: Console) -> int:
    from graphwright.experiments import Scale, check_propositions, write_propositions

    scale = Scale(arguments.scale)
    failed: list[str] = []
    with Interrupts() as interrupts:
        for name in _names(arguments):
            if name == "propositions":
                try:
                    check_propositions()
                except FileNotFoundError as error:  # one of all: the others do not need it
                    failed.append(f"{name}: {error}")
                    continue
                page = write_propositions(arguments.out, scale)
                folder, lines, interrupted = page.folder, page.broken, False
            else:
                result = _reproduce_grid(name, scale, arguments, console, interrupts)
                folder, lines, interrupted = result.folder, result.unfinished, result.interrupted
            # An interrupt while a page is written or drawn has stopped no run.
            if interrupted or interrupts.pending:
                print(
                    f"interrupted; what was done is in {arguments.out}. Give the same command again to go on.",
                    file=sys.stderr,
                )
                return INTERRUPTED
            failed += [f"{name}: {line}" for line in lines]
            console.print(f"wrote {folder / 'README.md'}")
    for line in failed:
        print(line, file=sys.stderr)
    return SOME_FAILED if failed else DONE


def _reproduce_grid(
    name: str, scale: Scale, arguments: argparse.Namespace, console: Console, interrupts: Interrupts
) -> Reproduced:
    from graphwright.experiments import read_grid, reproduce, write_examples

    grid = read_grid(name)
    make = write_examples if name == "examples" else reproduce
    with closing(_engine(arguments, grid, scale)) as engine:
        return make(
            grid,
            scale,
            arguments.out,
            engine,
            seeds=arguments.seeds,
            columns=arguments.column,
            stopped=lambda: interrupts.pending,
            report=lambda progress: _show(console, name, progress),
        )


def _show(console: Console, name: str, progress: JobProgress) -> None:
    outcome = progress.outcome
    reason = f": {outcome.reason}" if outcome.reason else ""
    console.print(f"{name} {progress.at}/{progress.of}  {progress.label}: {outcome.state}{reason}", markup=False)


def _jobs(arguments: argparse.Namespace, grid: Grid, scale: Scale) -> tuple[int, int]:
    """Runs at a time, and the torch threads of each that leaves their number open."""
    from graphwright.experiments import expand

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = max(job.run.train.threads for each in expand(grid, scale, 1) for job in each.jobs)
    # A run that leaves its threads open wants the whole machine.
    count: int = arguments.jobs or (max(1, cores // threads) if threads else 1)
    return count, threads or max(1, cores // count)


def _engine(arguments: argparse.Namespace, grid: Grid, scale: Scale) -> Engine:
    from graphwright.experiments import InProcess, Processes, RayCluster

    count, threads = _jobs(arguments, grid, scale)
    if arguments.engine == "ray":
        return RayCluster(count, threads, keep_freed_memory)
    if count == 1:
        return InProcess(threads)
    return Processes(count, threads, keep_freed_memory, preload=["lightning.fabric"])


def _print_status(arguments: argparse.Namespace, console: Console) -> int:
    """Counts and page of every experiment and scale; of one experiment at one scale, every job."""
    from graphwright.experiments import Scale, State, job_list, page_written, read_grid, status, store_of

    store, names = store_of(arguments.out), _names(arguments)
    scales = [Scale(arguments.scale)] if arguments.scale else list(Scale)
    table = Table(title=f"in {arguments.out}", title_justify="left")
    for heading in ("experiment", "scale", "configurations", "jobs", *State, "page"):
        table.add_column(str(heading), justify="left" if heading in ("experiment", "scale", "page") else "right")
    unclaimed = store.finished()
    for name in names:
        for scale in scales:
            counts = [""] * (2 + len(State))
            if name != "propositions":
                progress = status(read_grid(name), scale, store, arguments.seeds)
                unclaimed -= progress.keys
                if name not in PAGES:
                    numbers = (
                        progress.configurations,
                        len(progress.keys),
                        *(progress.counts[state] for state in State),
                    )
                    counts = [str(number or "") for number in numbers]
            page = "written" if page_written(arguments.out, name, scale) else "not written"
            table.add_row(name, str(scale), *counts, page)
    console.print(table)
    console.print(f"{len(unclaimed)} finished runs in {store.root} belong to none of these.", markup=False)
    if len(names) == len(scales) == 1 and names[0] not in PAGES:
        detail = Table()
        for heading in ("column", "method", "seed", "state", "folder"):
            detail.add_column(heading)
        for job in job_list(read_grid(names[0]), scales[0], store, arguments.seeds):
            state = f"{job.state}: {job.reason}" if job.reason else str(job.state)
            seed = "" if job.seed is None else str(job.seed)
            detail.add_row(job.column, job.method, seed, escape(state), str(store.root / job.key))
        console.print(detail)
    return DONE


def _to_run(name: str, scale: Scale, store: Store, seeds: int | None) -> list[Configuration]:
    """What an experiment's page is made from."""
    from graphwright.experiments import expand, read_grid, runs_wanted

    if name == "propositions":
        return []
    grid = read_grid(name)
    return runs_wanted(grid, scale, store, seeds) if name == "examples" else expand(grid, scale, seeds)


def _print_estimates(arguments: argparse.Namespace, console: Console) -> int:
    """The grid, what a step of every configuration takes here, and the hours."""
    from graphwright.experiments import Scale, estimates, measured_cost, read_grid, store_of, wall_seconds

    scale, store = Scale(arguments.scale), store_of(arguments.out)
    names = _names(arguments)
    configurations: list[Configuration] = []
    owners: list[str] = []
    count, threads = 1, 1
    for name in names:
        own = _to_run(name, scale, store, arguments.seeds)
        if arguments.column:
            own = [each for each in own if each.column in arguments.column]
        if not own:
            console.print(f"{name} at scale {scale}: a page without runs of its own")
            continue
        configurations += own
        owners += [name] * len(own)
        count, threads = _jobs(arguments, read_grid(name), scale)
    table = Table(title=f"{', '.join(dict.fromkeys(owners))} at scale {scale}", title_justify="left")
    for heading in ("experiment", "column", "method"):
        table.add_column(heading)
    for heading in ("jobs left", "ms per sample", "steps", "minutes each"):
        table.add_column(heading, justify="right")
    measured: list[Estimate] = []
    with console.status("measuring what a step takes") as shown:
        cost_of = lambda job: measured_cost(job, threads, arguments.out)  # noqa: E731
        for owner, each in zip(owners, estimates(configurations, store, cost_of), strict=True):
            measured.append(each)
            shown.update(f"measuring what a step takes: {len(measured)} of {len(owners)}")
            row = (owner, each.configuration.column, each.configuration.method)
            speed = "" if each.milliseconds is None else f"{each.milliseconds:.3g}"
            steps = "" if each.steps is None else f"{each.steps:,}"
            table.add_row(*row, str(each.missing), speed, steps, f"{each.seconds / 60:.1f}")
    if measured:
        console.print(table)
    missing, work = sum(each.missing for each in measured), sum(each.remaining for each in measured)
    console.print(
        f"{len(measured)} configurations, {missing} jobs left: {work / 3600:.1f} hours of work, "
        f"{wall_seconds(measured, count) / 3600:.1f} hours with {count} at a time. "
        "Runs that experiments share count once."
    )
    return DONE
