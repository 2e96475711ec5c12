"""Speed and memory, each a ratio against a named peer measured in the same run."""

from collections.abc import Callable, Iterator

from benchmarks.annotation import measure_annotation
from benchmarks.data import measure_data
from benchmarks.evaluation import measure_evaluation
from benchmarks.matcher import measure_matcher
from benchmarks.measurement import Measured, Remark, Row, table
from benchmarks.plans import measure_plans
from benchmarks.prediction import measure_prediction
from benchmarks.scaling import measure_scaling, scaling_figure
from benchmarks.sinkhorn import measure_sinkhorn
from benchmarks.training import measure_presets, measure_training
from benchmarks.whole_machine import measure_time_to_published, measure_whole_machine
from graphwright.inference.model import load_model
from graphwright.settings import load_run, presets
from graphwright.tasks.spectra.prepared import find_spectra

SHIPPED = "coloring10"
"""The model whose predictions are timed."""
EVALUATED = "coloring20-cpu"
"""The preset whose evaluation is timed."""
SPECTRA = "massbank_ms2scaffold"
"""The shipped data whose annotation is timed."""


def _presets() -> Iterator[Row]:
    yield from measure_training(lambda n: load_run(f"coloring{n}-cpu", []))
    yield from measure_presets(load_run, [preset.name for preset in presets() if preset.name.endswith("-cpu")])
    yield from measure_whole_machine()


def _preset_evaluation() -> Iterator[Row]:
    return measure_evaluation(load_run(EVALUATED, []))


def _shipped_annotation() -> Measured:
    return measure_annotation(find_spectra(SPECTRA))


def _shipped_prediction() -> Measured:
    return measure_prediction(load_model(SHIPPED))


BENCHMARKS: dict[str, Callable[[], Measured]] = {
    "plans": measure_plans,
    "sinkhorn": measure_sinkhorn,
    "matcher": measure_matcher,
    "training": _presets,
    "data": measure_data,
    "annotation": _shipped_annotation,
    "evaluation": _preset_evaluation,
    "prediction": _shipped_prediction,
    "scaling": measure_scaling,
    "time-to-published": measure_time_to_published,
}
"""What `graphwright bench NAME` can measure."""
LONG = ("time-to-published",)
"""What takes so long that `bench all` leaves it out."""

__all__ = [
    "BENCHMARKS",
    "LONG",
    "Measured",
    "Remark",
    "Row",
    "measure_annotation",
    "measure_data",
    "measure_evaluation",
    "measure_matcher",
    "measure_plans",
    "measure_prediction",
    "measure_presets",
    "measure_scaling",
    "measure_sinkhorn",
    "measure_time_to_published",
    "measure_training",
    "measure_whole_machine",
    "scaling_figure",
    "table",
]
