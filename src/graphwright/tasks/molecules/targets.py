"""What every task has whose graphs are molecules: SMILES, a chemist's metrics and drawings."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, is_isomorphic, layout
from graphwright.graphs.drawing import empty_sheet
from graphwright.graphs.molecules import (
    BONDS,
    MoleculeError,
    is_molecule,
    molecule_from_graph,
    parse_smiles,
    smiles_from_graph,
)
from graphwright.metrics.evaluation import is_isomorphic_skeleton
from graphwright.settings import Override
from graphwright.tasks.molecules.dataset import MoleculeSample
from graphwright.tasks.molecules.fingerprint import BITS, BitArray
from graphwright.tasks.task import Extra, Positions, Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path
    from rdkit.Chem import Mol
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
LEAST_SIDE = 5.0
"""Smallest side of a panel, in the molecule's coordinates."""
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


def draw_structure(
    graph: Graph, axes: Axes, positions: Positions | None = None, smiles: str | None = None
) -> None:
    """A molecule as chemists draw it, by RDKit; of a graph that is none, or without RDKit, the bare structure.

    positions: (n, 2) of its atoms, y downwards, or as RDKit positions them. smiles: where it says more than the
    graph, such as where the hydrogens are, and no positions are given.
    """
    molecule = _drawable(graph, None if positions is not None else smiles)
    if positions is None:
        positions = depiction(graph) if molecule is None else coordinates(molecule)
    if molecule is None:
        _draw_letters(graph, axes, positions)
    else:
        for outline, color, filled in _outlines(standing(molecule, positions)):
            _add(outline, color, filled, axes)
    if graph.size:
        # The panel covers the atoms, and those of a small molecule are not drawn larger for it.
        middle = (positions.min(0) + positions.max(0)) / 2
        least = np.stack([middle - LEAST_SIDE / 2, middle + LEAST_SIDE / 2])
        axes.update_datalim(np.concatenate([positions, least]))
        axes.autoscale_view()
    axes.set_aspect("equal")
    axes.margins(0.1)
    axes.invert_yaxis()
    axes.set_axis_off()


def _drawable(graph: Graph, smiles: str | None) -> Mol | None:
    """The molecule to draw, its atoms the graph's nodes unless SMILES says which; None where there is none."""
    try:
        return molecule_from_graph(graph) if smiles is None else parse_smiles(smiles)
    except (MoleculeError, ImportError):
        return None


def coordinates(molecule: Mol) -> Positions:
    """(n, 2) as RDKit positions the atoms, y downwards."""
    from rdkit import Chem
    from rdkit.Chem.rdDepictor import Compute2DCoords

    flat = Chem.Mol(molecule)
    Compute2DCoords(flat)
    return np.array(flat.GetConformer().GetPositions()[:, :2] * (1, -1), np.float64)


def standing(molecule: Mol, positions: Positions) -> Mol:
    """The molecule with its atoms at these positions (n, 2), y downwards."""
    from rdkit import Chem
    from rdkit.Geometry import Point3D

    conformer = Chem.Conformer(len(positions))
    conformer.Set3D(False)
    for at, (x, y) in enumerate(positions.tolist()):
        conformer.SetAtomPosition(at, Point3D(x, -y, 0.0))
    positioned = Chem.Mol(molecule)
    positioned.RemoveAllConformers()
    positioned.AddConformer(conformer)
    return positioned


def _outlines(molecule: Mol) -> Iterator[tuple[Path, str, bool]]:
    """RDKit's own drawing as outlines in the molecule's coordinates, y downwards.

    Each comes with its colour, and whether it is filled, as letters are, or a stroke.
    """
    from matplotlib.path import Path
    from rdkit.Chem import GetPeriodicTable
    from rdkit.Chem.Draw import rdMolDraw2D
    from rdkit.Geometry import Point2D

    canvas = rdMolDraw2D.MolDraw2DSVG(-1, -1)
    options: Any = canvas.drawOptions()
    options.clearBackground = False
    options.fixedBondLength = 50
    table = GetPeriodicTable()
    options.updateAtomPalette({table.GetAtomicNumber(name): channels_of(color) for name, color in COLORS.items()})
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule)
    canvas.FinishDrawing()
    origin, unit = canvas.GetDrawCoords(Point2D(0, 0)), canvas.GetDrawCoords(Point2D(1, -1))
    zero, scale = np.array([origin.x, origin.y]), np.array([unit.x - origin.x, unit.y - origin.y])
    for element in ElementTree.fromstring(canvas.GetDrawingText()).iter("{http://www.w3.org/2000/svg}path"):
        style = dict(pair.split(":") for pair in element.get("style", "").split(";") if pair)
        fill = style.get("fill", element.get("fill", "none"))
        points, codes = _followed(element.get("d", ""))
        outline = Path((points - zero) / scale, codes)
        yield outline, style.get("stroke", fill) if fill == "none" else fill, fill != "none"


STEPS = {"M": [1], "L": [2], "Q": [3, 3], "C": [4, 4, 4], "Z": [79]}
"""Letters of an SVG path, with matplotlib's codes of the points that each takes."""


def _followed(path: str) -> tuple[NDArray[np.float64], list[int]]:
    """The points (n, 2) of an SVG path in absolute coordinates, and matplotlib's codes of them."""
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    words = iter(re.findall(r"[MLQCZ]|-?[0-9.]+", path))
    for word in words:
        for code in STEPS[word]:
            points.append(points[-1] if word == "Z" else (float(next(words)), float(next(words))))
            codes.append(code)
    return np.array(points), codes


def _add(outline: Path, color: str, filled: bool, axes: Axes) -> None:
    from matplotlib.patches import PathPatch

    face, edge = (color, "none") if filled else ("none", color)
    axes.add_patch(
        PathPatch(
            outline, facecolor=face, edgecolor=edge, linewidth=1.1, capstyle="round", zorder=2, clip_on=False
        )
    )


def channels_of(color: str) -> tuple[float, float, float]:
    """#rrggbb as red, green and blue in 0..1."""
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _draw_letters(graph: Graph, axes: Axes, positions: Positions) -> None:
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
    figure, panels = empty_sheet(len(samples), columns, cell=(3.6, 2.9), widths=(1,))
    for sample, (panel,) in zip(samples, panels, strict=False):
        draw_structure(sample.graph, panel)
        panel.set_title(textwrap.shorten(sample.smiles or "", 44, placeholder="..."), fontsize=8)
    return figure


def structure_svg(graph: Graph, smiles: str | None, title: str) -> str:
    """An SVG of the molecule by RDKit; of a graph that is no molecule (no SMILES), of its bare structure."""
    if smiles is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.2, 2.6), layout="constrained")
        panel = figure.subplots()
        draw_structure(graph, panel)
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
    chemistry = chemistry_metrics(predicted, targets)
    return [
        Extra("validity", "valid molecules, %", chemistry.valid.astype(np.float64)),
        Extra("same_fingerprint", "same fingerprint, %", chemistry.same_fingerprint.astype(np.float64)),
        Extra("tanimoto", "Tanimoto similarity of the fingerprints", chemistry.tanimoto, share=False),
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

    def own_positions(self, graph: Graph) -> Positions:
        """As RDKit positions its atoms."""
        return depiction(graph)

    def svg(self, graph: Graph, title: str, text: str | None = None) -> str:
        """By RDKit; of what is no molecule, the bare structure."""
        return structure_svg(graph, text or self.text(graph), title)

    def draw_graph(self, graph: Graph, axes: Axes, positions: Positions | None) -> None:
        """As chemists draw it."""
        draw_structure(graph, axes, positions)
