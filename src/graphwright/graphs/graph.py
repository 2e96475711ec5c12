"""Graphs with labelled nodes and edges, and the vocabulary of their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_EDGE = "none"
"""Name of edge class 0, in every edge vocabulary."""
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Attribute:
    """A number that every node has beside its label, and the mean and deviation that it is learnt in.

    `name[0]`, `name[1]`, .. are the numbers of a vector called name.
    """

    name: str
    mean: float = 0.0
    deviation: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or self.name in ("", "id", "label"):
            raise ValueError(f"an attribute's name must be text other than id and label, got {self.name!r}")
        if not (np.isfinite(self.mean) and np.isfinite(self.deviation) and self.deviation > 0):
            raise ValueError(f"attribute {self.name} has mean {self.mean} and deviation {self.deviation}")


@dataclass(frozen=True)
class Vocabulary:
    """Node-label names and edge-label names; a label's code is its position. And the numbers that nodes have.

    Edge class 0 is always "none" (the pair is not joined), so that one categorical variable per pair says
    both whether there is an edge and which.
    """

    nodes: tuple[str, ...] = ("node",)
    edges: tuple[str, ...] = (NO_EDGE, "edge")
    attributes: tuple[Attribute, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("nodes", "edges"):
            given = getattr(self, kind)
            if isinstance(given, str):
                raise ValueError(f"vocabulary.{kind} must be a tuple of names, got {given!r}")
            names = _strings(given, f"vocabulary.{kind}")
            object.__setattr__(self, kind, names)
            if not names:
                raise ValueError(f"vocabulary.{kind} must not be empty")
            twice = _repeated(names)
            if twice is not None:
                raise ValueError(f"vocabulary.{kind} names {twice!r} twice")
        if self.edges[0] != NO_EDGE:
            raise ValueError(f"vocabulary.edges must start with {NO_EDGE!r}, got {self.edges[0]!r}")
        if len(self.edges) < 2:
            raise ValueError(f"vocabulary.edges must name a class besides {NO_EDGE!r}")
        object.__setattr__(self, "attributes", tuple(self.attributes))
        twice = _repeated(self.attribute_names)
        if twice is not None:
            raise ValueError(f"vocabulary.attributes names {twice!r} twice")

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """In the order of the columns of `Graph.attributes`."""
        return tuple(each.name for each in self.attributes)

    def standardised(self, attributes: FloatArray) -> FloatArray:
        """(..., a) attributes in deviations from their means."""
        mean, deviation = self._scales
        return (attributes - mean) / deviation

    def in_their_units(self, standardised: FloatArray) -> FloatArray:
        """(..., a) what `standardised` was made of."""
        mean, deviation = self._scales
        return standardised * deviation + mean

    @cached_property
    def _scales(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.array([each.mean for each in self.attributes], np.float64),
            np.array([each.deviation for each in self.attributes], np.float64),
        )

    @classmethod
    def of(cls, node_names: Iterable[str], edge_names: Iterable[str]) -> Vocabulary:
        """The vocabulary of the names seen, sorted; the default name where none was seen."""
        nodes = tuple(sorted(set(_strings(node_names, "node labels")))) or ("node",)
        edges = tuple(sorted(set(_strings(edge_names, "edge labels")) - {NO_EDGE})) or ("edge",)
        return cls(nodes, (NO_EDGE, *edges))

    @cached_property
    def _codes(self) -> tuple[dict[str, int], dict[str, int]]:
        return (
            {name: code for code, name in enumerate(self.nodes)},
            {name: code for code, name in enumerate(self.edges)},
        )

    def node_codes(self, names: Sequence[str]) -> list[int]:
        """Codes of node-label names."""
        return [_code(self._codes[0], name, "node label", at) for at, name in enumerate(names)]

    def edge_codes(self, names: Sequence[str]) -> list[int]:
        """Codes of edge-label names, never 0."""
        codes = [_code(self._codes[1], name, "edge label", at) for at, name in enumerate(names)]
        if 0 in codes:
            raise ValueError(f"edge label {codes.index(0)} is {NO_EDGE!r}, which means that there is no edge")
        return codes


def _strings(names: Iterable[str], what: str) -> tuple[str, ...]:
    names = tuple(names)
    for at, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"{what}[{at}] must be a string, got {name!r}")
    return names


def _repeated(names: Sequence[str]) -> str | None:
    """The first name, in alphabetical order, that there is twice."""
    return min((name for name, count in Counter(names).items() if count > 1), default=None)


def _code(codes: dict[str, int], name: str, what: str, position: int) -> int:
    if not isinstance(name, str) or name not in codes:
        raise ValueError(f"{what} {position} is {name!r}, which is not in the vocabulary {tuple(codes)}")
    return codes[name]


IntArray = NDArray[np.int64]
_LARGEST = 2**53


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected simple graph whose nodes and edges carry labels.

    node_labels: (n,) codes in `vocabulary.nodes`.
    edges: (e, 2) node pairs, each once, smaller index first, sorted.
    edge_labels: (e,) codes in `vocabulary.edges`, never 0.
    attributes: (n, a) the numbers that `vocabulary.attributes` names, in their units; None where there are none,
        or where they are not known.

    The arrays are read-only. `==` compares labels and edges node by node, `graphs.is_isomorphic` in any order.
    Attributes are measured, and no two measurements are equal: a metric says how far they are apart.
    """

    node_labels: IntArray
    edges: IntArray
    edge_labels: IntArray
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    attributes: FloatArray | None = None

    def __post_init__(self) -> None:
        labels = _integers(self.node_labels, "node_labels", (-1,))
        edges = _integers(self.edges, "edges", (-1, 2))
        edge_labels = _integers(self.edge_labels, "edge_labels", (-1,))
        _check_range(labels, "node_labels", 0, len(self.vocabulary.nodes))
        _check_range(edges, "edges", 0, len(labels))
        _check_range(edge_labels, "edge_labels", 1, len(self.vocabulary.edges))
        if len(edges) != len(edge_labels):
            raise ValueError(f"edge_labels has {len(edge_labels)} entries for {len(edges)} edges")
        loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
        if len(loops):
            raise ValueError(f"edges[{loops[0]}] joins node {edges[loops[0], 0]} to itself")
        edges = np.sort(edges, axis=1)
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        edges, edge_labels = edges[order], edge_labels[order]
        twice = np.flatnonzero((edges[1:] == edges[:-1]).all(axis=1))
        if len(twice):
            raise ValueError(f"edges names the pair {tuple(edges[twice[0]].tolist())} twice")
        for name, array in (("node_labels", labels), ("edges", edges), ("edge_labels", edge_labels)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.attributes is not None:
            object.__setattr__(self, "attributes", _numbers(self.attributes, len(labels), self.vocabulary))

    @classmethod
    def build(
        cls,
        labels: Sequence[str] | int,
        edges: ArrayLike = (),
        edge_labels: Sequence[str] | None = None,
        vocabulary: Vocabulary | None = None,
        attributes: ArrayLike | None = None,
    ) -> Graph:
        """A graph from label names (or a number of unlabelled nodes) and an edge list.

        Without a vocabulary, one is made of the names given. With one, labels may be left out only where it
        offers a single choice. attributes: (n, a), which only a vocabulary can name.
        """
        pairs = _integers(edges, "edges", (-1, 2))
        if isinstance(labels, np.integer):
            labels = int(labels)
        if not isinstance(labels, int | Iterable) or (isinstance(labels, int) and labels < 0):
            raise ValueError(f"labels must be names or a number of nodes, got {labels!r}")
        names = [] if isinstance(labels, int) else list(labels)
        edge_names = [] if edge_labels is None else list(edge_labels)
        if vocabulary is None:
            vocabulary = Vocabulary.of(names, edge_names)
        if isinstance(labels, int):
            names = _only(vocabulary.nodes, labels, "labels")
        if edge_labels is None:
            edge_names = _only(vocabulary.edges[1:], len(pairs), "edge_labels")
        nodes, joins = vocabulary.node_codes(names), vocabulary.edge_codes(edge_names)
        values = None if attributes is None else np.asarray(attributes, np.float64)
        return cls(np.array(nodes, np.int64), pairs, np.array(joins, np.int64), vocabulary, values)

    @classmethod
    def from_matrix(
        cls,
        node_labels: ArrayLike,
        edge_matrix: ArrayLike,
        vocabulary: Vocabulary | None = None,
        attributes: FloatArray | None = None,
    ) -> Graph:
        """A graph from node codes (n,) and a symmetric matrix (n, n) of edge codes, 0 where there is none."""
        vocabulary = vocabulary or Vocabulary()
        labels = _integers(node_labels, "node_labels", (-1,))
        matrix = _integers(edge_matrix, "edge_matrix", (len(labels), len(labels)))
        _check_range(matrix, "edge_matrix", 0, len(vocabulary.edges))
        uneven = np.argwhere(matrix != matrix.T)
        if len(uneven):
            i, j = uneven[0].tolist()
            raise ValueError(
                f"edge_matrix is not symmetric: [{i}, {j}] is {matrix[i, j]}, [{j}, {i}] is {matrix[j, i]}"
            )
        loops = np.flatnonzero(np.diag(matrix))
        if len(loops):
            raise ValueError(f"edge_matrix joins node {loops[0]} to itself")
        edges = np.argwhere(np.triu(matrix, 1))
        return cls(labels, edges, matrix[edges[:, 0], edges[:, 1]], vocabulary, attributes)

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.node_labels)

    @property
    def node_names(self) -> list[str]:
        """Label name of every node."""
        return [self.vocabulary.nodes[code] for code in self.node_labels]

    @property
    def edge_names(self) -> list[str]:
        """Label name of every edge."""
        return [self.vocabulary.edges[code] for code in self.edge_labels]

    def edge_matrix(self) -> IntArray:
        """(n, n) symmetric edge codes, 0 where there is no edge."""
        matrix = np.zeros((self.size, self.size), np.int64)
        first, second = self.edges.T
        matrix[first, second] = self.edge_labels
        matrix[second, first] = self.edge_labels
        return matrix

    def permute(self, order: ArrayLike) -> Graph:
        """The same graph with node `order[i]` moved to position i."""
        indices = _integers(order, "order", (self.size,))
        if not np.array_equal(np.sort(indices), np.arange(self.size)):
            raise ValueError(f"order is not a permutation of 0..{self.size - 1}")
        position = np.argsort(indices)
        return Graph(
            self.node_labels[indices],
            position[self.edges],
            self.edge_labels,
            self.vocabulary,
            self._attributes_at(indices),
        )

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """The graph induced on `nodes`, in that order."""
        indices = _integers(nodes, "nodes", (-1,))
        _check_range(indices, "nodes", 0, self.size)
        if len(np.unique(indices)) < len(indices):
            raise ValueError(f"nodes names a node twice: {indices.tolist()}")
        matrix = self.edge_matrix()[np.ix_(indices, indices)]
        return Graph.from_matrix(self.node_labels[indices], matrix, self.vocabulary, self._attributes_at(indices))

    def with_vocabulary(self, vocabulary: Vocabulary) -> Graph:
        """The same graph, by name, under another vocabulary: what a batch of graphs built apart needs.

        Attributes that the other does not name are dropped; those that it names must be there, if any are.
        """
        values = self.attributes if vocabulary.attributes else None
        if values is not None and vocabulary.attribute_names != self.vocabulary.attribute_names:
            columns = {name: at for at, name in enumerate(self.vocabulary.attribute_names)}
            for name in vocabulary.attribute_names:
                if name not in columns:
                    raise ValueError(f"there is no attribute {name!r} among {tuple(columns)}")
            values = values[:, [columns[name] for name in vocabulary.attribute_names]]
        return Graph.build(self.node_names, self.edges, self.edge_names, vocabulary, values)

    def _attributes_at(self, nodes: IntArray) -> FloatArray | None:
        return None if self.attributes is None else self.attributes[nodes]

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: numpy forgets that an array was read-only when it is pickled or copied.
        return Graph, (self.node_labels, self.edges, self.edge_labels, self.vocabulary, self.attributes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            np.array_equal(self.edges, other.edges)
            and self.node_names == other.node_names
            and self.edge_names == other.edge_names
        )

    def __hash__(self) -> int:
        return hash((tuple(self.node_names), self.edges.tobytes(), tuple(self.edge_names)))

    def __str__(self) -> str:
        """Labels of the nodes, and which are joined; edge labels where there are several."""
        named = len(self.vocabulary.edges) > 2
        pairs = zip(self.edges.tolist(), self.edge_names, strict=True)
        edges = ", ".join(f"{i}-{j} {name}" if named else f"{i}-{j}" for (i, j), name in pairs)
        nodes = ", ".join(f"{at} {name}{self._measured(at)}" for at, name in enumerate(self.node_names))
        return f"nodes {nodes or 'none'}; edges {edges or 'none'}"

    def _measured(self, node: int) -> str:
        """A node's attributes in brackets; nothing where there are none."""
        if self.attributes is None:
            return ""
        values = zip(self.vocabulary.attribute_names, self.attributes[node].tolist(), strict=True)
        return f" ({', '.join(f'{name} {value:.4g}' for name, value in values)})"

    def __repr__(self) -> str:
        return f"Graph({self.size} nodes, {len(self.edges)} edges)"


