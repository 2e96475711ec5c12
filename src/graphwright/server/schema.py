"""What the API takes and gives: the contract that /api/openapi.json describes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphwright.server.limits import TEXT

Verdict = Literal["unknown", "right", "wrong", "missing"]
"""Beside the truth: unknown where none is known, wrong what the truth has not, missing what only the truth has."""

ModelName = Annotated[str, Field(min_length=1, max_length=200, description="A name of /api/models.")]
Row = Annotated[int, Field(ge=1, le=1_000_000, description="Which of several inputs, from 1.")]
Top = Annotated[int, Field(ge=1, le=10, description="At most so many candidates.")]
Formula = Annotated[str, Field(max_length=80, pattern=r"^[A-Za-z0-9]*$", description="Molecular, e.g. C8H10N4O2.")]


class Given(BaseModel):
    """What every request has."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    model: ModelName
    top: Top = 5


class GivenText(Given):
    """Text that was pasted: SMILES, a peak list or a file of spectra, or a row of a table as JSON."""

    text: Annotated[str, Field(min_length=1, max_length=TEXT)]
    row: Row = 1
    formula: Formula = ""
    adduct: Annotated[str, Field(max_length=24, pattern=r"^[\[\]A-Za-z0-9+\-]*$")] = ""
    precursor: Annotated[float | None, Field(gt=0, le=1e5, description="m/z of the precursor ion.")] = None


class GivenExample(Given):
    """An input with a known truth; the same number gives the same example."""

    number: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    regions: Annotated[int | None, Field(ge=1, le=1000, description="Of a Coloring picture.")] = None
    noise: Annotated[float | None, Field(ge=0, le=1, description="Of a Coloring picture.")] = None


class Error(BaseModel):
    """Why there is no answer, in a sentence."""

    error: str


class Example(BaseModel):
    """Text to start with."""

    title: str
    text: str


class Sliders(BaseModel):
    """Ranges of a picture that is drawn on demand."""

    least_regions: int
    most_regions: int
    noise: float
    most_noise: float


class ModelCard(BaseModel):
    """A model that can be asked, and the words of its page.

    takes_text: what can be pasted; none where only files can be read. text_label: the same in a word or two.
    one_line: whether a line of text is an input. colors: by which node labels are told apart. standing: how good
    it is, or how long it was trained, as far as that is known.
    """

    name: str
    origin: Literal["shipped", "run"]
    kind: str
    title: str
    summary: str
    standing: str
    limits: str
    files: str
    takes_text: str | None
    text_label: str
    one_line: bool
    unseen: str
    answer: str
    colors: dict[str, str]
    examples: list[Example]
    adducts: list[str]
    sliders: Sliders | None


class Node(BaseModel):
    """A node of a drawing, x and y in 0..1, y downwards. certainty: the model's probability of it.

    numbers: what it measures, by name, in the units of the data.
    """

    x: float
    y: float
    label: str
    color: str
    certainty: float = 1.0
    verdict: Verdict = "unknown"
    numbers: dict[str, float] = {}


class Edge(BaseModel):
    """An edge between two nodes by index."""

    source: int
    target: int
    label: str
    certainty: float = 1.0
    verdict: Verdict = "unknown"


class Drawing(BaseModel):
    """A graph to look at. svg: where RDKit has drawn it. on_picture: whether x and y are those of the picture."""

    nodes: list[Node]
    edges: list[Edge]
    svg: str | None = None
    on_picture: bool = False
    text: str | None = None
    described: str


class ShownCandidate(BaseModel):
    """A graph that may be the answer.

    probability: the model's, of the whole graph. share: of the candidates' probability together. checked: whether
    it has the very input that was given, where that can be computed. edits: from the truth, 0 if it is the truth.
    truth: drawn with what this candidate lacks marked as missing.
    """

    probability: float
    share: float
    checked: bool | None
    edits: int | None
    drawing: Drawing
    truth: Drawing | None


class Peak(BaseModel):
    """formula: of the part of the ion that explains it. error: of the measured m/z, in ppm."""

    mz: float
    intensity: float
    formula: str | None = None
    error: float | None = None


class Input(BaseModel):
    """The input as it was understood. image: a data URI of a picture. svg: of a molecule or another drawing."""

    name: str
    caption: str
    image: str | None = None
    svg: str | None = None
    text: str | None = None
    bits: list[int] | None = None
    peaks: list[Peak] | None = None
    precursor: float | None = None


class ShownPlan(BaseModel):
    """The transport plan between slots (rows) and true nodes (columns), matched ones on the diagonal."""

    slots: list[str]
    nodes: list[str]
    mass: list[list[float]]
    size: int


class Timing(BaseModel):
    """A part of the work and its milliseconds."""

    name: str
    milliseconds: float


class Answer(BaseModel):
    """A prediction, drawn and compared. notes: what to know before trusting it. rows: names of all inputs.

    fewer: why there are fewer candidates than were asked for, where there are. order: by what they are ranked,
    where that is not the probability.
    """

    model: str
    input: Input
    row: int
    rows: list[str]
    notes: list[str]
    candidates: list[ShownCandidate]
    fewer: str | None
    order: str | None
    plan: ShownPlan | None
    timings: list[Timing]
