"""Settings to a predictor."""

from __future__ import annotations

from graphwright.known import Recogniser
from graphwright.models import GraphHead, GraphPredictor, NodeDecoder, TokenSlots
from graphwright.models.arithmetic import Bags
from graphwright.models.decoder import kept_tokens
from graphwright.models.relationformer import RelationDecoder, RelationHead
from graphwright.settings import PairKind, Run
from graphwright.settings.schema import ModelKind, SlotKind
from graphwright.tasks import task_of


def build_predictor(run: Run, known_parts: Bags | None = None) -> GraphPredictor:
    """The predictor, freshly initialised.

    known_parts: what the graphs have in common that it learns to recognise; to load weights none are needed.
    """
    model, task = run.model, task_of(run.task)
    encoder = task.encoder(model)
    sizes = (task.capacity, model.width, model.layers, model.heads, model.dropout, model.encoder_width)
    recogniser = None
    if model.known_graphs:
        parts = known_parts or Bags.single(model.known_graphs)
        recogniser = Recogniser(model.encoder_width, parts)
    if model.kind is ModelKind.RELATIONFORMER:
        relation_head = RelationHead(model.width, model.head_width, task.vocabulary)
        return GraphPredictor(encoder, RelationDecoder(*sizes), relation_head, recogniser)
    decoder = (
        NodeDecoder(*sizes)
        if model.slots is SlotKind.LEARNED
        else TokenSlots(task.capacity, model.spare_slots, *sizes[1:])
    )
    head = GraphHead(
        model.width,
        model.head_width,
        task.vocabulary,
        diffusion=task.diffusion,
        product=model.pairs is PairKind.PRODUCT,
    )
    return GraphPredictor(encoder, decoder, head, recogniser)


def slots(run: Run) -> int:
    """How many slots the predictor has."""
    capacity = task_of(run.task).capacity
    return capacity if run.model.slots is SlotKind.LEARNED else kept_tokens(capacity) + run.model.spare_slots
