"""The graph of a row: from its nodes and edges, or from node-link JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphwright.graphs import Graph, from_json
from graphwright.tasks.table.fault import RowError
from graphwright.tasks.table.file import Row, parsed

NODES, EDGES, GRAPH, DIRECTED = "nodes", "edges", "graph", "directed"
UNLABELLED_NODE, UNLABELLED_EDGE = "node", "edge"
"""What nodes and edges without a label are called."""


def target_columns(columns: Sequence[str], where: object) -> tuple[str, ...]:
    """The columns that hold the graph: graph, or nodes and edges; an error names what is missing."""
    has_graph, listed = GRAPH in columns, [name for name in (NODES, EDGES) if name in columns]
    if has_graph and listed:
        raise ValueError(f"{where} has a column {GRAPH} and a column {listed[0]}: keep one way to give the graph")
    if has_graph:
        return (GRAPH,)
    if len(listed) == 2:
        return (NODES, EDGES)
    found = f"it has {', '.join(columns)}" if columns else "it has none"
    if listed:
        missing = EDGES if listed == [NODES] else NODES
        raise ValueError(
            f"{where} has a column {listed[0]} but no column {missing}: the graph needs both; {found}"
        )
    raise ValueError(
        f"{where} has no graph: columns {NODES} and {EDGES}, or a column {GRAPH}, are missing; {found}"
    )


def target_of(row: Row, columns: Sequence[str]) -> Graph:
    """The graph of a row, under a vocabulary of its own labels; `RowError` says what is wrong."""
    for name in columns:
        if row.get(name) is None:
            raise RowError("missing value", name, "there is none")
    if row.get(DIRECTED):
        raise RowError("directed graph", DIRECTED, "it is directed, and only undirected graphs can be predicted")
    if tuple(columns) == (GRAPH,):
        graph = _node_link(parsed(row[GRAPH], GRAPH))
    else:
        graph = _listed(parsed(row[NODES], NODES), parsed(row[EDGES], EDGES))
    if not graph.size:
        raise RowError("empty graph", columns[0], "the graph has no node")
    return graph


def _listed(nodes: Any, edges: Any) -> Graph:
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes >= 0:
        nodes = [UNLABELLED_NODE] * nodes
    if not isinstance(nodes, list):
        raise RowError("not a list", NODES, f"expected a list of labels, got {nodes!r}")
    labels = [_label(label, NODES, f"label {at}") for at, label in enumerate(nodes)]
    if not isinstance(edges, list):
        raise RowError("not a list", EDGES, f"expected a list of pairs, got {edges!r}")
    found: dict[tuple[int, int], str] = {}
    for at, edge in enumerate(edges):
        if not isinstance(edge, list | tuple) or len(edge) not in (2, 3):
            raise RowError("not a pair", EDGES, f"edge {at} must be [i, j] or [i, j, label], got {edge!r}")
        first, second = (_index(node, len(labels), at) for node in edge[:2])
        label = UNLABELLED_EDGE if len(edge) == 2 else _label(edge[2], EDGES, f"the label of edge {at}")
        _refuse_loop(first, second, at, EDGES)
        _add(found, (min(first, second), max(first, second)), label, at, EDGES)
    pairs = sorted(found)
    return _graph(labels, pairs, [found[pair] for pair in pairs], EDGES)


def _node_link(data: Any) -> Graph:
    """networkx's form; both orders of an edge may be there, as long as they say the same."""
    if not isinstance(data, Mapping):
        raise RowError("not node-link JSON", GRAPH, f"expected an object with nodes and edges, got {data!r}")
    if data.get("directed"):
        raise RowError("directed graph", GRAPH, "it is directed, and only undirected graphs can be predicted")
    # A Parquet struct has every key that any row has.
    key = "links" if data.get("edges") is None else "edges"
    links = data.get(key)
    nodes = data.get("nodes")
    if not isinstance(nodes, list) or not isinstance(links, list):
        raise RowError("not node-link JSON", GRAPH, "expected lists nodes and edges (or links)")
    found: dict[tuple[str, str], str] = {}
    kept = []
    for at, link in enumerate(links):
        if not isinstance(link, Mapping):
            raise RowError("not node-link JSON", GRAPH, f"{key}[{at}] must be an object, got {link!r}")
        ends = [repr(link.get(side)) for side in ("source", "target")]
        _refuse_loop(ends[0], ends[1], at, GRAPH)
        label = str(link.get("label"))
        if _add(found, (min(ends), max(ends)), label, at, GRAPH):
            kept.append(link)
    try:
        graph = from_json({"nodes": nodes, "edges": kept})
    except ValueError as error:
        unknown = "which is not in nodes" in str(error)
        raise RowError("index out of range" if unknown else "not node-link JSON", GRAPH, str(error)) from error
    return graph


def _add(found: dict[Any, str], pair: Any, label: str, at: int, field: str) -> bool:
    """Whether the pair is new; another label for it is an error."""
    if pair not in found:
        found[pair] = label
        return True
    if found[pair] != label:
        ends = " and ".join(map(str, pair))
        detail = f"edge {at} joins nodes {ends} again, as {label!r}; before it was {found[pair]!r}"
        raise RowError("duplicate edge", field, detail)
    return False


def _refuse_loop(first: Any, second: Any, at: int, field: str) -> None:
    if first == second:
        raise RowError("self-loop", field, f"edge {at} joins node {first} to itself")


def _index(node: Any, size: int, at: int) -> int:
    if isinstance(node, float) and node.is_integer():
        node = int(node)
    if not isinstance(node, int) or isinstance(node, bool):
        raise RowError("not an index", EDGES, f"edge {at} must name nodes by their places from 0, got {node!r}")
    if not 0 <= node < size:
        raise RowError("index out of range", EDGES, f"edge {at} names node {node}, the graph has {size} (from 0)")
    return node


def _label(label: Any, field: str, what: str) -> str:
    if isinstance(label, float) and math.isnan(label):
        raise RowError("NaN", field, f"{what} is NaN")
    if isinstance(label, bool) or not isinstance(label, str | int | float):
        raise RowError("not a label", field, f"{what} must be text or a number, got {label!r}")
    return str(label)


def _graph(labels: list[str], pairs: list[tuple[int, int]], names: list[str], field: str) -> Graph:
    try:
        return Graph.build(labels, pairs, names)
    except ValueError as error:
        raise RowError("not a graph", field, str(error)) from error
