"""Whether graphs are the same: colour refinement and individualisation, hashes, sets of distinct graphs."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy.sparse.csgraph import connected_components

from graphwright.graphs.graph import Graph, IntArray


def find_isomorphism(first: Graph, second: Graph) -> IntArray | None:
    """Positions p with `second.permute(p) == first`, or None. Labels are compared by name, sizes included."""
    if first.size != second.size or len(first.edges) != len(second.edges):
        return None
    node_names = {name: code for code, name in enumerate(sorted({*first.node_names, *second.node_names}))}
    edge_names = {name: code + 1 for code, name in enumerate(sorted({*first.edge_names, *second.edge_names}))}
    labels, matrix = _coded(first, node_names, edge_names)
    return _match(_refine(labels, matrix), matrix, *_coded(second, node_names, edge_names))


def is_isomorphic(first: Graph, second: Graph) -> bool:
    """Whether the two are the same labelled graph up to the order of their nodes."""
    return find_isomorphism(first, second) is not None


def refinement_hash(graph: Graph) -> str:
    """A digest equal for isomorphic graphs, and different for almost all others."""
    node_names, edge_names = sorted(set(graph.node_names)), sorted(set(graph.edge_names))
    labels, matrix = _coded(
        graph,
        {name: code for code, name in enumerate(node_names)},
        {name: code + 1 for code, name in enumerate(edge_names)},
    )
    colours, history = _refine(labels, matrix)
    cells = np.bincount(colours).tolist() if graph.size else []
    text = repr((graph.size, node_names, edge_names, history, cells))
    return hashlib.sha256(text.encode()).hexdigest()


_Coded = tuple[IntArray, IntArray]
_Refined = tuple[IntArray, list[bytes]]


def _coded(graph: Graph, node_names: dict[str, int], edge_names: dict[str, int]) -> _Coded:
    """Node colours (n,) and edge matrix (n, n) under codes shared between the graphs compared."""
    labels = np.array([node_names[name] for name in graph.node_names], np.int64)
    matrix = np.zeros((graph.size, graph.size), np.int64)
    for (i, j), name in zip(graph.edges.tolist(), graph.edge_names, strict=True):
        matrix[i, j] = matrix[j, i] = edge_names[name]
    return labels, matrix


def _match(left: _Refined, left_matrix: IntArray, right: IntArray, right_matrix: IntArray) -> IntArray | None:
    """For each left node the right one it is, or None. The left side comes refined: it is met many times."""
    colours, history = left
    right, right_history = _refine(right, right_matrix)
    if history != right_history:
        return None
    sizes = np.bincount(colours)
    if not np.array_equal(sizes, np.bincount(right)):
        return None
    if sizes.max(initial=1) == 1:
        match = np.argsort(right)[colours]
        return match if np.array_equal(left_matrix, right_matrix[np.ix_(match, match)]) else None
    usual = _usual_codes(colours, left_matrix)
    parts, others = _parts(colours, left_matrix, usual), _parts(right, right_matrix, usual)
    if len(parts) != len(others):
        return None
    if len(parts) > 1:
        return _match_parts((colours, left_matrix), parts, (right, right_matrix), others)
    cell = int(np.argmin(sizes))  # never a single node: that would be a part
    guess = colours.copy()
    guess[np.flatnonzero(colours == cell)[0]] = len(sizes)
    refined = _refine(guess, left_matrix)
    for node in np.flatnonzero(right == cell):
        other = right.copy()
        other[node] = len(sizes)
        mapping = _match(refined, left_matrix, other, right_matrix)
        if mapping is not None:
            return mapping
    return None


def _match_parts(left: _Coded, parts: list[IntArray], right: _Coded, others: list[IntArray]) -> IntArray | None:
    """Match part by part: isomorphism is an equivalence, so the first partner that fits is as good as any."""
    match = np.full(len(left[0]), -1, np.int64)
    waiting: dict[bytes, list[IntArray]] = {}
    for other in others:
        waiting.setdefault(np.sort(right[0][other]).tobytes(), []).append(other)
    for part in parts:
        colours, matrix = _restrict(left, part)
        refined = _refine(colours, matrix)
        candidates = waiting.get(np.sort(colours).tobytes(), [])
        for at, other in enumerate(candidates):
            mapping = _match(refined, matrix, *_restrict(right, other))
            if mapping is not None:
                match[part] = candidates.pop(at)[mapping]
                break
        else:
            return None
    return match


def _restrict(coded: _Coded, nodes: IntArray) -> _Coded:
    return coded[0][nodes], coded[1][np.ix_(nodes, nodes)]


def _usual_codes(colours: IntArray, matrix: IntArray) -> IntArray:
    """(c, c) the edge code that most pairs of nodes of two colours have."""
    count, codes = int(colours.max()) + 1, int(matrix.max()) + 1
    pair = (colours[:, None] * count + colours) * codes + matrix
    different = ~np.eye(len(colours), dtype=bool)
    seen = np.bincount(pair[different], minlength=count * count * codes)
    most: IntArray = seen.reshape(count, count, codes).argmax(2)
    return most


def _parts(colours: IntArray, matrix: IntArray, usual: IntArray) -> list[IntArray]:
    """Node sets between which every pair has its colours' usual code: each can be matched on its own."""
    unusual = matrix != usual[colours[:, None], colours]
    np.fill_diagonal(unusual, False)
    count, part = connected_components(unusual, directed=False)
    return [np.flatnonzero(part == at) for at in range(count)]


