"""Graphs to and from networkx and node-link JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from graphwright.graphs.graph import Graph, Vocabulary

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(graph: Graph) -> nx.Graph[int]:
    """A `networkx.Graph` on 0..n-1 with a `label` (name) on every node and edge."""
    import networkx as nx

    result: nx.Graph[int] = nx.Graph()
    result.add_nodes_from((node, {"label": name}) for node, name in enumerate(graph.node_names))
    result.add_edges_from(
        (i, j, {"label": name}) for (i, j), name in zip(graph.edges.tolist(), graph.edge_names, strict=True)
    )
    return result


def from_networkx(source: nx.Graph[Any], vocabulary: Vocabulary | None = None) -> Graph:
    """A graph from a `networkx.Graph`, nodes in its own order; their `label`, if any, names them."""
    if source.is_directed() or source.is_multigraph():
        raise ValueError("only undirected graphs without parallel edges are supported")
    position = {node: at for at, node in enumerate(source.nodes)}
    ends = [(position[i], position[j]) for i, j in source.edges]
    return _build(
        [data.get("label") for _, data in source.nodes(data=True)],
        ends,
        [data.get("label") for *_, data in source.edges(data=True)],
        vocabulary,
    )


def to_json(graph: Graph) -> dict[str, Any]:
    """Node-link form, as networkx writes it: `nodes` (id, label) and `edges` (source, target, label)."""
    return {
        "directed": False,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": node, "label": name} for node, name in enumerate(graph.node_names)],
        "edges": [
            {"source": i, "target": j, "label": name}
            for (i, j), name in zip(graph.edges.tolist(), graph.edge_names, strict=True)
        ],
    }


def from_json(data: Mapping[str, Any], vocabulary: Vocabulary | None = None) -> Graph:
    """A graph from node-link JSON; `edges` may be called `links`, as older networkx does."""
    if not isinstance(data, Mapping):
        raise ValueError(f"node-link data must be an object, got {type(data).__name__}")
    if data.get("directed") or data.get("multigraph"):
        raise ValueError("only undirected graphs without parallel edges are supported")
    links = "links" if "edges" not in data and "links" in data else "edges"
    nodes, edges = _records(data, "nodes"), _records(data, links)
    position: dict[Any, int] = {}
    for at, node in enumerate(nodes):
        identity = _field(node, "id", f"nodes[{at}]")
        if identity in position:
            raise ValueError(f"nodes[{at}] repeats the id {identity!r}")
        position[identity] = at
    ends = []
    for at, edge in enumerate(edges):
        pair = [_field(edge, side, f"{links}[{at}]") for side in ("source", "target")]
        for node in pair:
            if node not in position:
                raise ValueError(f"{links}[{at}] names node {node!r}, which is not in nodes")
        ends.append((position[pair[0]], position[pair[1]]))
    return _build([node.get("label") for node in nodes], ends, [edge.get("label") for edge in edges], vocabulary)


def _build(
    labels: list[Any], ends: list[tuple[int, int]], edge_labels: list[Any], vocabulary: Vocabulary | None
) -> Graph:
    return Graph.build(_names(labels, "nodes") or len(labels), ends, _names(edge_labels, "edges"), vocabulary)


def _names(labels: list[Any], field: str) -> list[str] | None:
    """Labels as names; None where nothing is labelled. Half-labelled graphs are refused."""
    for at, label in enumerate(labels):
        if label is not None and not _is_scalar(label):
            raise ValueError(f"{field}[{at}].label must be a string or a number, got {label!r}")
    missing = [at for at, label in enumerate(labels) if label is None]
    if len(missing) == len(labels):
        return None
    if missing:
        raise ValueError(f"{field}[{missing[0]}] has no label, others have")
    return [str(label) for label in labels]


def _records(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    records = data.get(name)
    if not isinstance(records, list):
        raise ValueError(f"node-link data must have a list {name!r}")
    for at, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise ValueError(f"{name}[{at}] must be an object, got {type(record).__name__}")
    return records


def _field(record: Mapping[str, Any], field: str, where: str) -> Any:
    if field not in record:
        raise ValueError(f"{where} has no {field!r}")
    value = _identity(record[field])
    if value is None:
        raise ValueError(f"{where}.{field} must be a string or a number, got {record[field]!r}")
    return value


def _identity(value: Any) -> Any:
    """A node's id: a string, a number, or a tuple of them (an array, once through JSON); None for others."""
    if isinstance(value, list | tuple):
        parts = tuple(_identity(part) for part in value)
        return None if None in parts else parts
    return value if _is_scalar(value) else None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Real) and math.isfinite(value))
