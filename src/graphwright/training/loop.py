"""The training loop, on Lightning Fabric: one device or many nodes, exactly resumable."""

from __future__ import annotations

import logging
import math
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from graphwright.files import lock_folder, write_json, write_text
from graphwright.graphs import GraphBatch
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.checkpoint import CheckpointError
from graphwright.inference.evaluate import evaluate_predictor
from graphwright.inference.export import provenance, sessions_of
from graphwright.inference.memory_limit import refuse_large_model, refuse_larger
from graphwright.inference.model import find_model, load_model
from graphwright.metrics import METRICS
from graphwright.models import Inputs, inputs_to, some_inputs
from graphwright.settings import CONFIG, Accelerator, Clock, Precision, Run, SettingsError, to_yaml
from graphwright.tasks import Batches, Samples, resolve, task_of
from graphwright.training.assembly import StepResult, build, build_network, term_names, training_data
from graphwright.training.faulty import batch_indices, first_bad_input, leaps, usual_after
from graphwright.training.footprint import saved_bytes
from graphwright.training.log import Display, RunLog, Window
from graphwright.training.optimizer import WeightAverage, build_optimizer
from graphwright.training.processes import (
    Interrupts,
    device_of,
    in_this_process,
    leave_interrupts_to_parent,
    products_of,
)
from graphwright.training.schedule import Budget, learning_rate, order_of
from graphwright.training.state import Progress, capture, random_state, restore, set_random_state
from graphwright.transport.checks import NotFiniteError

if TYPE_CHECKING:
    from lightning.fabric import Fabric

LEAST_COPIES = 3
"""Copies of the weights while they are trained: themselves, their gradient, and a moment of it at least."""
LARGE_BATCH = 2048
"""Samples of a process's step from which on it is asked whether they fit into the memory."""
SOME_SAMPLES = 4
PATIENCE_WITH_GRADIENTS = 50
"""Steps in a row whose gradient is not finite before a run gives up; loss scaling of float16 needs about 20."""


class DivergenceError(RuntimeError):
    """Training that no longer moves: predictions, or every gradient, hold NaN or infinity."""


class LostProcessError(RuntimeError):
    """Another process of the run has ended, and this one cannot go on without it."""


