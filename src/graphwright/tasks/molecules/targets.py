"""What every task has whose graphs are molecules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from graphwright.graphs import Graph
from graphwright.tasks.task import Extra, Places

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HasGraph(Protocol):
    """A sample with its graph."""

    @property
    def graph(self) -> Graph:
        """The target."""


class MoleculeTargets:
    """SMILES, a chemist's drawing and a chemist's metrics of a task's graphs; RDKit is imported when asked for."""

    def extras(self, predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:
        """Validity, same fingerprint, Tanimoto similarity."""
        from graphwright.tasks.molecules.chemistry import chemistry_extras

        return chemistry_extras(predicted, targets)

    def text(self, graph: Graph) -> str | None:
        """SMILES; None where no molecule has this graph."""
        from graphwright.tasks.molecules.chemistry import smiles_or_none

        return smiles_or_none(graph)

    def places(self, sample: HasGraph) -> Places:
        """A chemist's drawing of the graph."""
        from graphwright.tasks.molecules.drawing import depiction

        return depiction(sample.graph)

    def draw_graph(self, graph: Graph, axes: Axes, places: Places | None) -> None:
        """Atoms as letters, bonds as lines."""
        from graphwright.tasks.molecules.drawing import depiction, draw_structure

        draw_structure(graph, axes, depiction(graph) if places is None else places)
