"""The names behind integer labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

NO_EDGE = "none"
"""Name of edge class 0, in every edge vocabulary."""


@dataclass(frozen=True)
class Vocabulary:
    """Node-label names and edge-label names; a label's code is its position.

    Edge class 0 is always "none" (the pair is not joined), so that one categorical variable per pair says
    both whether there is an edge and which.
    """

    nodes: tuple[str, ...] = ("node",)
    edges: tuple[str, ...] = (NO_EDGE, "edge")

    def __post_init__(self) -> None:
        for field in ("nodes", "edges"):
            given = getattr(self, field)
            if isinstance(given, str):
                raise ValueError(f"vocabulary.{field} must be a tuple of names, got {given!r}")
            names = _strings(given, f"vocabulary.{field}")
            object.__setattr__(self, field, names)
            if not names:
                raise ValueError(f"vocabulary.{field} must not be empty")
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise ValueError(f"vocabulary.{field} names {repeated[0]!r} twice")
        if self.edges[0] != NO_EDGE:
            raise ValueError(f"vocabulary.edges must start with {NO_EDGE!r}, got {self.edges[0]!r}")
        if len(self.edges) < 2:
            raise ValueError(f"vocabulary.edges must name a class besides {NO_EDGE!r}")

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


def _code(codes: dict[str, int], name: str, what: str, position: int) -> int:
    if not isinstance(name, str) or name not in codes:
        raise ValueError(f"{what} {position} is {name!r}, which is not in the vocabulary {tuple(codes)}")
    return codes[name]
