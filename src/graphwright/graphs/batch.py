"""Graphs of different sizes as one set of padded tensors, and what a model says of as many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from graphwright.graphs.graph import Graph, Vocabulary


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """b graphs of at most n nodes.

    mask: (b, n) bool, true at real nodes, which come first.
    node_labels: (b, n) int64 codes, 0 at padding.
    edge_labels: (b, n, n) int64 symmetric codes, 0 where there is no edge, and at padding.
    vocabulary: the names behind the codes.
    owners: (b, k, n) bool, which of k input tokens can stand for which node, where a task knows that; else None.
    attributes: (b, n, a) float32, those of `vocabulary.attributes` in deviations from their means, 0 at padding;
        None where graphs have none, or they are not known.
    """

    mask: Tensor
    node_labels: Tensor
    edge_labels: Tensor
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    owners: Tensor | None = None
    attributes: Tensor | None = None

    def __post_init__(self) -> None:
        for name, given in (
            ("mask", self.mask),
            ("node_labels", self.node_labels),
            ("edge_labels", self.edge_labels),
        ):
            if not isinstance(given, Tensor):
                raise ValueError(f"{name} must be a tensor, got {type(given).__name__}")
        if self.mask.ndim != 2 or self.mask.dtype != torch.bool:
            raise ValueError(f"mask must be bool of shape (b, n), got {self.mask.dtype} {tuple(self.mask.shape)}")
        b, n = self.mask.shape
        for name, tensor, shape in (
            ("node_labels", self.node_labels, (b, n)),
            ("edge_labels", self.edge_labels, (b, n, n)),
        ):
            if tuple(tensor.shape) != shape or tensor.dtype != torch.int64:
                raise ValueError(
                    f"{name} must be int64 of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}"
                )
            if tensor.device != self.mask.device:
                raise ValueError(f"{name} is on {tensor.device}, mask on {self.mask.device}")
        owners = self.owners
        if owners is not None and (
            owners.ndim != 3 or owners.dtype != torch.bool or (owners.shape[0], owners.shape[2]) != (b, n)
        ):
            raise ValueError(
                f"owners must be bool of shape ({b}, k, {n}), got {owners.dtype} {tuple(owners.shape)}"
            )
        attributes, named = self.attributes, len(self.vocabulary.attributes)
        if attributes is not None and (
            tuple(attributes.shape) != (b, n, named) or attributes.dtype != torch.float32
        ):
            raise ValueError(
                f"attributes must be float32 of shape {(b, n, named)}, "
                f"got {attributes.dtype} {tuple(attributes.shape)}"
            )
        if self.mask.is_meta:
            return  # shapes without values: nothing more to check
        pairs = self.mask[:, :, None] & self.mask[:, None, :]
        nodes, edges = len(self.vocabulary.nodes), len(self.vocabulary.edges)
        labels, matrix = self.node_labels, self.edge_labels
        _refuse(self.mask[:, 1:] & ~self.mask[:, :-1], "mask has a real node after padding")
        _refuse((labels < 0) | (labels >= nodes), f"node_labels must lie in 0..{nodes - 1}")
        _refuse((matrix < 0) | (matrix >= edges), f"edge_labels must lie in 0..{edges - 1}")
        _refuse((labels != 0) & ~self.mask, "node_labels must be 0 at padding")
        _refuse((matrix != 0) & ~pairs, "edge_labels must be 0 at padding")
        _refuse(matrix != matrix.mT, "edge_labels must be symmetric")
        _refuse(matrix.diagonal(dim1=1, dim2=2) != 0, "edge_labels must be 0 on the diagonal")
        if attributes is not None:
            _refuse((attributes != 0) & ~self.mask[:, :, None], "attributes must be 0 at padding")
            _refuse(~attributes.isfinite(), "attributes must be finite")

    @classmethod
    def collate(
        cls, graphs: Sequence[Graph], capacity: int | None = None, vocabulary: Vocabulary | None = None
    ) -> GraphBatch:
        """Stack graphs, padded to `capacity` nodes (default: the largest).

        All must have the same vocabulary; naming it gives an empty batch one, too.
        """
        if vocabulary is None:
            vocabulary = graphs[0].vocabulary if graphs else Vocabulary()
        largest = max((graph.size for graph in graphs), default=0)
        n = largest if capacity is None else capacity
        if n < 0:
            raise ValueError(f"capacity must not be negative, got {n}")
        mask = np.zeros((len(graphs), n), bool)
        labels = np.zeros((len(graphs), n), np.int64)
        matrix = np.zeros((len(graphs), n, n), np.int64)
        known = sum(graph.attributes is not None for graph in graphs)
        if known not in (0, len(graphs)):
            at = next(at for at, graph in enumerate(graphs) if graph.attributes is None)
            raise ValueError(f"graphs[{at}] has no attributes, others have")
        measured = np.zeros((len(graphs), n, len(vocabulary.attributes)), np.float32)
        for at, graph in enumerate(graphs):
            if graph.vocabulary != vocabulary:
                raise ValueError(
                    f"graphs[{at}] has {graph.vocabulary}, the batch {vocabulary}: see Graph.with_vocabulary"
                )
            if graph.size > n:
                raise ValueError(f"graphs[{at}] has {graph.size} nodes, more than the capacity {n}")
            mask[at, : graph.size] = True
            labels[at, : graph.size] = graph.node_labels
            first, second = graph.edges.T
            matrix[at, first, second] = graph.edge_labels
            matrix[at, second, first] = graph.edge_labels
            if graph.attributes is not None:
                measured[at, : graph.size] = vocabulary.standardised(graph.attributes)
        return cls(
            torch.from_numpy(mask),
            torch.from_numpy(labels),
            torch.from_numpy(matrix),
            vocabulary,
            attributes=torch.from_numpy(measured) if known else None,
        )

    def __len__(self) -> int:
        return self.mask.shape[0]

    def __getitem__(self, index: int) -> Graph:
        if not -len(self) <= index < len(self):
            raise IndexError(f"graph {index} of a batch of {len(self)}")
        size = int(self.mask[index].sum())
        labels, matrix = self.node_labels[index, :size], self.edge_labels[index, :size, :size]
        attributes = None
        if self.attributes is not None:
            standardised = self.attributes[index, :size].double().cpu().numpy()
            attributes = self.vocabulary.in_their_units(standardised)
        return Graph.from_matrix(labels.cpu().numpy(), matrix.cpu().numpy(), self.vocabulary, attributes)

    def graphs(self) -> list[Graph]:
        """The graphs, without padding."""
        return [self[index] for index in range(len(self))]

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """All but the vocabulary, in the order that a training model takes them."""
        return self.mask, self.node_labels, self.edge_labels, self.owners, self.attributes

    @property
    def capacity(self) -> int:
        """Padded number of nodes, n."""
        return self.mask.shape[1]

    @property
    def sizes(self) -> Tensor:
        """(b,) true numbers of nodes."""
        return self.mask.sum(1)

    @property
    def node_rows(self) -> Tensor:
        """(m,) the rows of the m real nodes of all graphs among the b * n, graph by graph."""
        return self.mask.flatten().nonzero()[:, 0]

    def padded(self, nodes: Tensor) -> Tensor:
        """(b, n, width) rows (m, width) of the real nodes in their rows, zero at padding."""
        b, n = self.mask.shape
        room = nodes.new_zeros(b * n, nodes.shape[1])
        return room.index_copy(0, self.node_rows, nodes).view(b, n, nodes.shape[1])

    def node_mask(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(b, n) the mask w = h* as numbers."""
        return self.mask.to(dtype)

    def adjacency(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(b, n, n) A*, 1 where there is an edge."""
        return (self.edge_labels > 0).to(dtype)

    def node_one_hot(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(b, n, labels) F*, zero rows at padding."""
        one_hot = torch.nn.functional.one_hot(self.node_labels, len(self.vocabulary.nodes))
        return one_hot.to(dtype) * self.mask[:, :, None]

    def edge_one_hot(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(b, classes, n, n) E_c, class 0 for no edge (padding included)."""
        one_hot = torch.nn.functional.one_hot(self.edge_labels, len(self.vocabulary.edges))
        return one_hot.permute(0, 3, 1, 2).to(dtype)

    def diffused_labels(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(b, n, labels) D = A* F*: how many neighbours of each label a node has."""
        return self.adjacency(dtype) @ self.node_one_hot(dtype)

    def to(self, device: torch.device | str) -> GraphBatch:
        """The batch on another device."""
        return replace(
            self,
            mask=self.mask.to(device),
            node_labels=self.node_labels.to(device),
            edge_labels=self.edge_labels.to(device),
            owners=None if self.owners is None else self.owners.to(device),
            attributes=None if self.attributes is None else self.attributes.to(device),
        )

    def select(self, samples: Tensor) -> GraphBatch:
        """The graphs at these indices, (k,) int64, in this order."""
        return replace(
            self,
            mask=self.mask[samples],
            node_labels=self.node_labels[samples],
            edge_labels=self.edge_labels[samples],
            owners=None if self.owners is None else self.owners[samples],
            attributes=None if self.attributes is None else self.attributes[samples],
        )

    def pad(self, capacity: int) -> GraphBatch:
        """The batch with room for `capacity` nodes."""
        extra = capacity - self.capacity
        if extra < 0:
            raise ValueError(f"capacity {capacity} is below the batch's own, {self.capacity}: use unpad")
        grow = torch.nn.functional.pad
        return replace(
            self,
            mask=grow(self.mask, (0, extra)),
            node_labels=grow(self.node_labels, (0, extra)),
            edge_labels=grow(self.edge_labels, (0, extra, 0, extra)),
            owners=None if self.owners is None else grow(self.owners, (0, extra)),
            attributes=None if self.attributes is None else grow(self.attributes, (0, 0, 0, extra)),
        )

    def unpad(self) -> GraphBatch:
        """The batch without the padding that no graph needs."""
        n = int(self.sizes.max()) if len(self) else 0
        return replace(
            self,
            mask=self.mask[:, :n],
            node_labels=self.node_labels[:, :n],
            edge_labels=self.edge_labels[:, :n, :n],
            owners=None if self.owners is None else self.owners[:, :, :n],
            attributes=None if self.attributes is None else self.attributes[:, :n],
        )

    def permute(self, order: Tensor) -> GraphBatch:
        """The batch with node `order[g, i]` of graph g moved to position i; real nodes stay first.

        order: (b, n) int64, a permutation per graph.
        """
        if order.shape != self.mask.shape or order.dtype != torch.int64:
            want, got = tuple(self.mask.shape), tuple(order.shape)
            raise ValueError(f"order must be int64 of shape {want}, got {order.dtype} {got}")
        if order.device != self.mask.device:
            raise ValueError(f"order is on {order.device}, mask on {self.mask.device}")
        _refuse(
            order.sort(1).values != torch.arange(self.capacity, device=order.device),
            "order must permute the nodes",
        )
        _refuse(self.mask.gather(1, order) != self.mask, "order must keep real nodes before padding")
        rows = order[:, :, None].expand(-1, -1, self.capacity)
        columns = order[:, None, :].expand(-1, self.capacity, -1)
        owners = self.owners
        if owners is not None:
            owners = owners.gather(2, order[:, None, :].expand(-1, owners.shape[1], -1))
        attributes = self.attributes
        if attributes is not None:
            attributes = attributes.gather(1, order[:, :, None].expand(-1, -1, attributes.shape[2]))
        return replace(
            self,
            node_labels=self.node_labels.gather(1, order),
            edge_labels=self.edge_labels.gather(1, rows).gather(2, columns),
            owners=owners,
            attributes=attributes,
        )


def _refuse(wrong: Tensor, message: str) -> None:
    """Raise, naming the first sample in which anything is wrong."""
    if wrong.any():
        sample = int(wrong.flatten(1).any(1).nonzero()[0])
        raise ValueError(f"{message} (sample {sample})")


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
    attributes: (b, n, a) the nodes' numbers in deviations from their means; None for graphs without any.
    """

    presence: Tensor
    edges: Tensor
    node_labels: Tensor | None = None
    diffusion: Tensor | None = None
    known: Tensor | None = None
    attributes: Tensor | None = None

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
            ("attributes", self.attributes),
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
        numbers = self.attributes
        if numbers is not None and (numbers.ndim != 3 or tuple(numbers.shape[:2]) != (b, n)):
            raise ValueError(f"attributes must have shape ({b}, {n}, numbers), got {tuple(numbers.shape)}")
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
