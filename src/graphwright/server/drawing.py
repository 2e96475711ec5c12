"""Graphs, molecules and pictures as a browser shows them, in light and in dark."""

from __future__ import annotations

import base64
import io
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphwright.graphs import Graph, layout
from graphwright.server.comparison import Comparison
from graphwright.server.schema import Drawing, Edge, Node, Verdict
from graphwright.tasks.molecules.targets import channels_of, standing

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rdkit.Chem import Mol

PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#72b7b2", "#eeca3b", "#9d755d", "#8590a6")
ELEMENTS = {"C": "#8590a6", "N": "#4f7fe8", "O": "#dd5b43", "F": "#2e9d6a", "S": "#b8901f", "Cl": "#2e9d6a",
            "Br": "#a8583f", "I": "#8a5fc0", "P": "#c9762b", "B": "#b07f70", "Si": "#937a63"}  # fmt: skip
"""Mid-tones, which can be read on white and on black."""
TONE = "#7f878e"
MARGIN = 0.1
FAINTEST = 0.3
"""Opacity of what the model gives no chance; what it is certain of has 1."""
BOND = 30
"""Pixels of a bond."""
FAULTS = ("wrong", "missing")
SVG = "http://www.w3.org/2000/svg"

Positions = NDArray[np.float64]
Certainty = tuple[Sequence[float], Sequence[float]]
"""Probabilities of a graph's nodes and of its edges."""


def opacity(part: Node | Edge) -> float:
    """By the model's probability of it; what is wrong must be seen, however unsure the model was of it."""
    return round(max(0.75 if part.verdict in FAULTS else 0.0, FAINTEST + (1 - FAINTEST) * part.certainty), 3)


def graph_drawing(
    graph: Graph,
    colors: Mapping[str, str],
    compared: Comparison | None = None,
    certainty: Certainty | None = None,
    true_positions: Positions | None = None,
    side: float | None = None,
    own: Positions | None = None,
) -> Drawing:
    """A graph for the page to draw; with a truth, what is wrong in it and what it lacks.

    true_positions: (t, 2) of the truth's nodes, or of the graph's own where there is no truth, in a picture of
    this side; without them nodes are put where they fit. own: (n, 2) where the graph's own nodes say they are.
    """
    nodes, edges = certainty or ([1.0] * graph.size, [1.0] * len(graph.edges))
    positions = _positions(graph, compared, true_positions, own)
    where = _in_frame(positions, side)
    palette = node_colors(graph.vocabulary.nodes, colors)
    verdicts: Sequence[Verdict] = compared.nodes if compared else ["unknown"] * graph.size
    joined: Sequence[Verdict] = compared.edges if compared else ["unknown"] * len(graph.edges)
    drawn = [
        Node(x=x, y=y, label=name, color=palette[name], certainty=sure, verdict=verdict, numbers=numbers)
        for (x, y), name, sure, verdict, numbers in zip(
            where[: graph.size].tolist(), graph.node_names, nodes, verdicts, _numbers(graph), strict=True
        )
    ]
    lines = [
        Edge(source=i, target=j, label=name, certainty=sure, verdict=verdict)
        for (i, j), name, sure, verdict in zip(graph.edges.tolist(), graph.edge_names, edges, joined, strict=True)
    ]
    if compared:
        truth = compared.truth
        for node, (x, y) in zip(compared.missing_nodes, where[graph.size :].tolist(), strict=True):
            name = truth.node_names[node]
            drawn.append(Node(x=x, y=y, label=name, color=palette[name], certainty=0, verdict="missing"))
        for edge in compared.missing_edges:
            i, j = (compared.index_of(node) for node in truth.edges[edge].tolist())
            name = truth.edge_names[edge]
            lines.append(Edge(source=i, target=j, label=name, certainty=0, verdict="missing"))
    return Drawing(nodes=drawn, edges=lines, on_picture=side is not None, described=in_words(graph, compared))


def _numbers(graph: Graph) -> list[dict[str, float]]:
    """What every node measures, by name."""
    if graph.attributes is None:
        return [{} for _ in range(graph.size)]
    names = graph.vocabulary.attribute_names
    return [dict(zip(names, row, strict=True)) for row in graph.attributes.tolist()]


def molecule_drawing(
    graph: Graph,
    molecule: Mol,
    text: str,
    positions: Positions,
    described: str,
    verdicts: tuple[Sequence[Verdict], Sequence[Verdict]] | None = None,
    certainty: Certainty | None = None,
) -> Drawing:
    """A molecule whose atoms are the graph's nodes, at positions (n, 2), as RDKit draws it."""
    drawn = graph_drawing(graph, ELEMENTS, None, certainty, positions)
    if verdicts is not None:
        for node, verdict in zip(drawn.nodes, verdicts[0], strict=True):
            node.verdict = verdict
        for edge, verdict in zip(drawn.edges, verdicts[1], strict=True):
            edge.verdict = verdict
    bonds = [molecule.GetBondBetweenAtoms(i, j).GetIdx() for i, j in graph.edges.tolist()]
    svg = molecule_svg(standing(molecule, positions), drawn.nodes, dict(zip(bonds, drawn.edges, strict=True)))
    return drawn.model_copy(update={"svg": svg, "text": text, "described": described})