def _refine(colours: IntArray, matrix: IntArray) -> _Refined:
    """Colours 0.. refined until stable, and what each round saw (equal for isomorphic graphs).

    A node's next colour is its colour and the multiset of (edge label, colour) around it.
    """
    history: list[bytes] = []
    if not len(colours):
        return colours, history
    seen, colours = np.unique(colours, return_inverse=True)
    history.append(seen.tobytes())
    joined = matrix > 0
    degree = int(joined.sum(1).max())
    while True:
        count = int(colours.max()) + 1
        around = np.where(joined, matrix * count + colours[None, :], -1)
        around.sort(axis=1)
        signature = np.ascontiguousarray(np.column_stack([colours, around[:, len(colours) - degree :]]))
        rows = signature.view(np.dtype((np.void, signature.itemsize * (degree + 1)))).ravel()
        seen, refined = np.unique(rows, return_inverse=True)
        history.append(seen.tobytes())
        if len(seen) == count:
            return colours, history
        colours = refined


def neighbourhoods(graph: Graph, radius: int) -> set[str]:
    """Digests of the labelled surroundings of all nodes up to 0, 1, ... `radius` edges away.

    Two nodes of any graphs share that of a radius if so many rounds of label refinement do not tell them apart.
    """
    around: list[list[tuple[str, int]]] = [[] for _ in range(graph.size)]
    for (first, second), name in zip(graph.edges.tolist(), graph.edge_names, strict=True):
        around[first].append((name, second))
        around[second].append((name, first))
    colours = [_digest(0, name) for name in graph.node_names]
    seen = set(colours)
    for distance in range(1, radius + 1):
        colours = [
            _digest(distance, (colour, sorted((name, colours[other]) for name, other in around[node])))
            for node, colour in enumerate(colours)
        ]
        seen.update(colours)
    return seen


def _digest(distance: int, seen: object) -> str:
    return hashlib.blake2b(repr((distance, seen)).encode(), digest_size=16).hexdigest()


class DistinctGraphs:
    """The graphs met so far, each once; `graphs` is in the order in which they were first met."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._indices: dict[str, list[int]] = {}
        # The same graph mostly comes with its nodes in the same order, and need not be refined again.
        self._exact: dict[bytes, int] = {}

    def find(self, graph: Graph) -> int | None:
        """Where the graph is in `graphs`; None if it was not met."""
        exact = _bytes(graph)
        if exact not in self._exact:
            same = self._indices.get(refinement_hash(graph), [])
            index = self._among(same, graph)
            if index is None:
                return None
            self._exact[exact] = index
        return self._exact[exact]

    def add(self, graph: Graph) -> int:
        """Where the graph is in `graphs`; at the end, to which it is then added, if it is new."""
        exact = _bytes(graph)
        if exact not in self._exact:
            same = self._indices.setdefault(refinement_hash(graph), [])
            index = self._among(same, graph)
            if index is None:
                index = len(self.graphs)
                same.append(index)
                self.graphs.append(graph)
            self._exact[exact] = index
        return self._exact[exact]

    def _among(self, indices: list[int], graph: Graph) -> int | None:
        return next((at for at in indices if is_isomorphic(self.graphs[at], graph)), None)


def _bytes(graph: Graph) -> bytes:
    """Nodes and edges as they stand."""
    parts = (graph.node_labels, graph.edges, graph.edge_labels)
    return graph.size.to_bytes(4, "little") + b"".join(part.tobytes() for part in parts)
