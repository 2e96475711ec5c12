"""The training loop, on Lightning Fabric: one device or many nodes, exactly resumable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from graphwright.graphs import GraphBatch
from graphwright.settings import Run
from graphwright.tasks.coloring import VOCABULARY, ColoringDataset
from graphwright.training import checkpoint as checkpoints
from graphwright.training.assembly import TERMS, StepResult, build, coloring_config
from graphwright.training.console import Display
from graphwright.training.evaluation import evaluate_predictor
from graphwright.training.log import RunLog
from graphwright.training.order import StepOrder
from graphwright.training.schedule import Budget, learning_rate
from graphwright.training.state import Progress, capture, restore

if TYPE_CHECKING:
    from lightning.fabric import Fabric

LOWER_IS_BETTER = ("edit", "aligned_edit", "validation_loss")


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished (or interrupted) run: its folder, how far it came, its last validation."""

    folder: Path
    progress: Progress
    metrics: dict[str, Any]


def train(run: Run, folder: Path, *, resume: bool = False, display: Display | None = None) -> Trained:
    """Train a run in its folder, from the start or from its last checkpoint."""
    return _Session(run, folder, display or Display.silent()).train(resume=resume)


class _Session:
    """One process's share of a run."""

    def __init__(self, run: Run, folder: Path, display: Display) -> None:
        try:
            from lightning.fabric import Fabric
        except ImportError as error:
            raise ImportError("training needs Lightning Fabric: pip install 'graphwright[train]'") from error
        self.run, self.folder, self.display = run, folder, display
        train = run.train
        if train.threads:
            torch.set_num_threads(train.threads)
        devices = train.devices if train.devices == "auto" else int(train.devices)
        self.fabric = Fabric(
            accelerator=train.accelerator, devices=devices, num_nodes=train.nodes, precision=train.precision.value
        )
        self.fabric.launch()
        torch.manual_seed(train.seed)
        config = coloring_config(run.task)
        self.data = ColoringDataset(config, "train", run.task.seed)
        self.validation = ColoringDataset(config, "validation", run.task.seed)
        self.model = build(run)
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=train.learning_rate, weight_decay=train.weight_decay
        )
        self.wrapped, self.optimizer = self.fabric.setup(self.model, optimizer)
        self.progress = Progress()
        order = StepOrder(len(self.data), train.batch_size, train.seed, ranks=self.fabric.world_size)
        self.budget = Budget.of(train, order.steps_per_epoch)
        self.last, self.best = folder / "checkpoints" / "last", folder / "checkpoints" / "best"
        self.metrics: dict[str, Any] = {}

    def train(self, *, resume: bool) -> Trained:
        if resume:
            saved = checkpoints.load(self.last)
            self.progress = restore(saved, self.model, self.optimizer, self.fabric.global_rank)
        # Each rank draws its own dropout from here on; a resumed one goes on where it was.
        elif self.fabric.global_rank:
            torch.manual_seed(self.run.train.seed + self.fabric.global_rank)
        log = RunLog(self.folder, self.progress.step) if self.fabric.is_global_zero else None
        if log is not None:
            (self.folder / "config.json").write_text(self.run.model_dump_json(indent=2) + "\n")
        with self.display.running(self._fraction()):
            self._steps(log)
        if log is not None:
            log.close()
        self._finish()
        return Trained(self.folder, self.progress, self.metrics)

    def _steps(self, log: RunLog | None) -> None:
        train, progress = self.run.train, self.progress
        session_start, earlier = perf_counter(), progress.seconds
        window = _Window()
        saved_at = perf_counter()
        batches = self._batches()
        self.wrapped.train()
        try:
            while self._fraction() < 1 and not self._stopped_early():
                rate = learning_rate(train, self._fraction())
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                result, norm = self._step(*next(batches))
                progress.step += 1
                progress.seconds = self._agree(earlier + perf_counter() - session_start)
                window.add(result, norm, train.batch_size)
                if progress.step % train.log_every == 0:
                    record = {"step": progress.step, "seconds": progress.seconds, "learning_rate": rate}
                    record |= window.flush(self.fabric)
                    self.display.show(record, self._fraction())
                    if log is not None:
                        log.write(record)
                if progress.step % train.validate_every == 0:
                    self._validate(log)
                if perf_counter() - saved_at > 60 * train.checkpoint_minutes:
                    self._save(self.last)
                    saved_at = perf_counter()
        finally:
            # An interrupt arrives between steps or inside one; the last whole step is what is kept.
            self._save(self.last)
        if progress.step % train.validate_every:
            self._validate(log)
            self._save(self.last)

    def _step(self, inputs: Tensor, target: GraphBatch) -> tuple[StepResult, float]:
        """Forward, backward, clip, update; a step with a non-finite gradient changes nothing."""
        tensors = (inputs, target.mask, target.node_labels, target.edge_labels)
        result: StepResult = self.wrapped(*(tensor.to(self.fabric.device) for tensor in tensors))
        self.optimizer.zero_grad(set_to_none=True)
        self.fabric.backward(result.loss)
        norm = self.fabric.clip_gradients(
            self.wrapped, self.optimizer, max_norm=self.run.train.clip, error_if_nonfinite=False
        )
        self.optimizer.step()
        return result, float(norm) if norm is not None else 0.0

    def _batches(self) -> Iterator[tuple[Tensor, GraphBatch]]:
        train = self.run.train
        order = StepOrder(
            len(self.data),
            train.batch_size,
            train.seed,
            first=self.progress.step,
            rank=self.fabric.global_rank,
            ranks=self.fabric.world_size,
        )
        loader = DataLoader(
            self.data if train.augment else _Plain(self.data),
            batch_sampler=order,
            collate_fn=self.data.collate,
            num_workers=train.workers,
            # Its own generator: a loader otherwise draws a seed from the global one, which dropout uses.
            generator=torch.Generator().manual_seed(0),
            persistent_workers=False,
            prefetch_factor=4 if train.workers else None,
            multiprocessing_context="fork" if train.workers else None,
        )
        return iter(loader)

    def _validate(self, log: RunLog | None) -> None:
        if self.fabric.is_global_zero:
            indices = range(min(self.run.train.validation_samples, len(self.validation)))
            result = evaluate_predictor(
                self.model.predictor, self.validation, list(indices), VOCABULARY, self.model.loss
            )
            self.metrics = result.report.to_json()
        self.metrics = self.fabric.broadcast(self.metrics)
        value = self.metrics.get(self.run.train.metric)
        if value is None:
            raise ValueError(f"train.metric {self.run.train.metric!r} is not one of {sorted(self.metrics)}")
        sign = -1 if self.run.train.metric in LOWER_IS_BETTER else 1
        if self.progress.best is None or sign * value > sign * self.progress.best:
            self.progress.best, self.progress.stale = value, 0
            self._save(self.best)
        else:
            self.progress.stale += 1
        record = {"step": self.progress.step, "seconds": self.progress.seconds}
        record |= {name: value for name, value in self.metrics.items() if isinstance(value, int | float)}
        self.display.validated(record)
        if log is not None:
            log.write(record)

    def _save(self, path: Path) -> None:
        states = self.fabric.all_gather(torch.get_rng_state()).view(self.fabric.world_size, -1).cpu()
        if self.fabric.is_global_zero:
            settings = self.run.model_dump(mode="json")
            state = capture(self.model, self.optimizer.optimizer, self.progress, states, settings)
            checkpoints.save(path, state)
        self.fabric.barrier()

    def _finish(self) -> None:
        if self.fabric.is_global_zero:
            facts = {"step": self.progress.step, "seconds": self.progress.seconds, "validation": self.metrics}
            (self.folder / "metrics.json").write_text(json.dumps(facts, indent=2) + "\n")

    def _fraction(self) -> float:
        return self.budget.progress(self.progress.step, self.progress.seconds)

    def _stopped_early(self) -> bool:
        patience = self.run.train.patience
        return bool(patience) and self.progress.stale >= patience

    def _agree(self, seconds: float) -> float:
        """The same clock on every rank, or they would stop at different steps."""
        return seconds if self.fabric.world_size == 1 else float(self.fabric.broadcast(seconds))


