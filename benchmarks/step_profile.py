"""`python -m benchmarks.step_profile PRESET`: where the time of a training step goes, operation by operation.

One thread, the preset's own batch, matching, optimiser and precision (or another), a fresh model on real samples.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import thread_time

import torch
from torch.profiler import ProfilerActivity, profile

from graphwright.cli.main import guarded
from graphwright.cli.shared import DONE, keep_freed_memory
from graphwright.inference.export import provenance
from graphwright.settings import Override, Run, load_run
from graphwright.tasks import resolved
from graphwright.training import build
from graphwright.training.assembly import training_data
from graphwright.training.optimizer import build_optimizer
from graphwright.training.processes import in_this_process, products_of, threads

WARM_UP, TIMED, PROFILED = 4, 12, 5
SHOWN = 20


@dataclass(frozen=True)
class Operation:
    """What an operation itself takes of a step, without what it calls; `calls` of it in a step."""

    name: str
    milliseconds: float
    calls: float


def one_step(run: Run) -> Callable[[], None]:
    """Forward, backward, clipping and optimiser on the first samples."""
    data, train = training_data(run), run.train
    inputs, target = data.collate([data[index, 0] for index in range(train.batch_size)])
    model = build(run).train()
    products = products_of(run)
    parts = (model.predictor, model.matcher)
    # So small a rate that the model stays where it began: every step is the same work.
    optimizer = build_optimizer(train.optimizer, parts, 1e-8, train.weight_decay, products)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=products is torch.bfloat16):
            result = model(inputs, *target.tensors)
        result.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip)
        optimizer.step()

    return step


def measure(run: Run) -> tuple[float, list[Operation]]:
    """The fastest step, in milliseconds of the processor, and its dearest operations."""
    step = one_step(run)
    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(TIMED):
        begun = thread_time()
        step()
        times.append(thread_time() - begun)
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        for _ in range(PROFILED):
            step()
    dearest = sorted(recorded.key_averages(), key=lambda each: each.self_cpu_time_total, reverse=True)[:SHOWN]
    return 1000 * min(times), [
        Operation(each.key, each.self_cpu_time_total / 1000 / PROFILED, each.count / PROFILED) for each in dearest
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, write."""
    overrides = [Override("train.precision", arguments.precision)] if arguments.precision else []
    torch.manual_seed(0)
    with threads(1):
        settings = resolved(in_this_process(load_run(arguments.preset, overrides)))
        milliseconds, operations = measure(settings)
    batch, precision = settings.train.batch_size, settings.train.precision
    print(f"{arguments.preset}, {precision}: {milliseconds:.1f} ms for {batch} samples on one core")
    for each in operations:
        print(f"{each.milliseconds:8.2f} ms {each.calls:7.0f} x {each.name}")
    if arguments.json is not None:
        facts = {"preset": arguments.preset, "precision": precision, "batch": batch, "milliseconds": milliseconds}
        facts |= {"operations": [asdict(each) for each in operations]} | provenance()
        arguments.json.write_text(json.dumps(facts, indent=1) + "\n")
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as the command line says."""
    keep_freed_memory()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step_profile", description=__doc__)
    parser.add_argument("preset")
    parser.add_argument("--precision", help="instead of the preset's: 32-true, bf16-mixed")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    return guarded("benchmarks.step_profile", lambda: run(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
