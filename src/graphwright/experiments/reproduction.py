"""An experiment from its grid to its page, and how far it is: what is missing is done, then all is written."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Protocol

from graphwright.experiments.archive import pack_records
from graphwright.experiments.figures import draw_grid, write_figure
from graphwright.experiments.grid import Configuration, Grid, Scale, expand
from graphwright.experiments.job import FAILURE, Job, State, Store
from graphwright.experiments.table import Measured, markdown, measure, rows_of, write_csv
from graphwright.experiments.work import Outcome, run_jobs
from graphwright.files import write_json, write_text
from graphwright.parallel import Engine, Stopped

PAGE = "README.md"
PROPOSITIONS = Path(__file__).resolve().parents[3] / "figures" / "propositions.py"
RUNS = "runs"
"""The folder of all jobs' folders under that of the results."""


@dataclass(frozen=True)
class Reproduced:
    """Where the page is, how what was asked for came out, and whether somebody stopped it before its end."""

    folder: Path
    measured: list[Measured]
    interrupted: bool

    @property
    def unfinished(self) -> list[str]:
        """A line for every job that is not done."""
        return [
            f"{each.configuration.column}, {each.configuration.method}: {excuse}"
            for each in self.measured
            for excuse in each.missing
        ]


def store_of(out: Path) -> Store:
    """The jobs under a folder of results, whatever experiment or scale they belong to."""
    return Store(out / RUNS)


def page_folder(out: Path, name: str, scale: Scale) -> Path:
    """Where the page of an experiment goes."""
    return out / f"{name}-{scale}"


def page_written(out: Path, name: str, scale: Scale) -> bool:
    """Whether an experiment has a page, be it of all jobs or of some."""
    return (page_folder(out, name, scale) / PAGE).is_file()


def jobs_to_do(configurations: Sequence[Configuration], store: Store) -> list[Job]:
    """Jobs without a record, each once, a seed of every configuration before the next seed."""
    most = max((len(configuration.jobs) for configuration in configurations), default=0)
    ordered = [
        configuration.jobs[seed]
        for seed in range(most)
        for configuration in configurations
        if seed < len(configuration.jobs)
    ]
    unique = {job.key: job for job in ordered}
    return [job for job in unique.values() if store.state(job) is not State.DONE]


@dataclass(frozen=True)
class JobProgress:
    """A job that has come to an end: which of how many, what it is in the grid, how it ended."""

    at: int
    of: int
    label: str
    outcome: Outcome


Report = Callable[[JobProgress], None]


def _unheard(progress: JobProgress) -> None:
    """Progress that nobody watches."""


def work_off(
    configurations: Sequence[Configuration], store: Store, engine: Engine, stopped: Stopped, report: Report
) -> bool:
    """Do every job that has no record yet; the result says whether that was interrupted."""
    jobs = jobs_to_do(configurations, store)
    labels = {
        job.key: f"{each.column}, {each.method}" + (f", seed {job.run.train.seed}" if each.trained else "")
        for each in configurations
        for job in each.jobs
    }
    interrupted = False
    for ended, outcome in enumerate(run_jobs(engine, jobs, store, stopped), 1):
        if outcome.state is State.FAILED and store.failure(outcome.job) is None:
            # Its process died before it could say why.
            store.folder(outcome.job).mkdir(parents=True, exist_ok=True)
            write_json(store.folder(outcome.job) / FAILURE, {"error": outcome.reason})
        interrupted |= outcome.state is State.INTERRUPTED
        report(JobProgress(ended, len(jobs), labels[outcome.job.key], outcome))
    # Jobs that were never begun have no outcome.
    return interrupted or stopped()


def reproduce(
    grid: Grid,
    scale: Scale,
    out: Path,
    engine: Engine,
    *,
    seeds: int | None = None,
    columns: Sequence[str] = (),
    stopped: Stopped = lambda: False,
    report: Report = _unheard,
) -> Reproduced:
    """Do every job that has no record yet, then write table, CSV, figure and records, of what there is.

    columns: of which jobs are done, all if none is named; the page has every column all the same.
    """
    store = store_of(out)
    configurations = expand(grid, scale, seeds)
    wanted = [each for each in configurations if not columns or each.column in columns]
    interrupted = work_off(wanted, store, engine, stopped, report)
    measured = [measure(configuration, store, grid.further_metrics) for configuration in configurations]
    folder = page_folder(out, grid.name, scale)
    write_page(grid, scale, measured, store, folder)
    return Reproduced(folder, [each for each in measured if each.configuration in wanted], interrupted)


def write_page(grid: Grid, scale: Scale, measured: Sequence[Measured], store: Store, folder: Path) -> None:
    """README.md, table.csv, figure.png, figure.svg and records/, self-contained: the folder can be moved."""
    pack_records([key for each in measured for key in each.keys], store, folder)
    rows = rows_of(grid, measured)
    write_csv(folder / "table.csv", grid, rows)
    write_figure(folder, draw_grid(grid, scale, rows))
    write_text(folder / PAGE, markdown(grid, scale, rows))


@dataclass(frozen=True)
class Status:
    """Jobs of an experiment at a scale by their state, and the keys of all of them."""

    name: str
    scale: Scale
    configurations: int
    keys: frozenset[str]
    counts: dict[State, int]


@dataclass(frozen=True)
class JobStatus:
    """One job: where it is in the grid, how far it is, its folder, and why it failed."""

    column: str
    method: str
    seed: int | None
    state: State
    key: str
    reason: str


def status(grid: Grid, scale: Scale, store: Store, seeds: int | None = None) -> Status:
    """How many jobs are done, running, interrupted, failed, missing."""
    configurations = expand(grid, scale, seeds)
    jobs = {job.key: job for configuration in configurations for job in configuration.jobs}
    counts = Counter(store.state(job) for job in jobs.values())
    by_state = {state: counts[state] for state in State}
    return Status(grid.name, scale, len(configurations), frozenset(jobs), by_state)


def job_list(grid: Grid, scale: Scale, store: Store, seeds: int | None = None) -> Sequence[JobStatus]:
    return [
        JobStatus(
            configuration.column,
            configuration.method,
            job.run.train.seed if configuration.trained else None,
            state := store.state(job),
            job.key,
            (store.failure(job) or "") if state is State.FAILED else "",
        )
        for configuration in expand(grid, scale, seeds)
        for job in configuration.jobs
    ]


class Page(Protocol):
    """A page without runs of its own: where it is, and a line for everything on it that does not hold."""

    folder: Path

    @property
    def broken(self) -> list[str]:
        """The lines."""


def check_propositions() -> None:
    """Refuse to draw the propositions where there is no checkout."""
    if not PROPOSITIONS.is_file():
        raise FileNotFoundError(
            "the propositions are drawn in a checkout of the repository, by figures/propositions.py: an installed "
            "package does not carry them"
        )


def write_propositions(out: Path, scale: Scale) -> Page:
    """Their page, by the checkout's own module."""
    check_propositions()
    spec = spec_from_file_location("figures.propositions", PROPOSITIONS)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    page: Page = module.write_propositions(out, scale)
    return page
