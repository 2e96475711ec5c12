"""Settings to objects: task, predictor, matcher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphwright.graphs import GraphBatch, Prediction, Vocabulary
from graphwright.inference.model import build_predictor, slots
from graphwright.known import Library
from graphwright.known.head import Recognition, shared_parts
from graphwright.losses import GraphLoss, LossSettings, graph_loss
from graphwright.losses.relation_loss import relation_loss
from graphwright.matching import Matcher
from graphwright.models import GraphPredictor, Inputs, Predicted
from graphwright.models.arithmetic import without_autocast
from graphwright.settings import MATCHINGS, Run, SlotKind
from graphwright.settings.schema import ModelKind
from graphwright.tasks import Samples, known_graphs, task_of


def training_data(run: Run) -> Samples:
    """The samples that a run learns from, with what its slots ask for."""
    data = task_of(run.task).data("train")
    if run.model.slots is SlotKind.TOKENS:
        data.owners = True
    return data


def build_matcher(run: Run) -> Matcher:
    """The matcher that the settings name."""
    matcher = MATCHINGS[run.matching.kind].build(run, task_of(run.task).vocabulary, slots(run))
    assert isinstance(matcher, Matcher)
    return matcher


class StepResult(NamedTuple):
    """What one training step computes. A tuple of tensors, since Fabric and DDP walk what a module returns.

    loss: mean over the batch. terms: batch means, detached, in the order of `term_names`. health: the matcher's,
    for the log.
    """

    loss: Tensor
    terms: Tensor
    health: dict[str, float]


Criterion = Callable[[Prediction, GraphBatch, Tensor], GraphLoss]
"""The loss of predictions under plans (b, n, n)."""


def build_criterion(run: Run) -> Criterion:
    """The loss that a run's predictor is trained with."""
    loss = run.loss
    if run.model.kind is ModelKind.RELATIONFORMER:
        return partial(relation_loss, settings=loss)
    return partial(graph_loss, settings=loss)


class TrainingModel(nn.Module):
    """Predictor and matcher as one module, whose forward is the loss (so that DDP sees every parameter).

    loss: the labelled objective, by which any model's predictions are aligned when they are evaluated.
    recognition: of a predictor that scores known graphs as wholes, and its weight.
    """

    def __init__(
        self,
        predictor: GraphPredictor,
        matcher: Matcher,
        criterion: Criterion,
        loss: LossSettings,
        vocabulary: Vocabulary,
        recognition: tuple[Recognition, float] | None = None,
    ) -> None:
        super().__init__()
        self.predictor = predictor
        self.matcher = matcher
        self.criterion = criterion
        self.loss = loss
        self.vocabulary = vocabulary
        self.recognition = recognition

    def forward(
        self,
        inputs: Inputs,
        mask: Tensor,
        node_labels: Tensor,
        edge_labels: Tensor,
        owners: Tensor | None = None,
        attributes: Tensor | None = None,
    ) -> StepResult:
        """Inputs and the tensors of a padded `GraphBatch` -> mean loss over the batch (eq. 10)."""
        predicted: Predicted = self.predictor(inputs)
        target = GraphBatch(mask, node_labels, edge_labels, self.vocabulary, owners, attributes)
        target = target.pad(predicted.graphs.capacity)
        tokens, prior = predicted.tokens, None
        if tokens is not None and target.owners is not None:
            prior = tokens.prior(target.owners, target.mask)
        match = self.matcher(predicted.states, predicted.graphs, target, prior)
        with without_autocast(mask.device):
            loss = self.criterion(predicted.graphs, target, match.plan)
            recognition, weight = self._recognition(predicted.graphs, target)
            if tokens is not None:
                choice = self.loss.presence * tokens.loss(match.plan, target.mask)
                match = replace(match, auxiliary=match.auxiliary + choice)
        terms = torch.stack([term.detach().mean() for term in loss.terms.values()])
        further = torch.stack([match.auxiliary.detach().mean(), recognition.detach().mean()])
        total = loss.total + match.auxiliary + weight * recognition
        return StepResult(total.mean(), torch.cat([terms, further]), match.health)

    def _recognition(self, prediction: Prediction, target: GraphBatch) -> tuple[Tensor, float]:
        """(b,) the loss of known graphs' scores, and its weight."""
        if self.recognition is None or prediction.known is None:
            return prediction.presence.new_zeros(len(prediction)), 0.0
        criterion, weight = self.recognition
        return criterion(prediction.known, target), weight


def term_names(loss: LossSettings) -> tuple[str, ...]:
    """Names of `StepResult.terms`."""
    return (*loss.terms(), "auxiliary", "recognition")


def _recognition(run: Run, library: Library) -> tuple[Recognition, float]:
    if run.model.known_graphs != len(library) or not run.loss.recognition:
        raise ValueError(
            f"model.known_graphs is {run.model.known_graphs}, the training data have {len(library)} graphs "
            f"and loss.recognition is {run.loss.recognition:g}: tasks.resolved counts them"
        )
    return Recognition(library), run.loss.recognition


def build_network(run: Run) -> nn.Module:
    """All that a run trains, as far as its size goes: needs no data."""
    return nn.ModuleList([build_predictor(run), build_matcher(run)])


def build(run: Run, library: Library | None = None) -> TrainingModel:
    """Predictor and matcher of a run, freshly initialised; without known graphs given, its data are asked."""
    task = task_of(run.task)
    recognises = run.loss.recognition or run.model.known_graphs
    recognition = _recognition(run, library or known_graphs(task)) if recognises else None
    known_parts = None if recognition is None else shared_parts(recognition[0].library)
    predictor, matcher, loss = build_predictor(run, known_parts), build_matcher(run), run.loss
    return TrainingModel(predictor, matcher, build_criterion(run), loss, task.vocabulary, recognition)
