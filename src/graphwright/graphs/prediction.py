"""A batch of predicted graphs, as logits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

NO_SELF_LOOP = -20.0
"""Logit of an edge from a slot to itself, which no graph has: certain, and never learned."""


def without_self_loops(edges: Tensor) -> Tensor:
    """Edge logits (b, n, n), or class logits (b, classes, n, n), with "no edge" on the diagonal."""
    return no_edges(edges, torch.eye(edges.shape[-1], dtype=torch.bool, device=edges.device))


def no_edges(edges: Tensor, where: Tensor) -> Tensor:
    """Edge logits (b, n, n), or class logits (b, classes, n, n), with "no edge" where (.., n, n) says so."""
    if edges.ndim not in (3, 4):
        raise ValueError(f"edges must have shape (b, n, n) or (b, classes, n, n), got {tuple(edges.shape)}")
    if edges.ndim == 3:
        return edges.masked_fill(where, NO_SELF_LOOP)
    # Of two classes the logit of an edge is their difference.
    classes = edges.shape[1]
    certain = edges.new_full((classes, 1, 1), NO_SELF_LOOP if classes > 2 else NO_SELF_LOOP / 2)
    certain[0] *= -1
    return torch.where(where if where.ndim == 2 else where[:, None], certain, edges)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a predictor says of b graphs with n slots each.

    presence: (b, n) logits u of the slot being a node.
    edges: (b, n, n) logits Z of an edge, or (b, classes, n, n) logits Y with "none" as class 0.
    node_labels: (b, n, labels) logits V; None for graphs without node labels.
    diffusion: (b, n, labels) predicted D = A F; None without feature diffusion.
    known: (b, k) logits of graphs that are known beforehand, as wholes; None from a predictor that knows none.
    """

    presence: Tensor
    edges: Tensor
    node_labels: Tensor | None = None
    diffusion: Tensor | None = None
    known: Tensor | None = None

    def __post_init__(self) -> None:
        if self.presence.ndim != 2:
            raise ValueError(f"presence must have shape (b, n), got {tuple(self.presence.shape)}")
        if not self.presence.is_floating_point():
            raise ValueError(f"presence must hold logits, got {self.presence.dtype}")
        for name, tensor in (
            ("edges", self.edges),
            ("node_labels", self.node_labels),
            ("diffusion", self.diffusion),
            ("known", self.known),
        ):
            if tensor is not None and tensor.dtype != self.presence.dtype:
                raise ValueError(f"{name} is {tensor.dtype}, presence {self.presence.dtype}")
            if tensor is not None and tensor.device != self.presence.device:
                raise ValueError(f"{name} is on {tensor.device}, presence on {self.presence.device}")
        b, n = self.presence.shape
        wrong = self.edges.ndim not in (3, 4) or (
            tuple(self.edges.shape[:1]) + tuple(self.edges.shape[-2:]) != (b, n, n)
        )
        if wrong:
            raise ValueError(
                f"edges must have shape ({b}, {n}, {n}) or ({b}, classes, {n}, {n}), got {tuple(self.edges.shape)}"
            )
        if self.edges.ndim == 4 and self.edges.shape[1] < 2:
            raise ValueError("edges must have a class besides none, got one class")
        for name, tensor in (("node_labels", self.node_labels), ("diffusion", self.diffusion)):
            if tensor is not None and (tensor.ndim != 3 or tuple(tensor.shape[:2]) != (b, n)):
                raise ValueError(f"{name} must have shape ({b}, {n}, labels), got {tuple(tensor.shape)}")
        if self.known is not None and (self.known.ndim != 2 or len(self.known) != b):
            raise ValueError(f"known must have shape ({b}, graphs), got {tuple(self.known.shape)}")

    def __len__(self) -> int:
        return self.presence.shape[0]

    @property
    def capacity(self) -> int:
        """Number of slots, n."""
        return self.presence.shape[1]

    def only(self, real: Tensor) -> Prediction:
        """With every slot but the real ones (b, n) certainly absent and without an edge."""
        pairs = real[:, :, None] & real[:, None, :]
        presence = self.presence.masked_fill(~real, NO_SELF_LOOP)
        return replace(self, presence=presence, edges=no_edges(self.edges, ~pairs))

    @property
    def adjacency(self) -> Tensor:
        """(b, n, n) logits of an edge of any label: Z, or LSE(Y_1..) - Y_0 of the categorical head."""
        if self.edges.ndim == 3:
            return self.edges
        return self.edges[:, 1:].logsumexp(1) - self.edges[:, 0]
