"""A predicted graph: how sure the model is, what else it may be, and how it prints and draws itself."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass, field

from graphwright.decoding.candidates import Candidate
from graphwright.graphs import Graph
from graphwright.tasks import Task

NOT_VALID = "not a valid molecule"


@dataclass(frozen=True, eq=False, repr=False)
class PredictedGraph:
    """A predicted graph and the model's probability of it.

    That is of exactly these decisions, slots taken as independent, or of this graph among those recognised.

    candidates: the most probable distinct graphs, this one first, where they were asked for.
    task: whose graph it is, which can write and draw it.
    """

    graph: Graph
    confidence: float
    candidates: tuple[Candidate, ...] = ()
    task: Task | None = field(default=None, repr=False)

    @property
    def text(self) -> str | None:
        """The graph in the notation of its task, such as SMILES; None where there is none."""
        return self._text(self.graph, self.candidates[0].text if self.candidates else None)

    def __str__(self) -> str:
        return f"{self._shown(self.graph, self.text)}  (confidence {_percent(self.confidence)})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _repr_svg_(self) -> str:
        """The drawing, for a notebook."""
        return self._svg(self.graph, f"confidence {_percent(self.confidence)}", self.text)

    def _repr_html_(self) -> str:
        """The drawing, and the candidates as a table where there are several."""
        drawn = f"<div>{_image(self._repr_svg_(), str(self))}</div>"
        if len(self.candidates) < 2:
            return drawn
        checked = any(each.checked is not None for each in self.candidates)
        headings = ["", "graph", "", "probability", "share", *(["same fingerprint"] if checked else [])]
        head = "".join(f"<th>{heading}</th>" for heading in headings)
        rows = "".join(self._row(rank, each, checked) for rank, each in enumerate(self.candidates, 1))
        return f"{drawn}<table><tr>{head}</tr>{rows}</table>"

    def _row(self, rank: int, candidate: Candidate, checked: bool) -> str:
        text = self._text(candidate.graph, candidate.text)
        shown = html.escape(self._shown(candidate.graph, text))
        cells = [
            str(rank),
            _image(self._svg(candidate.graph, "", text), shown, width=160),
            shown,
            _percent(candidate.probability),
            _percent(candidate.share),
            *(["yes" if candidate.checked else "no"] if checked else []),
        ]
        return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"

    def _text(self, graph: Graph, text: str | None) -> str | None:
        return text or (None if self.task is None else self.task.text(graph))

    def _shown(self, graph: Graph, text: str | None) -> str:
        """The notation, or the labels; those also where the notation has nothing to say of the graph."""
        if text is None and self.task is not None and self.task.ranked:
            return f"{graph}, {NOT_VALID}"
        return text or str(graph)

    def _svg(self, graph: Graph, title: str, text: str | None) -> str:
        if self.task is None:
            raise ValueError("a graph without its task cannot be drawn: see graphwright.graphs.draw")
        return self.task.svg(graph, title, text)


def _image(svg: str, text: str, width: int | None = None) -> str:
    """Of its own, so that the names inside two drawings do not meet."""
    code = base64.b64encode(svg.encode()).decode()
    size = "" if width is None else f' width="{width}"'
    return f'<img alt="{html.escape(text, quote=True)}"{size} src="data:image/svg+xml;base64,{code}">'


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
