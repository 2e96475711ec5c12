"""Graphs that are the same but for the order of their nodes, told from others."""

from __future__ import annotations

from graphwright.graphs.graph import Graph
from graphwright.graphs.isomorphism import is_isomorphic, refinement_hash


class DistinctGraphs:
    """The graphs met so far, each once; `graphs` is in the order in which they were first met."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self._places: dict[str, list[int]] = {}
        # The same graph mostly comes with its nodes in the same order, and need not be refined again.
        self._exact: dict[bytes, int] = {}

    def find(self, graph: Graph) -> int | None:
        """Where the graph is in `graphs`; None if it was not met."""
        exact = _bytes(graph)
        if exact not in self._exact:
            same = self._places.get(refinement_hash(graph), [])
            found = self._among(same, graph)
            if found is None:
                return None
            self._exact[exact] = found
        return self._exact[exact]

    def place(self, graph: Graph) -> int:
        """Where the graph is in `graphs`; at the end, to which it is then added, if it is new."""
        exact = _bytes(graph)
        if exact not in self._exact:
            same = self._places.setdefault(refinement_hash(graph), [])
            found = self._among(same, graph)
            if found is None:
                found = len(self.graphs)
                same.append(found)
                self.graphs.append(graph)
            self._exact[exact] = found
        return self._exact[exact]

    def _among(self, places: list[int], graph: Graph) -> int | None:
        return next((at for at in places if is_isomorphic(self.graphs[at], graph)), None)


def _bytes(graph: Graph) -> bytes:
    """Nodes and edges as they stand."""
    parts = (graph.node_labels, graph.edges, graph.edge_labels)
    return graph.size.to_bytes(4, "little") + b"".join(part.tobytes() for part in parts)
