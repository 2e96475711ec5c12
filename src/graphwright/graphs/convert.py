"""Graphs to and from networkx and node-link JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from graphwright.graphs.graph import Attribute, FloatArray, Graph, Vocabulary

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(graph: Graph) -> nx.Graph[int]:
    """A `networkx.Graph` on 0..n-1 with a `label` (name) on every node and edge, and the nodes' attributes."""
    import networkx as nx

    result: nx.Graph[int] = nx.Graph()
    labelled = zip(graph.node_names, node_fields(graph), strict=True)
    result.add_nodes_from((node, {"label": name} | fields) for node, (name, fields) in enumerate(labelled))
    result.add_edges_from(
        (i, j, {"label": name}) for (i, j), name in zip(graph.edges.tolist(), graph.edge_names, strict=True)
    )
    return result


def from_networkx(source: nx.Graph[Any], vocabulary: Vocabulary | None = None) -> Graph:
    """A graph from a `networkx.Graph`, nodes in its own order; their `label`, if any, names them.

    Further numbers, or lists of them, that all nodes have are attributes: those that the vocabulary names, or all.
    """
    if source.is_directed() or source.is_multigraph():
        raise ValueError("only undirected graphs without parallel edges are supported")
    position = {node: at for at, node in enumerate(source.nodes)}
    ends = [(position[i], position[j]) for i, j in source.edges]
    nodes = [dict(data) for _, data in source.nodes(data=True)]
    return _build(nodes, ends, [data.get("label") for *_, data in source.edges(data=True)], vocabulary)


def to_json(graph: Graph) -> dict[str, Any]:
    """Node-link form, as networkx writes it: `nodes` (id, label) and `edges` (source, target, label).

    Attributes are further fields of the nodes, the numbers of a vector a list.
    """
    labelled = zip(graph.node_names, node_fields(graph), strict=True)
    return {
        "directed": False,
        "multigraph": False,
        "graph": {},
        "nodes": [{"id": node, "label": name} | fields for node, (name, fields) in enumerate(labelled)],
        "edges": [
            {"source": i, "target": j, "label": name}
            for (i, j), name in zip(graph.edges.tolist(), graph.edge_names, strict=True)
        ],
    }


def from_json(data: Mapping[str, Any], vocabulary: Vocabulary | None = None) -> Graph:
    """A graph from node-link JSON; `edges` may be called `links`, as older networkx does.

    Attributes as in `from_networkx`.
    """
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
            raise ValueError(f"nodes[{at}] repeats the id {_shown(identity)}")
        position[identity] = at
    ends = []
    for at, edge in enumerate(edges):
        pair = [_field(edge, side, f"{links}[{at}]") for side in ("source", "target")]
        for node in pair:
            if node not in position:
                raise ValueError(f"{links}[{at}] names node {_shown(node)}, which is not in nodes")
        ends.append((position[pair[0]], position[pair[1]]))
    return _build(nodes, ends, [edge.get("label") for edge in edges], vocabulary)


def _build(
    nodes: Sequence[Mapping[str, Any]],
    ends: list[tuple[int, int]],
    edge_labels: list[Any],
    vocabulary: Vocabulary | None,
) -> Graph:
    labels, joins = _names([node.get("label") for node in nodes], "nodes"), _names(edge_labels, "edges")
    measured = measurements(nodes)
    if vocabulary is not None:
        graph = Graph.build(labels or len(nodes), ends, joins, vocabulary)
        if not vocabulary.attributes or not measured:
            return graph
        # By name, in the vocabulary's order.
        own = Vocabulary(vocabulary.nodes, vocabulary.edges, tuple(map(Attribute, measured)))
        values = Graph(graph.node_labels, graph.edges, graph.edge_labels, own, _columns(measured))
        return values.with_vocabulary(vocabulary)
    named = Vocabulary.of(labels or (), joins or ())
    named = Vocabulary(named.nodes, named.edges, tuple(map(Attribute, measured)))
    return Graph.build(labels or len(nodes), ends, joins, named, _columns(measured) if measured else None)


VECTOR_NUMBER = re.compile(r"(.+)\[(\d+)\]")
"""The name of a number that is part of a vector."""


def node_fields(graph: Graph) -> list[dict[str, float | list[float]]]:
    """The attributes of every node by name, those of a vector together."""
    if graph.attributes is None:
        return [{} for _ in range(graph.size)]
    rows = []
    for values in graph.attributes.tolist():
        row: dict[str, Any] = {}
        for name, value in zip(graph.vocabulary.attribute_names, values, strict=True):
            part = VECTOR_NUMBER.fullmatch(name)
            if part is None:
                row[name] = value
            else:
                row.setdefault(part[1], []).append(value)
        rows.append(row)
    return rows


def measurements(nodes: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The numbers that all nodes have beside id and label, by name: a value for every node."""
    rows = [_measured(node, f"nodes[{at}]") for at, node in enumerate(nodes)]
    common = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
    return {name: [row[name] for row in rows] for name in common}


def _measured(node: Mapping[str, Any], where: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for field, value in node.items():
        if field in ("id", "label") or not isinstance(field, str) or not field:
            continue
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        several = isinstance(plain, list | tuple)
        for at, each in enumerate(plain if several else [plain]):
            if isinstance(each, bool) or not isinstance(each, Real):
                break
            if not _is_finite(each):
                raise ValueError(f"{where}.{field} is {_shown(each)}")
            numbers[f"{field}[{at}]" if several else field] = float(each)
    return numbers


def _columns(measured: Mapping[str, list[float]]) -> FloatArray:
    return np.array(list(measured.values()), np.float64).T


def _names(labels: list[Any], field: str) -> list[str] | None:
    """Labels as names; None where nothing is labelled. Half-labelled graphs are refused."""
    for at, label in enumerate(labels):
        if label is not None and not _is_scalar(label):
            raise ValueError(f"{field}[{at}].label must be a string or a number, got {_shown(label)}")
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


def _shown(value: Any) -> str:
    """In a message; a number may have more digits than Python writes, a list be deeper than it can follow."""
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):
        return f"one that is too long to show ({type(value).__name__})"


def _field(record: Mapping[str, Any], field: str, where: str) -> Any:
    if field not in record:
        raise ValueError(f"{where} has no {field!r}")
    value = _identity(record[field])
    if value is None:
        raise ValueError(f"{where}.{field} must be a string or a number, got {_shown(record[field])}")
    return value


DEEPEST = 8
"""Tuples in one another that name a node: without an end, a hostile file's would be a stack's."""


def _identity(value: Any, deepest: int = DEEPEST) -> Any:
    """A node's id: a string, a number, or a tuple of them (an array, once through JSON); None for others."""
    if isinstance(value, list | tuple):
        parts = tuple(_identity(part, deepest - 1) for part in value) if deepest else (None,)
        return None if None in parts else parts
    return value if _is_scalar(value) else None


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, Real) and _is_finite(value))


def _is_finite(value: Real) -> bool:
    """Whether a number is one that a float can hold."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
