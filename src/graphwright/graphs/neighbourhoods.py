"""What surrounds the nodes of a graph: the parts that different graphs have in common."""

from __future__ import annotations

import hashlib

from graphwright.graphs.graph import Graph


def neighbourhoods(graph: Graph, radius: int) -> set[str]:
    """Digests of the labelled surroundings of all nodes up to 0, 1, ... `radius` edges away.

    Two nodes of any graphs share that of a radius if so many rounds of label refinement do not tell them apart.
    """
    around: list[list[tuple[str, int]]] = [[] for _ in range(graph.size)]
    for (first, second), name in zip(graph.edges.tolist(), graph.edge_names, strict=True):
        around[first].append((name, second))
        around[second].append((name, first))
    colours = [_digest(0, name) for name in graph.node_names]
    found = set(colours)
    for distance in range(1, radius + 1):
        colours = [
            _digest(distance, (colour, sorted((name, colours[other]) for name, other in around[node])))
            for node, colour in enumerate(colours)
        ]
        found.update(colours)
    return found


def _digest(distance: int, seen: object) -> str:
    return hashlib.blake2b(repr((distance, seen)).encode(), digest_size=16).hexdigest()
