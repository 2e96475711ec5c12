"""What every task has whose graphs are molecules: SMILES, a chemist's metrics and drawings."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, is_isomorphic, layout
from graphwright.graphs.molecules import BONDS, MoleculeError, is_molecule, molecule_from_graph, smiles_from_graph
from graphwright.metrics.evaluation import is_isomorphic_skeleton
from graphwright.settings import Override
from graphwright.tasks.molecules.dataset import MoleculeSample
from graphwright.tasks.molecules.fingerprint import BITS, BitArray
from graphwright.tasks.task import Extra, Positions, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rdkit.DataStructs import ExplicitBitVect


FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChemistryMetrics:
    """Per pair of predicted and target molecule, (p,) each.

    valid: the prediction is a molecule in one part (`graphs.molecules.is_molecule`).
    same_fingerprint: both have the same ECFP4 (2048 bits); so do isomorphic graphs, whichever tautomer the order
    of their atoms makes of each.
    tanimoto: of the two fingerprints, 0 where one graph has none because RDKit accepts no structure of it.
    isomorphic_skeleton: same atoms and adjacency, whatever the bonds' labels.
    """

    valid: BoolArray
    same_fingerprint: BoolArray
    tanimoto: FloatArray
    isomorphic_skeleton: BoolArray


def chemistry_metrics(predicted: Sequence[Graph], target: Sequence[Graph]) -> ChemistryMetrics:
    """The figures of p pairs, predicted[i] against target[i]."""
    if len(predicted) != len(target):
        raise ValueError(f"{len(predicted)} predicted molecules for {len(target)} targets")
    from rdkit.DataStructs import TanimotoSimilarity

    similarities = np.zeros(len(target))
    same = np.zeros(len(target), bool)
    for at, (guess, truth) in enumerate(zip(predicted, target, strict=True)):
        one, other = fingerprint(guess), fingerprint(truth)
        if one is not None and other is not None:
            same[at] = one == other or is_isomorphic(guess, truth)
            similarities[at] = 1.0 if same[at] else TanimotoSimilarity(one, other)
    return ChemistryMetrics(
        np.array([is_molecule(graph) for graph in predicted], bool),
        same,
        similarities,
        np.array(
            [is_isomorphic_skeleton(guess, truth) for guess, truth in zip(predicted, target, strict=True)], bool
        ),
    )


def fingerprint(graph: Graph) -> ExplicitBitVect | None:
    """ECFP4 (Morgan, radius 2, 2048 bits) of the graph's molecule, in one part or several; None without one."""
    from rdkit.Chem import rdFingerprintGenerator

    try:
        molecule = molecule_from_graph(graph)
    except MoleculeError:
        return None
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits: ExplicitBitVect = generator.GetFingerprint(molecule)
    return bits


COLORS = {"C": "#222222", "N": "#2b50d8", "O": "#d62728", "F": "#2e8b57", "S": "#a08000", "Cl": "#2e8b57",
          "Br": "#8b3a2e", "I": "#6a3d9a", "P": "#c06000", "B": "#b07060", "Si": "#907050"}  # fmt: skip
GAP = 0.13
"""Distance between the lines of a double bond, where a bond is about 1.5 long."""
ROWS = 32