class RunBusyError(ValueError):
    """Another process trains in the folder: two would mix their logs and their checkpoints."""

    def __init__(self, holder: str, folder: Path) -> None:
        super().__init__(f"{holder} is training in {folder}: wait for it, or choose another with --out DIR")
        self.holder = holder


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run: its folder, how far it came, its last validation.

    unusable: training rows that no sample was made of, by reason, as far as this session's first process met them.
    """

    folder: Path
    progress: Progress
    metrics: dict[str, Any]
    unusable: dict[str, int] = field(default_factory=dict)


def train(run: Run, folder: Path, *, resume: bool = False, display: Display | None = None) -> Trained:
    """Train a run in its folder, from the start or from its last checkpoint.

    Ctrl-C or SIGTERM ends it with KeyboardInterrupt after the step in progress, which the last checkpoint then
    holds; a second one does so at once, and the checkpoint holds the last whole step or an earlier one.
    """
    _refuse_missing_weights(run.model.encoder_weights, None if resume else run.train.start_from)
    return Session(run, folder, display or Display.silent()).train(resume=resume)


def _refuse_missing_weights(encoder: Path | None, start_from: str | None) -> None:
    """What a run begins with must be there, which can be said before any data are read."""
    if encoder is not None and not encoder.is_dir():
        raise SettingsError(f"model.encoder_weights: {encoder} is not a folder")
    if start_from is not None:
        try:
            find_model(start_from)
        except CheckpointError as error:
            raise SettingsError(f"train.start_from: {error}") from error


class _Moment(Enum):
    """What an exception finds."""

    WHOLE = "between steps: what is in memory is a state of the run"
    STEPPING = "inside a step that has changed only random numbers and buffers, which can be taken back"
    UPDATING = "inside a step that can be neither taken back nor completed"


class Session:
    """One process's share of a run."""

    def __init__(self, run: Run, folder: Path, display: Display) -> None:
        # Processes for cores are the command line's to start, by giving its own command again.
        run = in_this_process(run)
        # Before any data are read: it refuses devices that there are not.
        self.fabric = _fabric(run)
        # The weights mean nothing without the labels that they stand for: checkpoints name them.
        plan = resolve(run)
        self.run, self.folder = plan.run, folder
        run, train = self.run, self.run.train
        self._refuse_large_model()
        if train.threads:
            torch.set_num_threads(train.threads)
        self.fabric.launch()
        self.display = display if self.fabric.is_global_zero else Display.silent()
        torch.manual_seed(train.seed)
        task = task_of(run.task)
        self.data = training_data(run)
        self.validation = task.data("validation", limit=train.validation_samples)
        self.model = build(run, plan.library)
        self.average = WeightAverage(self.model.predictor, train.averaging) if train.averaging else None
        parts = (self.model.predictor, self.model.matcher)
        rate, decay = train.learning_rate, train.weight_decay
        optimizer = build_optimizer(train.optimizer, parts, rate, decay, products_of(run))
        self._refuse_uneven_data()
        self.wrapped, self.optimizer = self.fabric.setup(self.model, optimizer)
        if self.average is not None:
            self.average.to(self.fabric.device)
        self.progress, self.window = Progress(), Window()
        self.budget = Budget.of(train, self._order(first=0).steps_per_epoch)
        self.last, self.best = folder / "checkpoints" / "last", folder / "checkpoints" / "best"
        self.log: RunLog | None = None
        self.sessions: list[dict[str, Any]] = []
        """Commit and hardware each time that the run was started or went on, and the step that it began with."""
        self.interrupts = Interrupts()
        self.clock = process_time if train.clock is Clock.PROCESSOR else perf_counter
        self.start = 0.0
        """When the run would have started had it gone on without a break."""
        self.moment = _Moment.WHOLE
        self.take_back: Callable[[], None] = lambda: None
        self._refuse_large_batch()

    @property
    def _sharing(self) -> int:
        """Processes that share the memory of this machine."""
        on_host = self.fabric.device.type == "cpu"
        return max(1, self.fabric.world_size // self.run.train.nodes) if on_host else 1

    def _refuse_large_model(self) -> None:
        """Before anything of it is built. Elsewhere than on the host the host holds no more than its weights."""
        copies = LEAST_COPIES + bool(self.run.train.averaging) if self.fabric.device.type == "cpu" else 1
        refuse_large_model(self.run, build_network, copies * self._sharing, "training it takes")

    def _refuse_large_batch(self) -> None:
        """What a step keeps, by a few samples of the first one; asked only of batches that nobody trains with."""
        train = self.run.train
        share = -(-train.batch_size // (self.fabric.world_size * train.accumulate))
        if self.fabric.device.type != "cpu" or share < LARGE_BATCH:
            return
        few = next(iter(self._order(first=0)))[:SOME_SAMPLES]
        samples = _Epochs(self.data, augment=train.augment)
        inputs, target = self.data.collate([samples[one] for one in few])
        take_back = self._checkpoint_in_memory()
        kept = saved_bytes(self.model, inputs, target)
        take_back()
        refuse_larger(
            kept * share // len(few) * self._sharing,
            f"a step of train.batch_size {train.batch_size:,} takes",
            "try a smaller one, or a larger train.accumulate",
        )

    def _refuse_uneven_data(self) -> None:
        """With more samples in one process than in another they would end epochs, and wait, at different steps."""
        counts = self._gather(torch.tensor([len(self.data)]))[:, 0].tolist()
        if len(set(counts)) > 1:
            told = ", ".join(f"{count:,}" for count in counts)
            raise ValueError(f"the processes of this run have different data: {told} samples")

    def train(self, *, resume: bool) -> Trained:
        """The steps of this process, from the start or from the last checkpoint."""
        with self._alone():
            return self._train(resume)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The folder for this run; where another has it, all processes hear of it."""
        with ExitStack() as held:
            holder = ""
            if self.fabric.is_global_zero:
                try:
                    held.enter_context(lock_folder(self.last.parent, lambda who: RunBusyError(who, self.folder)))
                except RunBusyError as error:
                    holder = error.holder
            holder = self.fabric.broadcast(holder)
            if holder:
                raise RunBusyError(holder, self.folder)
            yield

    def _train(self, resume: bool) -> Trained:
        # Each rank draws its own dropout from here on; a resumed one goes on where it was.
        if self.fabric.global_rank:
            torch.manual_seed(self.run.train.seed + self.fabric.global_rank)
        if resume:
            self._restore()
        elif self.run.train.start_from is not None:
            self._start_from(self.run.train.start_from)
        if self.fabric.is_global_zero:
            self.sessions.append({"first_step": self.progress.step} | provenance())
            self.log = RunLog(self.folder, self.progress.step, self.progress.validated)
            write_text(self.folder / CONFIG, to_yaml(self.run))
        if not resume:
            # A run that is killed before the first minutes are over can go on, too.
            self._save(self.last)
        try:
            with self.display.running(self._fraction()), self.interrupts:
                interrupted = self._steps_together()
        except LostProcessError:
            raise
        except BaseException:
            self._save_last_whole_step()
            raise
        finally:
            if self.log is not None:
                self.log.close()
        if interrupted:
            raise KeyboardInterrupt
        self._finish()
        return Trained(self.folder, self.progress, self.progress.metrics, self.data.unusable())

    def _steps_together(self) -> bool:
        """The steps, until another process of the run ends."""
        try:
            return self._steps()
        except Exception as error:
            if self.fabric.world_size == 1:
                raise
            self.interrupts.ignore_termination()
            if not _lost_connection(error):
                raise
            raise LostProcessError("another process of this run has ended") from error

    def _steps(self) -> bool:
        """Steps until the budget is used up or (the result says so) an interrupt asks to stop."""
        train = self.run.train
        self.start = self.clock() - self.progress.seconds
        saved_at, interrupted = self.progress.seconds, False
        batches = self._batches()
        self.wrapped.train()
        if self._validation_due():  # the last session was stopped in the middle of it
            self._validate()
        while self._fraction() < 1 and not self._stopped_early() and not interrupted:
            interrupted = self._step(batches)
            if self.progress.skipped_in_row >= PATIENCE_WITH_GRADIENTS:
                raise DivergenceError(
                    f"the gradient was not finite in the last {self.progress.skipped_in_row} steps, up to step "
                    f"{self.progress.step}: try a smaller train.learning_rate, or train.precision 32-true"
                )
            if self._validation_due() and not interrupted:
                self._validate()
            if self.progress.seconds - saved_at > 60 * train.checkpoint_minutes:
                self._save(self.last)
                saved_at = self.progress.seconds
        if not interrupted and self.progress.validated != self.progress.step:
            self._validate()
        self._save(self.last)
        return interrupted

    def _step(self, batches: Iterator[tuple[Inputs, GraphBatch]]) -> bool:
        """One step and its log line; returns whether an interrupt asks to stop."""
        train = self.run.train
        rate = learning_rate(train, self._fraction())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.take_back = self._checkpoint_in_memory()
        self.moment = _Moment.STEPPING
        inputs, target = next(batches)
        self._refuse_bad_input(inputs)
        try:
            result, norm = self._gradient(inputs, target)
        except NotFiniteError as error:
            self.moment = _Moment.UPDATING  # the checkpoint before it is worth more than such weights
            raise DivergenceError(self._diverged(error)) from error
        self.moment = _Moment.UPDATING
        usable = math.isfinite(norm)
        # The loss scaler of float16 refuses such a step itself, and must hear of it.
        if usable or self.fabric.strategy.precision.state_dict():
            self.optimizer.step()
            if self.average is not None and usable:
                self.average.update(self.model.predictor, self.progress.step)
        seconds, stop, values = self._agree(result)
        if usable:
            self.window.add(values | {"gradient_norm": norm}, result.health, train.batch_size)
        else:
            self.window.skip(train.batch_size)
        progress, loss = self.progress, values["loss"]
        leap = not usable or leaps(loss, progress.usual_loss, progress.step)
        self.progress = replace(
            progress,
            usual_loss=progress.usual_loss if leap else usual_after(progress.usual_loss, loss),
            step=progress.step + 1,
            seconds=seconds,
            skipped=progress.skipped + (not usable),
            skipped_in_row=0 if usable else progress.skipped_in_row + 1,
        )
        if leap:
            self._tell_leap(loss, norm)
        if self.progress.step % train.log_every == 0:
            record = {"step": self.progress.step, "seconds": seconds, "learning_rate": rate} | self.window.record()
            self.window = Window()
            self.display.show(record, self._fraction())
            if self.log is not None:
                self.log.write(record)
        self.display.moved(self._fraction())
        self.moment = _Moment.WHOLE
        return stop

    def _refuse_bad_input(self, inputs: Inputs) -> None:
        """NaN or infinity in what the data give is told here, by sample: further on it is a matter of weights."""
        bad = first_bad_input(inputs)
        if bad is not None:
            raise ValueError(f"the input of {self._sample(bad)} is not finite, at step {self.progress.step + 1}")

    def _sample(self, at: int) -> str:
        """What to call a sample of this process's batch at the next step."""
        order = self._order(first=self.progress.step)
        return f"training sample {next(iter(order))[at][0]}"

    def _diverged(self, error: NotFiniteError) -> str:
        whose = "" if error.sample is None else f", of {self._sample(error.sample)}"
        return (
            f"diverged at step {self.progress.step + 1}: {error}{whose}; "
            "try a smaller train.learning_rate, or train.precision 32-true"
        )

    def _tell_leap(self, loss: float, norm: float) -> None:
        """Which samples made the loss of the last step leap, or its gradient not finite."""
        if self.log is None:
            return
        step, usual = self.progress.step, self.progress.usual_loss
        indices = batch_indices(self.run.train, self.data, step)
        figures = {"step": step, "loss": loss, "usual_loss": usual, "gradient_norm": norm}
        self.log.write_spike(figures | {"indices": [index for index, _ in indices]})
        what = f"a loss of {loss:.4g}" if math.isfinite(norm) else "a gradient that is not finite"
        # Loss scaling tries out what is too much, twenty times over.
        if self.progress.skipped_in_row <= 1:
            self.display.say(
                f"step {step}: {what}; `graphwright debug batch {self.folder} {step}` shows its samples"
            )

    def _gradient(self, inputs: Inputs, target: GraphBatch) -> tuple[StepResult, float]:
        """Forward, backward, clip; the norm is that before clipping, the same on every rank."""
        self.optimizer.zero_grad(set_to_none=True)
        parts = list(parts_of(len(target), self.run.train.accumulate))
        losses: list[Tensor] = []
        terms: list[Tensor] = []
        health: dict[str, float] = {}
        for part in parts:
            share = (part.stop - part.start) / len(target)
            # Ranks tell each other their gradients once, after the last part.
            with ExitStack() as alone:
                if part is not parts[-1] and self.fabric.world_size > 1:
                    alone.enter_context(self.fabric.no_backward_sync(self.wrapped))
                try:
                    loss, own_terms, health = self._part_gradient(inputs, target, part, share)
                except NotFiniteError as error:
                    error.sample = None if error.sample is None else part.start + error.sample
                    raise
            losses.append(share * loss)
            terms.append(share * own_terms)
        result = StepResult(torch.stack(losses).sum(), torch.stack(terms).sum(0), health)
        norm = self.fabric.clip_gradients(
            self.wrapped, self.optimizer, max_norm=self.run.train.clip, error_if_nonfinite=False
        )
        assert norm is not None
        return result, float(norm)

    def _part_gradient(self, inputs: Inputs, target: GraphBatch, part: slice, share: float) -> StepResult:
        """Forward and backward of some samples, whose gradient is that share of the batch's."""
        device = self.fabric.device
        own = target.select(torch.arange(part.start, part.stop)).to(device)
        result: StepResult = self.wrapped(inputs_to(some_inputs(inputs, part), device), *own.tensors)
        self.fabric.backward(share * result.loss)
        return result._replace(loss=result.loss.detach())

    def _agree(self, result: StepResult) -> tuple[float, bool, dict[str, float]]:
        """The first rank's clock, whether any rank was asked to stop, and the loss terms of the joint batch.

        On separate clocks the ranks would stop, and save, at different steps, and wait for each other for ever.
        """
        seconds, stop = self.clock() - self.start, self.interrupts.pending
        terms = torch.cat([result.terms, result.loss[None]]).double()
        if self.fabric.world_size > 1:
            first = self.fabric.is_global_zero
            news = torch.tensor([seconds if first else 0.0, float(stop)], dtype=terms.dtype, device=terms.device)
            total = self.fabric.all_reduce(torch.cat([news, terms]), reduce_op="sum")
            assert isinstance(total, Tensor)
            seconds, stop, terms = float(total[0]), bool(total[1] > 0), total[2:] / self.fabric.world_size
        return seconds, stop, dict(zip((*term_names(self.run.loss), "loss"), terms.tolist(), strict=True))

    def _batches(self) -> Iterator[tuple[Inputs, GraphBatch]]:
        train = self.run.train
        # Forked workers start at once; where there is no fork, as the system does it.
        fork = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        loader = DataLoader(
            _Epochs(self.data, augment=train.augment),
            batch_sampler=self._order(first=self.progress.step),
            collate_fn=self.data.collate,
            num_workers=train.workers,
            # Its own generator: a loader otherwise draws a seed from the global one, which dropout uses.
            generator=torch.Generator().manual_seed(0),
            prefetch_factor=4 if train.workers else None,
            multiprocessing_context=fork if train.workers else None,
            worker_init_fn=leave_interrupts_to_parent,
        )
        return iter(loader)

    def _order(self, first: int) -> Batches:
        """Which samples each step sees, as the data set wants it or shuffled as a whole."""
        train, rank, ranks = self.run.train, self.fabric.global_rank, self.fabric.world_size
        return order_of(train, self.data, first, rank, ranks)

    def _validation_due(self) -> bool:
        step = self.progress.step
        return step > self.progress.validated and step % self.run.train.validate_every == 0

    def _validate(self) -> None:
        """Measure, log, keep the best; `progress` changes last: an interrupted validation is done again."""
        train = self.run.train
        metrics: dict[str, Any] = {}
        if self.fabric.is_global_zero:
            indices = range(min(train.validation_samples, len(self.validation)))
            predictor = self.model.predictor if self.average is None else self.average.predictor
            result = evaluate_predictor(
                predictor, self.validation, list(indices), self.model.vocabulary, self.model.loss
            )
            metrics = result.report.to_json()
        metrics = self.fabric.broadcast(metrics)
        value = metrics[train.metric]
        if value is None:
            raise ValueError(f"train.metric {train.metric} tells nothing of these samples: choose another")
        record = {"step": self.progress.step, "seconds": self.progress.seconds}
        record |= {name: figure for name, figure in metrics.items() if isinstance(figure, int | float)}
        self.display.validated(record, train.metric)
        if self.log is not None:
            self.log.write(record)
        progress = replace(self.progress, metrics=metrics, validated=self.progress.step)
        ahead = math.inf if progress.best is None else METRICS[train.metric].gain(value, progress.best)
        if ahead > 0:
            progress = replace(progress, best=value, stale=0)
        else:
            progress = replace(progress, stale=progress.stale + 1)
        # Of two as good, the one that has learnt longer: where nothing is exactly right yet, all of them are.
        if ahead >= 0:
            self._save(self.best, progress)
        self.progress = progress

    def _checkpoint_in_memory(self) -> Callable[[], None]:
        """What a step changes before the optimiser does; the result puts it back."""
        random, device = random_state(self.fabric.device), self.fabric.device
        buffers = [(buffer, buffer.clone()) for buffer in self.model.buffers()]

        def take_back() -> None:
            set_random_state(random, device)
            for buffer, value in buffers:
                buffer.copy_(value)

        return take_back

    def _save_last_whole_step(self) -> None:
        """After an exception. With several ranks nothing is saved: the others may wait for something else."""
        if self.fabric.world_size > 1 or self.moment is _Moment.UPDATING:
            return
        if self.moment is _Moment.STEPPING:
            self.take_back()
        self._save(self.last)

    def _save(self, path: Path, progress: Progress | None = None) -> None:
        generators = self._gather(random_state(self.fabric.device))
        if self.fabric.is_global_zero:
            facts = {
                "settings": self.run.model_dump(mode="json"),
                "sessions": self.sessions,
                "window": self.window.to_json(),
                "precision": self.fabric.strategy.precision.state_dict(),
            }
            optimizer = self.optimizer.optimizer
            state = capture(self.model, optimizer, progress or self.progress, generators, facts, self.average)
            checkpoints.save(path, state)
        self.fabric.barrier()

    def _gather(self, tensor: Tensor) -> Tensor:
        """(ranks, ...): the tensors of all ranks."""
        if self.fabric.world_size == 1:
            return tensor[None]
        # Fabric's own gathering goes through a function that torch has deprecated.
        own = tensor.to(self.fabric.device)
        gathered = [torch.empty_like(own) for _ in range(self.fabric.world_size)]
        torch.distributed.all_gather(gathered, own)
        return torch.stack(gathered).cpu()

    def _restore(self) -> None:
        saved = checkpoints.load(self.last)
        optimizer = self.optimizer.optimizer
        rank, device = self.fabric.global_rank, self.fabric.device
        try:
            self.progress = restore(saved, self.model, optimizer, rank, device, self.average)
            self.window = Window.from_json(saved.facts.get("window"))
            self.sessions = list(sessions_of(saved.facts) or [])
            if saved.facts.get("precision"):
                self.fabric.strategy.precision.load_state_dict(saved.facts["precision"])
        # Its checksums are right, so nobody damaged it by chance: it is of something else, or meant to do harm.
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
            raise CheckpointError(f"{self.last}.json cannot be resumed from: {error}") from error

    def _start_from(self, source: str) -> None:
        """Take over the weights of another model's predictor that fit this one's."""
        own = self.model.predictor.state_dict()
        given = load_model(source).predictor.state_dict()
        fitting = {name: value for name, value in given.items() if name in own and value.shape == own[name].shape}
        # Biases fit by chance.
        if not any(value.ndim > 1 for value in fitting.values()):
            raise ValueError(
                f"train.start_from: no matrix of {source} has the name and shape of one of this model"
            )
        self.model.predictor.load_state_dict(own | fitting)
        if self.average is not None:
            self.average.predictor.load_state_dict(own | fitting)
        self.display.say(f"{len(fitting)} of {len(own)} tensors are taken from {source}")

    def _finish(self) -> None:
        if self.fabric.is_global_zero:
            progress = self.progress
            facts: dict[str, Any] = {"step": progress.step, "seconds": progress.seconds}
            facts |= {"validation": progress.metrics, "unusable_rows": self.data.unusable()}
            write_json(self.folder / "metrics.json", facts)

    def _fraction(self) -> float:
        return self.budget.progress(self.progress.step, self.progress.seconds)

    def _stopped_early(self) -> bool:
        patience = self.run.train.patience
        return bool(patience) and self.progress.stale >= patience


def parts_of(count: int, parts: int) -> Iterator[slice]:
    """So many samples in that many parts, or fewer, as even as can be."""
    parts = min(parts, count)
    edges = [round(count * at / parts) for at in range(parts + 1)]
    yield from (slice(first, last) for first, last in pairwise(edges))


_FABRICS: dict[Precision, Literal["32-true", "bf16-mixed", "16-mixed"]] = {
    Precision.FLOAT32: "32-true",
    Precision.BFLOAT16: "bf16-mixed",
    Precision.FLOAT16: "16-mixed",
}
"""What Fabric calls them; which one `auto` means is decided before."""


def _fabric(run: Run) -> Fabric:
    # Predicting and evaluating need no Lightning, and import this package too.
    try:
        from lightning.fabric import Fabric
    except ImportError as error:
        raise ImportError("training needs Lightning Fabric: pip install 'graphwright[train]'") from error
    # Its banners, of processes that it starts and of precision, are no news to a person.
    for name in ("lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    train = run.train
    devices = train.devices if train.devices == "auto" else int(train.devices)
    automatic = train.accelerator is Accelerator.AUTO
    try:
        fabric = Fabric(
            accelerator=device_of(run).type if automatic else str(train.accelerator),
            devices=devices,
            num_nodes=train.nodes,
            precision=_FABRICS[train.precision],
        )
    # No such device, fewer than asked for, or none that has this precision.
    except (RuntimeError, ValueError, TypeError) as error:
        asked = f"train.accelerator {train.accelerator}, train.devices {train.devices}"
        raise SettingsError(f"{asked}: {' '.join(str(error).split())}") from error
    # Mixed precision is for products. Fabric would round inputs and targets, too: masses would be off by 1 Da.
    fabric.strategy.precision.convert_input = lambda data: data  # type: ignore[method-assign]
    return fabric


def _lost_connection(error: BaseException) -> bool:
    """Whether the processes can no longer talk to each other: backends have errors of their own, or a sentence."""
    if isinstance(error, torch.distributed.DistError):
        return True
    return isinstance(error, RuntimeError) and any(
        word in str(error)
        for word in ("gloo/transport", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
    )


class _Epochs(torch.utils.data.Dataset[Any]):
    """Training samples by (index, epoch), or without augmentation the same ones in every epoch."""

    def __init__(self, data: Samples, *, augment: bool) -> None:
        self.data, self.augment = data, augment

    def __getitem__(self, index: tuple[int, int]) -> Any:
        return self.data[index if self.augment else index[0]]
