"""A trained predictor by name: a run folder, a shipped model, or a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from pydantic import ValidationError
from torch import Tensor

from graphwright.decoding import Formula, harden
from graphwright.decoding.candidates import Candidate
from graphwright.files import SHIPPED_MODELS
from graphwright.graphs import Graph, Prediction, Vocabulary
from graphwright.inference import checkpoint as checkpoints
from graphwright.inference.build import build_predictor, slots
from graphwright.inference.checkpoint import CheckpointError, expanded
from graphwright.inference.decoders import PREDICTING, Decoder, candidates, default_decoder
from graphwright.known import Known, Library, Memory, Placement, Recalling
from graphwright.models import GraphPredictor
from graphwright.settings import MATCHINGS, Run
from graphwright.tasks import Task, known_graphs, task_of

MODEL_NAME = "model"
PREDICTOR = "model.predictor."
"""Begins the names of its weights."""
AVERAGE = "average.predictor."
"""Begins the names of their running mean, which is taken instead where a run has one."""


@dataclass(frozen=True, eq=False)
class PredictedGraph:
    """A predicted graph and the model's probability of it.

    That is of exactly these decisions, slots taken as independent, or of this graph among those recognised.

    candidates: the most probable distinct graphs, this one first, where they were asked for.
    """

    graph: Graph
    confidence: float
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A predictor with the settings it was trained under."""

    name: str
    run: Run
    predictor: GraphPredictor
    facts: Mapping[str, Any]
    library: Library | None = None
    """Known graphs that came with it; without them they are those of its training data."""
    remembered: Memory | None = None
    """Training inputs that came with it; a run's model takes them from its training data."""

    @cached_property
    def task(self) -> Task:
        """What it predicts from what."""
        return task_of(self.run.task)

    @property
    def vocabulary(self) -> Vocabulary:
        """The labels of its graphs."""
        return self.task.vocabulary

    @property
    def decoder(self) -> Decoder:
        """The one that it was handed on with, or that answers best."""
        return Decoder(self.facts.get("decoder", default_decoder(self.task)))

    @property
    def checking(self) -> Task | None:
        """What checks its answers against the inputs, if anything does."""
        return self.task if self.task.checks_answers else None

    @cached_property
    def known(self) -> Known:
        """The distinct graphs that it knows, placed as it was trained to place them."""
        keeps_order = MATCHINGS[self.run.matching.kind].keeps_order
        placement = Placement.IN_ORDER if keeps_order else Placement.BEST
        library = self.library or known_graphs(self.task)
        library = replace(library, batch=library.batch.pad(slots(self.run)))
        return Known(library, placement, self.facts.get("temperature", 1.0))

    @cached_property
    def memory(self) -> Memory | None:
        """What it remembers beside what it has learned: nothing, where it recognises no graphs as wholes.

        Nor where it was handed on with known graphs alone: it answers as it did then, and needs no data.
        """
        if self.predictor.recogniser is None:
            return None
        if self.remembered is None and self.library is None:
            return self.task.memory(self.known.library)
        return self.remembered

    def answering(self, decoder: Decoder) -> GraphPredictor | Recalling:
        """The predictor as a decoder needs it: for known graphs it also recalls what it remembers."""
        return self._recalling if decoder is Decoder.KNOWN else self.predictor

    @cached_property
    def _recalling(self) -> GraphPredictor | Recalling:
        if self.memory is None:
            return self.predictor
        return Recalling(self.predictor, self.memory, self.task.bags).eval()

    def compiled(self) -> SavedModel:
        """The same model with its network compiled by torch at the first size that it sees.

        That takes up to a minute and a C++ compiler, and pays where inputs come one at a time for long; large
        batches are not faster (`python -m benchmarks prediction`).
        """
        return replace(self, predictor=cast(GraphPredictor, torch.compile(self.predictor, dynamic=False)))

    @torch.no_grad()
    def predict(
        self,
        given: Any,
        *,
        top: int = 1,
        decoder: Decoder | None = None,
        formula: Formula | None = None,
        seconds: float | None = None,
    ) -> list[PredictedGraph]:
        """The graph of each input, one or many: pictures; SMILES, RDKit molecules, bit vectors; or spectra.

        A batch (b, ...) as the task's data sets make it is taken as it is. Without a decoder the model's own is
        used. `top` above 1, or another decoder than the plain one, adds that many candidates with a probability
        each. With a formula, which only the valid and the known decoder obey, a valid graph has it and a known one
        fits it. seconds: for one input, after which valid and checked graphs are the best so far.
        """
        decoder = decoder or self.decoder
        if formula is not None and decoder not in (Decoder.VALID, Decoder.KNOWN):
            raise ValueError(f"the {decoder} decoder does not obey a formula; the valid and the known one do")
        inputs = self.task.inputs(given)
        prediction = self.answering(decoder)(inputs).graphs
        if top != 1 or decoder is not Decoder.PLAIN:
            bounds = self.task.input_bounds(given)
            if formula is not None:
                bounds = [formula] * len(prediction)
            known = self.known if decoder is Decoder.KNOWN else None
            effort = PREDICTING if seconds is None else PREDICTING.within(seconds)
            ranked = candidates(
                prediction,
                self.vocabulary,
                decoder,
                top,
                effort=effort,
                formulas=bounds,
                known=known,
                checking=self.checking,
                inputs=inputs,
            )
            answers = [each.candidates for each in ranked]
            return [PredictedGraph(first.graph, first.probability, (first, *rest)) for first, *rest in answers]
        graphs = harden(prediction, self.vocabulary).graphs(self.vocabulary)
        confidences = confidence(prediction).tolist()
        return [PredictedGraph(graph, value) for graph, value in zip(graphs, confidences, strict=True)]


