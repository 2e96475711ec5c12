"""Graphs: one, many, predicted; conversion, comparison, pictures."""

from graphwright.graphs.batch import GraphBatch, Prediction
from graphwright.graphs.convert import from_json, from_networkx, to_json, to_networkx
from graphwright.graphs.drawing import draw, layout, save_figure, turned_towards
from graphwright.graphs.graph import NO_EDGE, Attribute, Graph, Vocabulary
from graphwright.graphs.isomorphism import find_isomorphism, is_isomorphic, refinement_hash

__all__ = [
    "NO_EDGE",
    "Attribute",
    "Graph",
    "GraphBatch",
    "Prediction",
    "Vocabulary",
    "draw",
    "find_isomorphism",
    "from_json",
    "from_networkx",
    "is_isomorphic",
    "layout",
    "refinement_hash",
    "save_figure",
    "to_json",
    "to_networkx",
    "turned_towards",
]