def depiction(graph: Graph) -> NDArray[np.float64]:
    """(n, 2) coordinates as RDKit would draw the atoms, valid or not, y downwards."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem.rdDepictor import Compute2DCoords
    except ImportError:
        return layout(graph)
    if graph.size == 0:
        return np.zeros((0, 2))
    with rdBase.BlockLogs():
        skeleton = Chem.RWMol()
        for name in graph.node_names:
            skeleton.AddAtom(Chem.Atom(name))
        for i, j in graph.edges.tolist():
            skeleton.AddBond(i, j, Chem.BondType.SINGLE)
        # Valences do not matter for positions: a drawing must not fail because a prediction is wrong.
        skeleton.UpdatePropertyCache(False)
        Chem.FastFindRings(skeleton)
        Compute2DCoords(skeleton)
    positions = skeleton.GetConformer().GetPositions()[:, :2]
    return np.array(positions * (1, -1), np.float64)


def draw_structure(graph: Graph, axes: Axes, positions: NDArray[np.float64]) -> None:
    """Letters for atoms, one to three lines for bonds, a dotted second line for aromatic ones."""
    for (i, j), code in zip(graph.edges.tolist(), graph.edge_labels.tolist(), strict=True):
        along = positions[j] - positions[i]
        across = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-9) * GAP
        for shift, style in _lines(BONDS[code]):
            ends = np.stack([positions[i], positions[j]]) + shift * across
            axes.plot(*ends.T, color="#333333", linewidth=1.4, linestyle=style, zorder=1)
    for name, (x, y) in zip(graph.node_names, positions.tolist(), strict=True):
        back = {"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": "none"}
        color = COLORS.get(name, "#222222")
        axes.text(x, y, name, ha="center", va="center", fontsize=9, color=color, zorder=3, bbox=back)
    if graph.size:
        axes.scatter(positions[:, 0], positions[:, 1], s=0)  # so that the panel covers the atoms
    axes.set_aspect("equal")
    axes.margins(0.15)
    axes.invert_yaxis()
    axes.set_axis_off()


def draw_bits(bits: BitArray, axes: Axes) -> None:
    """The active bits as dark cells of a field."""
    field = np.zeros(BITS)
    field[np.asarray(bits, np.int64)] = 1
    axes.imshow(field.reshape(ROWS, -1), cmap="Greys", interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"{len(bits)} of {BITS} bits", fontsize=8)


def molecule_sheet(samples: Sequence[MoleculeSample], columns: int = 3) -> Figure:
    """`columns` molecules a row, each above its SMILES."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'graphwright[image]'") from error
    if not samples:
        raise ValueError("samples must not be empty")
    rows = -(-len(samples) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.9 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    for sample, panel in zip(samples, panels.flat, strict=False):
        draw_structure(sample.graph, panel, depiction(sample.graph))
        panel.set_title(textwrap.shorten(sample.smiles or "", 44, placeholder="..."), fontsize=8)
    return figure


def structure_svg(graph: Graph, smiles: str | None, title: str) -> str:
    """An SVG of the molecule by RDKit; of a graph that is no molecule (no SMILES), of its bare structure."""
    if smiles is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.2, 2.6), layout="constrained")
        panel = figure.subplots()
        draw_structure(graph, panel, depiction(graph))
        panel.set_title(f"{title} (not a valid molecule)", fontsize=8)
        text = io.StringIO()
        figure.savefig(text, format="svg")
        return text.getvalue()
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D

    drawing = rdMolDraw2D.MolDraw2DSVG(320, 260)
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, Chem.MolFromSmiles(smiles), legend=title)
    drawing.FinishDrawing()
    drawn: str = drawing.GetDrawingText()
    return drawn


def _lines(bond: str) -> tuple[tuple[float, str], ...]:
    """Sideways shifts and line styles of a bond's lines."""
    return {
        "single": ((0.0, "-"),),
        "double": ((-0.5, "-"), (0.5, "-")),
        "triple": ((-1.0, "-"), (0.0, "-"), (1.0, "-")),
        "aromatic": ((-0.5, "-"), (0.5, ":")),
    }[bond]


def chemistry_extras(predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:
    found = chemistry_metrics(predicted, targets)
    return [
        Extra("validity", "valid molecules, %", found.valid.astype(np.float64)),
        Extra("same_fingerprint", "same fingerprint, %", found.same_fingerprint.astype(np.float64)),
        Extra("tanimoto", "Tanimoto similarity of the fingerprints", found.tanimoto, share=False),
    ]


def smiles_or_none(graph: Graph) -> str | None:
    """SMILES; None where no molecule has this graph."""
    try:
        return smiles_from_graph(graph)
    except MoleculeError:
        return None


def data_overrides(source: str) -> tuple[Override, ...]:
    """Settings of a task on a person's own data: whatever elements they have."""
    return Override("task.data", source), Override("task.elements", "")


class MoleculeTask(Task):
    """SMILES, a chemist's drawing and a chemist's metrics of a task's graphs; RDKit is imported when asked for."""

    ranked = True

    def extras(self, predicted: Sequence[Graph], targets: Sequence[Graph]) -> list[Extra]:
        return chemistry_extras(predicted, targets)

    def text(self, graph: Graph) -> str | None:
        """SMILES; None where no molecule has this graph."""
        return smiles_or_none(graph)

    def positions(self, sample: Any) -> Positions:
        """A chemist's drawing of the graph."""
        return depiction(sample.graph)

    def svg(self, graph: Graph, title: str, text: str | None = None) -> str:
        """By RDKit; of what is no molecule, the bare structure."""
        return structure_svg(graph, text or self.text(graph), title)

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        """Atoms as letters, bonds as lines."""
        draw_structure(graph, axes, depiction(graph) if positions is None else positions)
