"""From a case to an answer: prediction, certainty, comparison and drawings. Runs in the worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from graphwright.decoding.candidates import Candidate, order_in_words
from graphwright.graphs import Graph, turned_towards
from graphwright.graphs.molecules import BONDS, MoleculeError, graph_from_molecule, parse_smiles
from graphwright.inference import PredictedGraph, SavedModel
from graphwright.inference.decoders import decoder_named
from graphwright.server.cases import hex_colors, shown_input
from graphwright.server.comparison import Comparison, certainties, compare, transport_plan
from graphwright.server.drawing import (
    ELEMENTS,
    Positions,
    graph_drawing,
    in_words,
    molecule_drawing,
)
from graphwright.server.schema import Answer, Drawing, ShownCandidate, Timing
from graphwright.tasks.molecules.targets import coordinates
from graphwright.tasks.page import Case

if TYPE_CHECKING:
    from rdkit.Chem import Mol

Certainty = tuple[list[float], list[float]] | None
HOPELESS_SECONDS = 2.0
"""For a decoder that looks for a molecule which the model cannot know."""


class Stopwatch:
    """Milliseconds by what was done."""

    def __init__(self) -> None:
        self.timings: list[Timing] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Time what is done inside."""
        start = perf_counter()
        yield
        self.timings.append(Timing(name=name, milliseconds=round(1000 * (perf_counter() - start), 1)))


def answer(name: str, model: SavedModel, case: Case, top: int, seconds: float, clock: Stopwatch) -> Answer:
    """Predict, compare, draw. seconds: for decoders that take the best found so far."""
    with clock.of("prediction"):
        budget = seconds if case.in_scope else min(seconds, HOPELESS_SECONDS)
        ranked = model.predict(case.given, top=top, seconds=budget)[0]
        ranking = ranked.candidates or (_only(ranked),)
    with clock.of("comparison"):
        shown = [_notated(model, each.graph, each.text) for each in ranking]
        truth = None if case.truth is None else _truth(model, case.truth, case.shown.text)
        graphs = [each.graph for each in shown]
        compared = [None] * len(graphs) if truth is None else compare(graphs, truth.graph)
        loss = model.run.loss
        with torch.no_grad():
            prediction = model.predictor(model.task.inputs(case.given)).graphs
        # What was checked against the input is certain, whatever the slots say.
        sure = [
            None if each.checked else slots
            for each, slots in zip(ranking, certainties(prediction, graphs, loss), strict=True)
        ]
        plan = None if truth is None else transport_plan(prediction, truth.graph, loss)
    with clock.of("drawing"):
        colors = ELEMENTS if model.vocabulary.edges == BONDS else hex_colors(model.task.page)
        candidates = [
            ShownCandidate(
                probability=each.probability,
                share=each.share,
                checked=each.checked,
                edits=None if beside is None else beside.edits,
                drawing=_predicted_drawing(
                    case, colors, graph, truth, beside, certainty, model.task.page.where(graph.graph)
                ),
                truth=None if truth is None or beside is None else _true_drawing(case, colors, truth, beside),
            )
            for each, graph, beside, certainty in zip(ranking, shown, compared, sure, strict=True)
        ]
    hopeless = ranking[0].checked is False  # which is the headline
    return Answer(
        model=name,
        input=shown_input(case.shown),
        row=case.row,
        rows=list(case.rows) or [case.shown.name],
        notes=list(case.notes),
        candidates=candidates,
        fewer=None if len(candidates) >= top or hopeless else decoder_named(model.decode).why_fewer,
        order=order_in_words(ranking),
        plan=plan,
        timings=clock.timings,
    )


@dataclass(frozen=True, eq=False)
class Notated:
    """A graph and, where it is a molecule, the molecule whose atoms are its nodes in order, with its SMILES."""

    graph: Graph
    text: str | None = None
    molecule: Mol | None = None


def _notated(model: SavedModel, graph: Graph, text: str | None) -> Notated:
    """In the order of the notation that is drawn."""
    if model.vocabulary.edges != BONDS:
        return Notated(graph)
    text = text or model.task.text(graph)
    try:
        molecule = parse_smiles(text or "")
        ordered = graph_from_molecule(molecule, model.vocabulary)
    except MoleculeError:
        return Notated(graph)
    # Hydrogens that are written as atoms are no nodes.
    return Notated(ordered, text, molecule) if ordered.size == molecule.GetNumAtoms() else Notated(graph)


def _truth(model: SavedModel, truth: Graph, text: str | None) -> Notated:
    """As it was given, if it can be drawn so."""
    given = _notated(model, truth, text)
    return given if given.text is not None else _notated(model, truth, None)


def _only(predicted: PredictedGraph) -> Candidate:
    """The one graph of a decoder that makes no list."""
    return Candidate(predicted.graph, 0.0, predicted.confidence, 1.0, proved=True)


def _predicted_drawing(
    case: Case,
    colors: Mapping[str, str],
    shown: Notated,
    truth: Notated | None,
    compared: Comparison | None,
    certainty: Certainty,
    own: Positions | None,
) -> Drawing:
    if shown.molecule is not None and shown.text is not None:
        positions = coordinates(shown.molecule)
        if compared is not None and truth is not None and truth.molecule is not None:
            positions = turned_towards(positions, coordinates(truth.molecule), compared.alignment)
        verdicts = None if compared is None else (compared.nodes, compared.edges)
        described = in_words(shown.graph, compared, "atom", "bond")
        return molecule_drawing(shown.graph, shown.molecule, shown.text, positions, described, verdicts, certainty)
    true_positions, side = (case.positions, case.side) if compared else (None, None)
    drawn = graph_drawing(shown.graph, colors, compared, certainty, true_positions, side, own)
    if shown.graph.vocabulary.edges == BONDS:
        drawn.described = f"Not a valid molecule: {drawn.described}"
    return drawn


def _true_drawing(case: Case, colors: Mapping[str, str], truth: Notated, compared: Comparison) -> Drawing:
    if truth.molecule is not None and truth.text is not None:
        positions, described = coordinates(truth.molecule), in_words(truth.graph, None, "atom", "bond")
        lacking = compared.lacking()
        return molecule_drawing(truth.graph, truth.molecule, truth.text, positions, described, lacking)
    return graph_drawing(truth.graph, colors, true_positions=case.positions, side=case.side)