def confidence(prediction: Prediction) -> Tensor:
    """(b,) probability of the hard decisions: presence of every slot, labels and pairs of the slots present."""
    present = prediction.presence > 0
    score = -torch.nn.functional.softplus(-prediction.presence.abs()).sum(1)
    if prediction.node_labels is not None:
        best = prediction.node_labels.log_softmax(2).amax(2)
        score = score + (best * present).sum(1)
    if prediction.edges.ndim == 3:
        pairs = -torch.nn.functional.softplus(-prediction.edges.abs())
    else:
        pairs = prediction.edges.log_softmax(1).amax(1)
    both = (present[:, :, None] & present[:, None, :]).triu(1)
    return (score + (pairs * both).sum((1, 2))).exp()


def shipped_names() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.parent.name for path in SHIPPED_MODELS.glob(f"*/{MODEL_NAME}.json"))


def load_model(source: str) -> SavedModel:
    """A model from a run folder (its best checkpoint), a shipped model's name, or a model's .json file."""
    path = _checkpoint_path(source)
    saved = checkpoints.load(path)
    try:
        run = Run.model_validate(saved.facts["settings"])
    except (KeyError, ValidationError) as error:
        raise CheckpointError(f"{path}.json does not hold the settings of a run: {error}") from error
    predictor = build_predictor(run)
    tensors = expanded(saved.tensors)
    prefix = AVERAGE if any(name.startswith(AVERAGE) for name in tensors) else PREDICTOR
    weights = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    try:
        predictor.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(f"{path}.json does not fit its own settings: {error}") from error
    task = task_of(run.task)
    library = Library.unpacked(saved.tensors, task.vocabulary, task.capacity)
    remembered = Memory.unpacked(saved.tensors)
    return SavedModel(Path(source).stem, run, predictor.eval(), saved.facts, library, remembered)


def log_beside(source: str) -> Path:
    """Where the training log of a model's run, or of an exported model, is if there is one."""
    folder = _checkpoint_path(source).parent
    return (folder.parent if folder.name == "checkpoints" else folder) / "log.csv"


def _checkpoint_path(source: str) -> Path:
    path = Path(source)
    if path.is_dir():
        for candidate in (path / "checkpoints" / "best", path / MODEL_NAME, path / "checkpoints" / "last"):
            if checkpoints.exists(candidate):
                return candidate
        raise CheckpointError(f"{path} holds no checkpoint: is it the folder of a run?")
    if path.suffix == ".json":
        return path.with_suffix("")
    if source in shipped_names():
        return SHIPPED_MODELS / source / MODEL_NAME
    known = ", ".join(shipped_names()) or "none"
    raise CheckpointError(f"no model {source!r}: give a run's folder, a model's .json file, or one of: {known}")
