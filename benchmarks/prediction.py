"""Prediction throughput of a saved model, as it is and compiled."""

from __future__ import annotations

import torch

from benchmarks.measurement import Measured, Remark, Row, interleaved_milliseconds, median_milliseconds, seconds
from graphwright.inference.model import SavedModel
from graphwright.models import Inputs
from graphwright.training.processes import threads

PEER = "torch.compile of the predictor"


def measure_prediction(
    model: SavedModel,
    batches: tuple[int, ...] = (1, 128),
    repeats: int = 9,
    thread_counts: tuple[int, ...] = (1, 2),
) -> Measured:
    """`SavedModel.predict`, pictures in memory to graphs, beside the same with the network compiled.

    A ratio below 1 means that compiling pays; `compile_seconds` is what the first call then takes.
    """
    data = model.task.data("test", limit=max(batches))
    for count in thread_counts:
        with threads(count):
            for batch in batches:
                inputs, _ = data.batch(range(batch))
                yield from _compare(model, inputs, batch, count, repeats)


def _compare(model: SavedModel, inputs: Inputs, batch: int, count: int, repeats: int) -> Measured:
    """One row, or why there is none."""
    torch.compiler.reset()  # a network that is seen at many sizes is compiled for any size, and slower
    try:
        compiled = model.compiled()
        compiling = seconds(lambda: compiled.predict(inputs, decode="plain"))
    except Exception as error:  # no compiler, or one that torch cannot use: many kinds of error
        alone = 1000 * batch / median_milliseconds(lambda: model.predict(inputs, decode="plain"), repeats)
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        yield Remark(f"predict at batch {batch}, {count} threads: {alone:.0f} samples/s; {PEER} failed: {reason}")
        return
    ours, theirs = interleaved_milliseconds(
        [lambda: model.predict(inputs, decode="plain"), lambda: compiled.predict(inputs, decode="plain")], repeats
    )
    extras = {
        "samples_per_second": 1000 * batch / ours,
        "compiled_samples_per_second": 1000 * batch / theirs,
        "compile_seconds": compiling,
    }
    figures = (ours / batch, PEER, theirs / batch)
    yield Row(f"predict, {model.name}", model.task.capacity, batch, count, *figures, extras=extras)
