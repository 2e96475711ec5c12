"""Exact isomorphism of labelled graphs, by colour refinement and individualisation.

VF2 walks node pairs and is exponential already on small regular graphs; refining colours after each guess
leaves a handful of guesses on every graph of the sizes met here.
"""

from __future__ import annotations

import hashlib

import numpy as np

from graphwright.graphs.graph import Graph, IntArray


def find_isomorphism(first: Graph, second: Graph) -> IntArray | None:
    """Positions p with `second.permute(p) == first`, or None. Labels are compared by name, sizes included."""
    if first.size != second.size or len(first.edges) != len(second.edges):
        return None
    node_names = {name: code for code, name in enumerate(sorted({*first.node_names, *second.node_names}))}
    edge_names = {name: code + 1 for code, name in enumerate(sorted({*first.edge_names, *second.edge_names}))}
    left, right = (_coded(graph, node_names, edge_names) for graph in (first, second))
    mapping = np.full(first.size, -1, np.int64)
    remaining = _components(right[1])
    # Isomorphism is an equivalence, so the first partner that fits a component is as good as any other.
    for component in _components(left[1]):
        for at, candidate in enumerate(remaining):
            match = _match_connected(_restrict(left, component), _restrict(right, candidate))
            if match is not None:
                mapping[component] = candidate[match]
                remaining.pop(at)
                break
        else:
            return None
    return mapping


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


def _restrict(coded: _Coded, nodes: IntArray) -> _Coded:
    labels, matrix = coded
    return labels[nodes], matrix[np.ix_(nodes, nodes)]


def _components(matrix: IntArray) -> list[IntArray]:
    unseen = set(range(len(matrix)))
    components = []
    while unseen:
        frontier = [min(unseen)]
        component = set(frontier)
        while frontier:
            reached = set(np.flatnonzero(matrix[frontier.pop()]).tolist()) - component
            component |= reached
            frontier.extend(reached)
        unseen -= component
        components.append(np.array(sorted(component), np.int64))
    return components


def _match_connected(left: _Coded, right: _Coded) -> IntArray | None:
    if len(left[0]) != len(right[0]):
        return None
    return _search(_refine(*left), left[1], right[0], right[1])


def _search(left: _Refined, left_matrix: IntArray, right: IntArray, right_matrix: IntArray) -> IntArray | None:
    """A match of two coloured graphs, the left one refined already since it stays while the right one varies."""
    colours, history = left
    right, right_history = _refine(right, right_matrix)
    if history != right_history:
        return None
    sizes = np.bincount(colours)
    if not np.array_equal(sizes, np.bincount(right)):
        return None
    if sizes.max() == 1:
        match = np.argsort(right)[colours]
        return match if np.array_equal(left_matrix, right_matrix[np.ix_(match, match)]) else None
    cell = int(np.argmin(np.where(sizes > 1, sizes, len(colours) + 1)))
    guess = colours.copy()
    guess[np.flatnonzero(colours == cell)[0]] = len(sizes)
    refined = _refine(guess, left_matrix)
    for node in np.flatnonzero(right == cell):
        other = right.copy()
        other[node] = len(sizes)
        found = _search(refined, left_matrix, other, right_matrix)
        if found is not None:
            return found
    return None


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
        signature = np.column_stack([colours, around[:, len(colours) - degree :]])
        rows = signature.view(np.dtype((np.void, signature.itemsize * (degree + 1)))).ravel()
        seen, refined = np.unique(rows, return_inverse=True)
        history.append(seen.tobytes())
        if len(seen) == count:
            return colours, history
        colours = refined
