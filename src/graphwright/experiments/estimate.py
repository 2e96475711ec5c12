"""What an experiment will take on this machine, by the measured cost of a step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch

from graphwright.experiments.grid import Configuration
from graphwright.experiments.job import Job, State, Store, read_json_object
from graphwright.experiments.work import evaluate_untrained, with_threads
from graphwright.files import write_json
from graphwright.inference import evaluate_predictor
from graphwright.inference.export import hardware
from graphwright.models import inputs_to
from graphwright.settings import Run
from graphwright.tasks import resolved, task_of
from graphwright.training import build
from graphwright.training.assembly import training_data
from graphwright.training.processes import device_of, in_this_process, products_of
from graphwright.training.processes import threads as torch_threads
from graphwright.training.schedule import Budget

START = 10.0
"""Seconds in which a process is there and its data are read."""


@dataclass(frozen=True)
class Estimate:
    """A configuration: milliseconds per sample and steps of its training (None: not trained), seconds of one job,
    jobs without a record."""

    configuration: Configuration
    milliseconds: float | None
    steps: int | None
    seconds: float
    missing: int

    @property
    def remaining(self) -> float:
        """Seconds of all its jobs that have no record."""
        return self.missing * self.seconds


def estimates(
    configurations: Sequence[Configuration], store: Store, cost_of: Callable[[Job], Cost]
) -> Iterator[Estimate]:
    """An estimate for every configuration, by the measured cost of a step; a shared job counts for the first.

    A run that was interrupted counts in full.
    """
    counted: set[str] = set()
    for configuration in configurations:
        own = {job.key for job in configuration.jobs if store.state(job) is not State.DONE} - counted
        counted |= own
        job = configuration.jobs[0]
        cost = cost_of(job)
        whole = START + cost.preparation + cost.evaluation * job.samples
        if not configuration.trained:
            yield Estimate(configuration, None, None, whole, len(own))
            continue
        steps, seconds = training_time(job, cost)
        whole += seconds
        yield Estimate(configuration, 1000 * cost.training, steps, whole, len(own))


def training_time(job: Job, cost: Cost) -> tuple[int, float]:
    """Steps, and seconds with validations; minutes, where they are the budget, include these."""
    train = job.run.train
    step = cost.training * train.batch_size
    validation = cost.evaluation * train.validation_samples / train.validate_every
    budget = Budget.of(train, max(cost.epoch // train.batch_size, 1))
    limits = []
    if budget.steps is not None:
        limits.append(budget.steps)
    if budget.minutes is not None:
        limits.append(max(1, int(60 * budget.minutes / (step + validation))))
    steps = min(limits)
    return steps, steps * (step + validation)


def wall_seconds(estimates: Sequence[Estimate], jobs: int) -> float:
    """Seconds until all are done, `jobs` at a time, the longest first, each by whoever is free."""
    lengths = sorted((each.seconds for each in estimates for _ in range(each.missing)), reverse=True)
    free = [0.0] * max(jobs, 1)
    for length in lengths:
        at = free.index(min(free))
        free[at] += length
    return max(free)


SMALL, LARGE = 2, 32
"""Samples of first steps, and of the ones that count where the first were fast enough."""
FAST = 0.2
"""Seconds."""
STEPS = 2
EVALUATED = 8
ANSWERED = 4
SECTIONS = ("task", "model", "matching", "loss")
FILE = "step-times.json"


@dataclass(frozen=True)
class Cost:
    """Seconds of training per sample, of answering and evaluating per sample, and before the first answer; samples
    in an epoch. Methods without training have only the second and the third."""

    training: float
    evaluation: float
    epoch: int
    preparation: float = 0.0


def measured_cost(job: Job, threads: int, folder: Path) -> Cost:
    """The cost of a job on this machine, from the folder's file of measurements or measured now."""
    known = read_json_object(folder / FILE) or {}
    key = _key(job, threads)
    if key not in known:
        trained = job.baseline is None
        run = with_threads(job.run, threads)
        with torch_threads(run.train.threads):
            cost = measure_cost(run) if trained else measure_untrained(job)
        known[key] = asdict(cost)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, known)
    return Cost(**known[key])


def _key(job: Job, threads: int) -> str:
    """A key of everything that the time depends on, without seed and budget."""
    train = job.run.train
    facts: dict[str, Any] = {"baseline": job.baseline, "references": job.references}
    facts |= job.run.model_dump(mode="json", include={"task"} if job.baseline else {*SECTIONS})
    facts |= {"threads": train.threads or threads, "precision": train.precision}
    facts |= {name: value for name, value in hardware().items() if name != "threads"}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def measure_untrained(job: Job) -> Cost:
    """A few answers of a method without training, and their evaluation."""
    few = replace(job, samples=ANSWERED)
    clock = _Clock(torch.device("cpu"))
    begun = perf_counter()
    record = evaluate_untrained(few).record
    whole, waited = clock.seconds(), perf_counter() - begun
    # Its own figure is of the wall; it has its share of what was not spent waiting for others.
    prediction = record["baseline"]["seconds_per_prediction"] * whole / waited
    return Cost(0.0, prediction, 0, max(whole - prediction * ANSWERED, 0.0))


def measure_cost(run: Run) -> Cost:
    """A few steps of a fresh model, of few samples each, and an evaluation of its predictions.

    The time of a step is taken as proportional to its batch. Fresh predictions are the hardest to match and to
    compare, so this errs on the dear side.
    """
    run = resolved(in_this_process(run))
    task, data, device = task_of(run.task), training_data(run), device_of(run)
    half = products_of(run) is torch.bfloat16
    model = build(run).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), run.train.learning_rate)

    def step(size: int) -> float:
        clock = _Clock(device)
        inputs, target = data.collate([data[index % len(data), 0] for index in range(size)])
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            result = model(inputs_to(inputs, device), *target.to(device).tensors)
        optimizer.zero_grad(set_to_none=True)
        result.loss.backward()
        optimizer.step()
        result.loss.item()  # a GPU works on while we look at the clock
        return clock.seconds()

    step(SMALL)
    # The faster of two: one slow moment would leave a fast model with small steps, which cost many times as much.
    size = min(LARGE, run.train.batch_size) if min(step(SMALL) for _ in range(STEPS)) < FAST else SMALL
    training = min(step(size) for _ in range(STEPS)) / size
    validation = task.data("validation", limit=EVALUATED)
    indices = list(range(min(EVALUATED, len(validation))))
    clock = _Clock(device)
    evaluate_predictor(model.predictor, validation, indices, model.vocabulary, model.loss)
    return Cost(training, clock.seconds() / len(indices), len(data))


class _Clock:
    """Started when it is made."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.wall, self.work = device, perf_counter(), process_time()

    def seconds(self) -> float:
        """Wall time; on a processor that others use too, no more than was worked in it."""
        wall, work = perf_counter() - self.wall, process_time() - self.work
        return wall if self.device.type != "cpu" else min(wall, work)
