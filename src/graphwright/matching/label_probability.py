"""Relationformer's matching: the assignment with the most probable labels, and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from graphwright.graphs import GraphBatch, Prediction
from graphwright.losses.relation_loss import class_logits, node_classes
from graphwright.matching.matcher import Match, Matcher
from graphwright.models.precision import without_autocast
from graphwright.transport import assign, permutation_matrix


class LabelProbabilityMatcher(Matcher):
    """Exact assignment of target nodes to slots with the largest sum of label probabilities; edges do not count.

    There is no geometry to tell nodes of one label apart, so among their slots the choice is free.
    """

    @torch.no_grad()
    def forward(
        self, states: Tensor, prediction: Prediction, target: GraphBatch, prior: Tensor | None = None
    ) -> Match:
        """Permutations; the slots that are left take the padding, which costs the same everywhere."""
        with without_autocast(states.device):
            probabilities = class_logits(prediction).softmax(2)
            classes = node_classes(target)[:, None, :].expand(-1, prediction.capacity, -1)
            cost = -probabilities.gather(2, classes) * target.mask[:, None, :]
            if prior is not None:
                cost = cost + prior
        plan = permutation_matrix(assign(cost), cost)
        return Match(plan, plan.new_zeros(len(plan)))
