"""Graphs that are the same but for the order of their nodes, told from others."""

from __future__ import annotations

from graphwright.graphs.graph import Graph
from graphwright.graphs.isomorphism import is_isomorphic, refinement_hash


class DistinctGraphs:
    """The graphs met so far, each once; `graphs` is in the order in which they were first met."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._places: dict[str, list[int]] = {}

    def find(self, graph: Graph) -> int | None:
        """Where the graph is in `graphs`; None if it was not met."""
        same = self._places.get(refinement_hash(graph), [])
        return next((at for at in same if is_isomorphic(self.graphs[at], graph)), None)

    def place(self, graph: Graph) -> int:
        """Where the graph is in `graphs`; at the end, to which it is then added, if it is new."""
        found = self.find(graph)
        if found is not None:
            return found
        self._places.setdefault(refinement_hash(graph), []).append(len(self.graphs))
        self.graphs.append(graph)
        return len(self.graphs) - 1
