"""The paper's tables and figures: declarative grids to run records to tables and plots."""

from graphwright.experiments.archive import take_over
from graphwright.experiments.estimate import Estimate, estimates, measured_cost, wall_seconds
from graphwright.experiments.examples import runs_wanted, write_examples
from graphwright.experiments.grid import Configuration, Grid, Scale, expand, grid_names, read_grid
from graphwright.experiments.job import Job, State, Store
from graphwright.experiments.reproduction import (
    JobProgress,
    JobStatus,
    Reproduced,
    Status,
    check_propositions,
    job_list,
    page_written,
    reproduce,
    status,
    store_of,
    write_propositions,
)
from graphwright.experiments.work import Outcome, run_jobs
from graphwright.parallel import Engine, InProcess, Processes, RayCluster

__all__ = [
    "Configuration",
    "Engine",
    "Estimate",
    "Grid",
    "InProcess",
    "Job",
    "JobProgress",
    "JobStatus",
    "Outcome",
    "Processes",
    "RayCluster",
    "Reproduced",
    "Scale",
    "State",
    "Status",
    "Store",
    "check_propositions",
    "estimates",
    "expand",
    "grid_names",
    "job_list",
    "measured_cost",
    "page_written",
    "read_grid",
    "reproduce",
    "run_jobs",
    "runs_wanted",
    "status",
    "store_of",
    "take_over",
    "wall_seconds",
    "write_examples",
    "write_propositions",
]