def _integers(values: Any, name: str, shape: tuple[int, ...]) -> IntArray:
    """A fresh int64 array of the given shape (-1: any length), or an error that names the argument."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of shape {shape}: {error}") from error
    if array.shape == (0,) and min(shape) < 1:
        array = np.zeros([max(length, 0) for length in shape], np.int64)
    if array.ndim != len(shape) or any(
        want not in (-1, have) for want, have in zip(shape, array.shape, strict=True)
    ):
        raise ValueError(f"{name} must have shape {shape} (-1: any), got {array.shape}")
    if array.dtype == np.int64:
        return array.copy()
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold integers, got {array.dtype}")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    # Not-a-number fails every comparison; what int64 cannot hold would wrap around.
    wrong = np.argwhere(~((np.floor(array) == array) & (array >= -_LARGEST) & (array <= _LARGEST)))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise ValueError(f"{name}{list(at)} is {array[at]}, which is not an integer below 2**53")
    return np.array(array, np.int64)


def _numbers(values: Any, nodes: int, vocabulary: Vocabulary) -> FloatArray:
    """The attributes of nodes as a fresh, read-only array, or an error that names what is wrong."""
    array = np.array(values, np.float64)
    shape = (nodes, len(vocabulary.attributes))
    if array.shape != shape:
        named = ", ".join(vocabulary.attribute_names) or "none"
        raise ValueError(f"attributes must have shape {shape} (the vocabulary names {named}), got {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        node, column = wrong[0].tolist()
        raise ValueError(f"attribute {vocabulary.attribute_names[column]} of node {node} is {array[node, column]}")
    array.setflags(write=False)
    return array


def _only(names: tuple[str, ...], count: int, argument: str) -> list[str]:
    """The one name there is, `count` times."""
    if count and len(names) > 1:
        raise ValueError(f"{argument} must be given: the vocabulary offers {names}")
    return [names[0]] * count


def _check_range(array: IntArray, name: str, low: int, high: int) -> None:
    if not array.size or (array.min() >= low and array.max() < high):
        return
    at = tuple(np.argwhere((array < low) | (array >= high))[0].tolist())
    raise ValueError(f"{name}{list(at)} is {array[at]}, expected {low}..{high - 1}")