def in_words(graph: Graph, compared: Comparison | None, node: str = "node", edge: str = "edge") -> str:
    """A drawing for those who do not see it."""
    words = f"{_counted(graph.size, node)}, {_counted(len(graph.edges), edge)}" if graph.size else f"no {node}s"
    if compared is None:
        return words
    if compared.edits == 0:
        return f"{words}; the same as the truth"
    return f"{words}; {_counted(compared.edits, 'edit')} away from the truth"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def molecule_svg(molecule: Mol, atoms: Sequence[Node], bonds: Mapping[int, Edge]) -> str:
    """An SVG without styles or identifiers, its black the page's text colour; certainty by opacity, faults marked.

    bonds: by RDKit's index.
    """
    from rdkit.Chem import GetPeriodicTable
    from rdkit.Chem.Draw import rdMolDraw2D

    canvas = rdMolDraw2D.MolDraw2DSVG(-1, -1)  # as large as the molecule
    options: Any = canvas.drawOptions()
    options.clearBackground = False
    options.fixedBondLength = BOND
    options.bondLineWidth = 1.6
    options.padding = 0.04
    options.highlightRadius = 0.32
    table = GetPeriodicTable()
    options.updateAtomPalette(
        {table.GetAtomicNumber(name): channels_of(color) for name, color in ELEMENTS.items() if name != "C"}
    )
    marked = [at for at, node in enumerate(atoms) if node.verdict in FAULTS]
    rdMolDraw2D.PrepareAndDrawMolecule(canvas, molecule, highlightAtoms=marked, highlightBonds=[])
    canvas.FinishDrawing()
    root = ET.fromstring(canvas.GetDrawingText())
    _plain(root, atoms, bonds)
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode")


def _plain(root: ET.Element, atoms: Sequence[Node], bonds: Mapping[int, Edge]) -> None:
    """Turn RDKit's styles into attributes, which no policy of a page forbids, and put opacities and faults on."""
    view = root.get("viewBox", "0 0 100 100")
    root.attrib.clear()
    root.set("viewBox", view)
    for element in list(root.iter()):
        for child in list(element):
            if not child.tag.startswith(f"{{{SVG}}}"):
                element.remove(child)
        for pair in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = pair.partition(":")
            element.set(name.strip(), value.strip())
        for name in ("fill", "stroke"):
            if element.get(name, "").upper() == "#000000":
                element.set(name, "currentColor")
        kind, _, index = element.attrib.pop("class", "").partition(" ")[0].partition("-")
        if not index.isdecimal():
            continue
        part = bonds.get(int(index)) if kind == "bond" else atoms[int(index)]
        if element.tag.endswith("ellipse"):
            element.set("class", "wrong-atom")
        elif part is not None:
            element.set("opacity", str(opacity(part)))
            if kind == "bond" and part.verdict in FAULTS:
                element.set("class", "wrong")


def picture_uri(picture: Any) -> str:
    """A picture (3, h, w) in 0..1 as a data URI."""
    from PIL import Image

    pixels = (np.asarray(picture).transpose(1, 2, 0).clip(0, 1) * 255).round().astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def figure_uri(figure: Figure) -> str:
    """A figure of matplotlib as a data URI, without a ground, in a tone that can be read on white and on black."""
    for axes in figure.axes:
        axes.patch.set_alpha(0)
        axes.tick_params(color=TONE, labelcolor=TONE)
        for spine in axes.spines.values():
            spine.set_edgecolor(TONE)
        for text in (*axes.texts, axes.title):
            text.set_color(TONE)
    figure.patch.set_alpha(0)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def node_colors(names: Sequence[str], colors: Mapping[str, str]) -> dict[str, str]:
    """A colour for every label: its own, or the next of the palette."""
    return {name: colors.get(name, PALETTE[code % len(PALETTE)]) for code, name in enumerate(names)}


def to_hex(channels: Sequence[float]) -> str:
    """Channels in 0..1 as #rrggbb."""
    return "#" + "".join(f"{round(255 * value):02x}" for value in channels)


def _positions(
    graph: Graph, compared: Comparison | None, true_positions: Positions | None, own: Positions | None
) -> Positions:
    """(n + missing, 2) of the graph's nodes, then of those that it lacks."""
    if compared is None:
        own = true_positions if own is None else own
        return layout(graph) if own is None else own
    # Where nodes lack or are too many, only the truth's frame has room for all.
    if own is not None and graph.size == compared.truth.size and not compared.missing_nodes:
        return own
    if true_positions is None:
        true_positions = layout(compared.truth)
    low, high = true_positions.min(0), true_positions.max(0)
    side = max(float((high - low).max()), 1.0)
    # Nodes that match nothing stand in a row below.
    spare = np.array([low[0] + 0.05 * side, high[1] + 0.16 * side])
    met = [
        true_positions[node] if node < compared.truth.size else spare + np.array([0.14 * side * at, 0])
        for at, node in enumerate(compared.alignment)
    ]
    return np.array([*met, *true_positions[list(compared.missing_nodes)]], np.float64).reshape(-1, 2)


def _in_frame(positions: Positions, side: float | None) -> Positions:
    """Positions in 0..1: of a picture's pixels by its side, otherwise so that they fill the frame."""
    if not len(positions):
        return positions
    if side is not None:
        return (positions + 0.5) / side
    low, high = positions.min(0), positions.max(0)
    span = max(float((high - low).max()), 1e-9)
    return np.asarray(MARGIN + (1 - 2 * MARGIN) * ((positions - (low + high) / 2) / span + 0.5), np.float64)
