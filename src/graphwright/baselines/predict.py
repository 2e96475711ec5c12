"""Every untrained method behind one call: the nearest training input's graph, barycentres; and their figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from graphwright.baselines.barycentre import BarycentreSettings, RidgeWeights, SizeRule, barycentre, largest, vote
from graphwright.graphs import Graph
from graphwright.inference.evaluate import Evaluated, unseen
from graphwright.metrics import evaluate_graphs
from graphwright.settings import Run
from graphwright.tasks import Likeness, Samples, Task, task_of
from graphwright.tasks.likeness import EncoderLikeness
from graphwright.tasks.split import SPLITS


@dataclass(frozen=True, eq=False)
class References:
    """Some samples of a training split, by their indices there, ascending."""

    samples: Samples
    indices: list[int]

    def __len__(self) -> int:
        return len(self.indices)

    def graph(self, at: int) -> Graph:
        """The graph of the sample at this index into `indices`."""
        graph: Graph = self.samples[self.indices[at]].graph
        return graph


def references_of(task: Task, count: int | None, seed: int = 0) -> References:
    """`count` training samples drawn without replacement, or all of them; spectra count one by one.

    The draw is a pure function of the seed and of how many samples there are.
    """
    if count is not None and count < 1:
        raise ValueError(f"references must be at least 1, got {count}")
    samples = task.references()
    if count is None or count >= len(samples):
        return References(samples, list(range(len(samples))))
    drawn = np.random.default_rng(seed).choice(len(samples), count, replace=False)
    return References(samples, np.sort(drawn).tolist())


REFERENCES_TOGETHER = 512
"""Training samples in memory at a time: there may be any number of them."""


@dataclass(frozen=True)
class NearestSettings:
    """references: how many training samples are searched, drawn with `seed`; None: all of them."""

    references: int | None = 10_000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class NearestReferences:
    """The reference most similar to each query: index (q,), the first of equals, and similarity (q,).

    reading, searching: seconds for the features of the references, and for comparing them.
    """

    index: NDArray[np.int64]
    similarity: NDArray[np.float32]
    reading: float
    searching: float


def nearest(
    queries: Any, references: References, likeness: Likeness, advance: Callable[[int], None] = unseen
) -> NearestReferences:
    """The nearest references of features (q, ...); `advance` hears how many references were looked at."""
    index = similarity = None
    reading = searching = 0.0
    for start in range(0, len(references), REFERENCES_TOGETHER):
        chosen = references.indices[start : start + REFERENCES_TOGETHER]
        begun = perf_counter()
        features = likeness.features(references.samples, chosen)
        read = perf_counter()
        alike = likeness.similarity(queries, features)
        best = alike.argmax(1)
        value = alike[np.arange(len(best)), best]
        if index is None or similarity is None:
            index, similarity = best.astype(np.int64), value
        else:
            closer = value > similarity
            index, similarity = np.where(closer, start + best, index), np.where(closer, value, similarity)
        searching += perf_counter() - read
        reading += read - begun
        advance(len(chosen))
    if index is None or similarity is None:
        raise ValueError("there is no training sample to be nearest")
    return NearestReferences(index, similarity, reading, searching)


@dataclass(frozen=True, eq=False)
class BaselinePrediction:
    """Predicted graphs in the order of the samples, and what they cost.

    seconds_per_prediction: wall time over the number of predictions, once the training samples are read.
    preparation_seconds: reading the training samples and, for a kernel, solving with them: once for any number
    of predictions. settings: those used, `references` being how many training samples there were in the end.
    likeness: by what inputs were compared.
    """

    graphs: list[Graph]
    seconds_per_prediction: float
    settings: NearestSettings | BarycentreSettings
    preparation_seconds: float = field(default=0.0, kw_only=True)
    likeness: str = field(kw_only=True)


NEAREST, BARYCENTRE, BARYCENTRE_TRUE_SIZE = "nearest", "barycentre", "barycentre-true-size"
BASELINES: dict[str, type[NearestSettings | BarycentreSettings]] = {
    NEAREST: NearestSettings,
    BARYCENTRE: BarycentreSettings,
    BARYCENTRE_TRUE_SIZE: BarycentreSettings,
}
"""The names of all untrained methods, and what settings each takes."""


def predict_baseline(
    name: str,
    run: Run,
    indices: Sequence[int],
    split: str,
    *,
    settings: NearestSettings | BarycentreSettings | None = None,
    encoder: nn.Module | None = None,
    advance: Callable[[int], None] = unseen,
) -> BaselinePrediction:
    """What a method of `BASELINES` answers to some samples of a split of the run's task.

    It knows the run's training split, and of the samples only their inputs ("barycentre-true-size" also their
    sizes). Indices mean the samples that `graphwright evaluate` gives these numbers. Inputs are compared as they
    are, or by the features of an encoder. `advance` hears of training samples read (nearest) or of predictions.
    """
    chosen = next((each for each in SPLITS if each == split), None)
    if chosen is None:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
    task = task_of(run.task)
    samples = task.data(chosen, limit=max(indices, default=0) + 1)
    return predict_samples(name, task, samples, indices, settings=settings, encoder=encoder, advance=advance)


def baseline_likeness(task: Task, encoder: nn.Module | None = None) -> Likeness:
    """How a task's inputs are compared: by an encoder's features if one is given, else as they are."""
    return task.likeness() if encoder is None else EncoderLikeness(encoder)


def predict_samples(
    name: str,
    task: Task,
    samples: Samples,
    indices: Sequence[int],
    *,
    settings: NearestSettings | BarycentreSettings | None = None,
    encoder: nn.Module | None = None,
    advance: Callable[[int], None] = unseen,
) -> BaselinePrediction:
    """`predict_baseline` on any samples of the task, such as those of a file."""
    if name not in BASELINES:
        raise ValueError(f"there is no baseline {name!r}: they are {', '.join(BASELINES)}")
    if not len(indices):
        raise ValueError("indices must name at least one sample")
    used = BASELINES[name]() if settings is None else settings
    likeness = baseline_likeness(task, encoder)
    if name == NEAREST and isinstance(used, NearestSettings):
        return _nearest(task, samples, indices, used, likeness, advance)
    if name != NEAREST and isinstance(used, BarycentreSettings):
        size = SizeRule.TRUE if name == BARYCENTRE_TRUE_SIZE else SizeRule.VOTE
        return _barycentre(task, samples, indices, replace(used, size=size), likeness, advance)
    raise ValueError(f"{name} takes {BASELINES[name].__name__}, got {type(used).__name__}")


def _nearest(
    task: Task,
    samples: Samples,
    indices: Sequence[int],
    settings: NearestSettings,
    likeness: Likeness,
    advance: Callable[[int], None],
) -> BaselinePrediction:
    references = references_of(task, settings.references, settings.seed)
    begun = perf_counter()
    queries = likeness.features(samples, indices)
    read = perf_counter() - begun
    matches = nearest(queries, references, likeness, advance)
    return BaselinePrediction(
        [references.graph(at) for at in matches.index.tolist()],
        (read + matches.searching) / len(indices),
        replace(settings, references=len(references)),
        preparation_seconds=matches.reading,
        likeness=likeness.name,
    )


def _barycentre(
    task: Task,
    samples: Samples,
    indices: Sequence[int],
    settings: BarycentreSettings,
    likeness: Likeness,
    advance: Callable[[int], None],
) -> BaselinePrediction:
    begun = perf_counter()
    references = references_of(task, settings.references, settings.seed)
    known = likeness.features(references.samples, references.indices)
    alike = likeness.similarity(known, known)
    scale = settings.bandwidth * likeness.scale(alike)
    ridge = RidgeWeights.of(likeness.kernel(alike, scale), settings.ridge)
    prepared = perf_counter()
    kernel = likeness.kernel(likeness.similarity(likeness.features(samples, indices), known), scale)
    weights = ridge.weights(kernel)
    graphs = []
    for at, index in enumerate(indices):
        mixture = largest(weights[at], kernel[at], settings.kept)
        parts = [references.graph(reference) for reference in mixture.references.tolist()]
        size = (
            int(samples[index].graph.size)
            if settings.size is SizeRule.TRUE
            else vote([part.size for part in parts], mixture.weights)
        )
        result = barycentre(parts, mixture.weights, size, settings)
        graphs.append(result.graph(task.vocabulary, settings.threshold))
        advance(1)
    return BaselinePrediction(
        graphs,
        (perf_counter() - prepared) / len(indices),
        replace(settings, references=len(references)),
        preparation_seconds=prepared - begun,
        likeness=likeness.name,
    )


def nearest_figures(result: Evaluated, advance: Callable[[int], None] = unseen) -> dict[str, Any]:
    """The nearest training samples in place of a model's predictions, on the same samples; all figures.

    Generated training samples are searched in part, those of files all. `method` says how.
    """
    task, evaluation = result.model.task, result.evaluation
    settings = NearestSettings() if task.generated else NearestSettings(references=None)
    answered = predict_samples(NEAREST, task, result.data, evaluation.indices, settings=settings, advance=advance)
    report = replace(evaluate_graphs(answered.graphs, evaluation.targets), groups=evaluation.report.groups)
    extras = task.extras(answered.graphs, evaluation.targets)
    figures = replace(result, evaluation=replace(evaluation, report=report), extras=extras).figures()
    method = {"name": NEAREST, "likeness": answered.likeness} | asdict(answered.settings)
    return figures | {"method": method, "seconds_per_prediction": answered.seconds_per_prediction}
