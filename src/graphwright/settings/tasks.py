"""The settings of every kind of task: what is predicted from what."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Discriminator, Field, Tag, model_validator

from graphwright.settings.base import Count, NotNegative, Positive, Settings, Share

Capacity = Annotated[int, Field(ge=1, le=250)]


class ColoringTask(Settings):
    """Coloring: a picture of coloured regions; the graph says which regions touch and what colours they have."""

    input_kinds: ClassVar[tuple[str, ...]] = ("picture",)
    default_encoder: ClassVar[str] = "cnn"

    kind: Literal["coloring"] = "coloring"
    """What is predicted from what: coloring, graphs of regions from pictures."""
    capacity: Capacity = 10
    """Largest number of regions, N."""
    min_size: Count = 5
    """Smallest number of regions."""
    side: Annotated[int, Field(ge=0)] = 0
    """Pixels per side; 0 means 4 N."""
    noise: NotNegative = 0.02
    """Standard deviation of the pixel noise."""
    blur: NotNegative = 0.0
    """Standard deviation of the Gaussian blur, in pixels."""
    min_pixels: Annotated[int, Field(ge=0)] = 0
    """Regions and contacts of fewer pixels are left out of the graph."""
    samples: Annotated[int, Field(ge=0)] = 0
    """Samples in all splits; 0 means 20,000 N."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which data set: sample i is a pure function of seed, split and i."""
    diffusion: bool = True
    """Also predict how many neighbours of each colour a region has, and match by it."""

    @model_validator(mode="after")
    def _sizes_in_order(self) -> Self:
        if self.min_size > self.capacity:
            raise ValueError(f"min_size {self.min_size} is more than capacity {self.capacity}")
        return self


class FingerprintTask(Settings):
    """Fingerprint2Molecule: the active bits of an ECFP4 fingerprint; the graph is the molecule's heavy atoms."""

    input_kinds: ClassVar[tuple[str, ...]] = ("bits",)
    default_encoder: ClassVar[str] = "fingerprint"

    kind: Literal["fingerprint"] = "fingerprint"
    """What is predicted from what: fingerprint, molecules from their ECFP4 bits."""
    data: Annotated[str, Field(min_length=1)] = "qm9"
    """Shipped data (qm9, molecules), a file with SMILES (parquet, csv, tsv, smi), or a prepared folder."""
    capacity: Capacity = 32
    """Largest number of heavy atoms, N; larger molecules are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O F; empty: those in the data."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""


class PeakTokens(StrEnum):
    """What an encoder is told of a peak."""

    ANNOTATED = "annotated"
    RAW = "raw"


class TrainingUnit(StrEnum):
    """What an epoch goes through once."""

    MOLECULE = "molecule"
    SPECTRUM = "spectrum"


class SpectrumTask(Settings):
    """MS2Scaffold: the peaks of a tandem mass spectrum; the graph is the molecule's Murcko scaffold."""

    input_kinds: ClassVar[tuple[str, ...]] = ("spectrum",)
    default_encoder: ClassVar[str] = "spectrum"

    kind: Literal["spectrum"] = "spectrum"
    """What is predicted from what: spectrum, scaffolds from tandem mass spectra."""
    data: Annotated[str, Field(min_length=1)] = "massbank_ms2scaffold"
    """Shipped data (massbank_ms2scaffold), or a file of spectra with SMILES (MassSpecGym's tsv, parquet, msp)."""
    capacity: Capacity = 32
    """Largest number of scaffold atoms, N; larger scaffolds are left out."""
    elements: str = ""
    """Element symbols that a node may have, such as C N O S; empty: those in the data."""
    adducts: str = "[M+H]+ [M+Na]+"
    """Adducts with a token of their own; all others share that of an unknown one."""
    diffusion: bool = True
    """Also predict how many neighbours of each element an atom has, and match by it."""
    tokens: PeakTokens = PeakTokens.ANNOTATED
    """Whether peaks come with the sub-formulas that explain them, where the formula is known, or raw always."""
    peaks: Count = 128
    """Most peaks of a spectrum, the most intense."""
    tolerance: Positive = 10.0
    """Largest error in ppm of a sub-formula that explains a peak."""
    unit: TrainingUnit = TrainingUnit.MOLECULE
    """What an epoch of training goes through once: molecules, one random spectrum of each, or spectra."""
    hide_formula: Share = 0.25
    """Share of training spectra whose formula is hidden, so that the model also learns to do without."""
    hide_conditions: Share = 0.1
    """Share of training spectra whose collision energy is hidden; the same for adduct and precursor m/z."""
    drop_peaks: Share = 0.1
    """Share of the peaks of a training spectrum that is left out."""
    jitter: NotNegative = 0.2
    """Standard deviation of the noise on the logarithm of training intensities."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Which spectra and variations training draws: a pure function of seed, index and epoch."""


class TableTask(Settings):
    """Table: a person's own file of pairs, one row an input and its graph."""

    input_kinds: ClassVar[tuple[str, ...]] = ("vector", "tokens", "set")
    default_encoder: ClassVar[str] = "columns"

    kind: Literal["table"] = "table"
    """What is predicted from what: table, graphs from the columns of your own file."""
    data: Annotated[str, Field(min_length=1)] = "pairs.parquet"
    """File of pairs (parquet, jsonl, csv): columns nodes and edges, or graph; all other columns are the input."""
    inputs: str = ""
    """Columns that are the input, with commas between them; empty: all but graph, nodes, edges, split and id."""
    capacity: Annotated[int, Field(ge=0, le=250)] = 0
    """Largest number of nodes, N; larger graphs are left out; 0: as many as the largest training graph has."""
    node_labels: str = ""
    """Labels that a node may have, a JSON list; empty: those in the training rows."""
    edge_labels: str = ""
    """Labels that an edge may have, a JSON list; empty: those in the training rows."""
    form: str = ""
    """Kind of the input, mean and deviation of its numbers, its tokens, as JSON; empty: found in the data."""
    diffusion: bool = True
    """Also predict how many neighbours of each label a node has, and match by it."""


TaskSettings = ColoringTask | FingerprintTask | SpectrumTask | TableTask

TASKS: dict[str, type[TaskSettings]] = {
    get_args(task.model_fields["kind"].annotation)[0]: task for task in get_args(TaskSettings)
}
"""Settings of every kind of task, the default kind first."""
DEFAULT_KIND = next(iter(TASKS))


def task_kind(given: Any) -> str:
    """The kind of a task's settings, given as such or as a mapping; settings older than kinds have none."""
    if isinstance(given, Mapping):
        return str(given.get("kind", DEFAULT_KIND))
    return str(getattr(given, "kind", DEFAULT_KIND))


AnyTask = Annotated[
    Annotated[ColoringTask, Tag("coloring")]
    | Annotated[FingerprintTask, Tag("fingerprint")]
    | Annotated[SpectrumTask, Tag("spectrum")]
    | Annotated[TableTask, Tag("table")],
    Discriminator(task_kind),
]