class _Plain(torch.utils.data.Dataset[Any]):
    """A data set without augmentation."""

    def __init__(self, data: ColoringDataset) -> None:
        self.data = data

    def __getitem__(self, index: tuple[int, int]) -> Any:
        return self.data[index[0]]


class _Window:
    """Sums between two log lines."""

    def __init__(self) -> None:
        self._reset()

    def add(self, result: StepResult, norm: float, samples: int) -> None:
        values = dict(zip(TERMS, result.terms.tolist(), strict=True)) | {"loss": float(result.loss.detach())}
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.norm += norm
        self.health |= result.health
        self.samples += samples
        self.steps += 1

    def flush(self, fabric: Fabric) -> dict[str, float]:
        elapsed = perf_counter() - self.start
        means = {name: value / self.steps for name, value in self.sums.items()}
        if fabric.world_size > 1:
            means = {name: float(value) for name, value in fabric.all_reduce(means).items()}
        record = means | {"gradient_norm": self.norm / self.steps, "samples_per_second": self.samples / elapsed}
        record |= self.health
        self._reset()
        return record

    def _reset(self) -> None:
        self.sums: dict[str, float] = {}
        self.health: dict[str, float] = {}
        self.norm, self.samples, self.steps = 0.0, 0, 0
        self.start = perf_counter()
